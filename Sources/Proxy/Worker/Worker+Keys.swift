import Bytes
import HTTPSemantics
import Storage

/// By which key a request is looked up once its path's queries are known to differ in what does not matter (No-Vary-Search).
extension Worker {
    /// `request` under the key that fits what is known now. The same object where nothing is.
    ///
    /// What is stored for the very URL goes first, as in the draft ('Caching'): it may be older than what is known, or say otherwise.
    func keyed(_ request: ClientRequest) -> ClientRequest {
        let sent = request.sentKey.bytes
        guard request.method == .get || request.method == .head, let variation = variations.latest(for: sent.span) else {
            return request.variation == nil ? request : ClientRequest(request, key: request.sentKey, variation: nil)
        }
        let key = keys.key(request.sentKey, under: variation)
        let goesBySent = isFresh(request.sentKey, for: request) || (isContradicted(key) && !isFresh(key, for: request))
        return ClientRequest(request, key: goesBySent ? request.sentKey : key, variation: variation)
    }

    /// Whether a variation of the request's path became the latest since its key was chosen.
    func hasLearnt(about request: ClientRequest) -> Bool {
        let sent = request.sentKey.bytes
        return variations.latest(for: sent.span) !== request.variation
    }

    private func isFresh(_ key: CacheKey, for request: ClientRequest) -> Bool {
        let fields = request.fields
        guard let stored = shared.store.resource(key)?.response(matching: fields.view) else { return false }
        if case .fresh = stored.facts.reuse(for: request.directives, at: moment) { return true }
        return false
    }

    /// Whether the last response under `key` was not for all who asked there.
    private func isContradicted(_ key: CacheKey) -> Bool {
        guard let marker = shared.store.resource(key)?.marker else { return false }
        return marker.reason == .search && marker.holds(at: moment)
    }
}
