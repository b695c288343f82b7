import Bytes
import HTTPSemantics
import Routing
import Storage

/// Choosing the key under which a request is looked up, once its path has a `No-Vary-Search` rule.
extension LoopContext {
    /// `request` under the key that the rules known now give. The same object if there is no rule for its path.
    ///
    /// A response stored for the exact URL is preferred (`ResponseFacts.goesBefore`), as in the draft ('Caching'): it
    /// may be older than the rule, or have another one.
    func keyed(_ request: ClientRequest) -> ClientRequest {
        let sent = request.sentKey.bytes
        guard request.method == .get || request.method == .head, let variation = variations.latest(for: sent.span)
        else {
            return request.variation == nil ? request : request.under(request.sentKey, nil)
        }
        let key = keys.key(request.sentKey, under: variation)
        return request.under(goesBySentKey(request, ratherThan: key) ? request.sentKey : key, variation)
    }

    /// Whether the latest variation of the request's path has changed since its key was chosen.
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
        // Whether the last response under `key`, which several URLs share, was not for all of these URLs.
        guard resource?.leadsToOwnURL(at: now) == true else { return false }
        return common?.isFresh(for: directives, at: now) != true
    }
}

/// Looking a request up in the store.
extension LoopContext {
    /// The decision for a request, made from the resource under its key.
    @inline(never)
    func lookUp(_ request: ClientRequest, in resource: CachedResource?, sharing: Lookup.FetchSharing) -> Lookup.Outcome
    {
        Lookup(request: request, resource: resource, now: moment, sharing: sharing).outcome
    }

    /// The stored response that may be sent in place of the response that the origin fails to give (RFC 9111 §4.2.4).
    @inline(never)
    func standIn(for request: ClientRequest, on failure: OriginFailure) -> StoredResponse? {
        // A `No-Vary-Search` rule may have been learnt since the request's key was chosen.
        let request = keyed(request)
        let resource = store.resource(request.key)
        return Lookup(request: request, resource: resource, now: moment, sharing: .shared)
            .standIn(on: failure)
    }
}
