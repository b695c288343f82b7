import Bytes
import HTTPSemantics
import Storage

/// The key by which a request is looked up once its path's queries are known to differ in what does not matter
/// (No-Vary-Search).
extension Worker {
    /// `request` under the key that fits what is known now. The same object where nothing is.
    ///
    /// What is stored for the very URL goes first (`ResponseFacts.goesBefore`), as in the draft ('Caching'): it may be
    /// older than what is known, or say otherwise.
    func keyed(_ request: ClientRequest) -> ClientRequest {
        let sent = request.sentKey.bytes
        guard request.method == .get || request.method == .head, let variation = variations.latest(for: sent.span)
        else {
            return request.variation == nil ? request : request.under(request.sentKey, nil)
        }
        let key = keys.key(request.sentKey, under: variation)
        return request.under(goesBySentKey(request, ratherThan: key) ? request.sentKey : key, variation)
    }

    /// Whether a variation of the request's path became the latest since its key was chosen.
    func hasLearnt(about request: ClientRequest) -> Bool {
        let sent = request.sentKey.bytes
        return variations.latest(for: sent.span) !== request.variation
    }

    private func goesBySentKey(_ request: ClientRequest, ratherThan key: CacheKey) -> Bool {
        let (fields, directives, now) = (request.fields, request.directives, moment)
        let resource = shared.store.resource(key)
        let common = resource?.response(matching: fields.view)?.facts
        if let own = shared.store.resource(request.sentKey)?.response(matching: fields.view)?.facts,
            own.goesBefore(common, for: directives, at: now)
        {
            return true
        }
        // Whether the last response under `key` was not for all who asked there.
        guard resource?.leadsToOwnURL(at: now) == true else { return false }
        return common?.isFresh(for: directives, at: now) != true
    }
}

extension ResponseFacts {
    /// Whether what is stored for a URL alone goes before what is stored for it and others: while it is fresh, and
    /// where it is more recent (RFC 9111 §4).
    func goesBefore(_ common: ResponseFacts?, for directives: RequestDirectives, at now: Moment) -> Bool {
        isFresh(for: directives, at: now) || common.map(isMoreRecent) ?? false
    }

    fileprivate func isFresh(for directives: RequestDirectives, at now: Moment) -> Bool {
        if case .fresh = reuse(for: directives, at: now) { true } else { false }
    }
}
