import HTTPSemantics
import Storage

/// Looking a request up in the store.
extension LoopContext {
    /// The decision for a request, made from the resource under its key.
    @inline(never)
    func lookUp(_ request: ClientRequest, in resource: CachedResource?, sharing: Lookup.FetchSharing) -> Lookup.Outcome
    {
        Lookup(request: request, resource: resource, groups: groups, now: moment, sharing: sharing).outcome
    }

    /// The stored response that may be sent in place of the response that the origin fails to give (RFC 9111 §4.2.4).
    @inline(never)
    func standIn(for request: ClientRequest, on failure: OriginFailure) -> StoredResponse? {
        // A `No-Vary-Search` rule may have been learnt since the request's key was chosen.
        let request = keyed(request)
        let resource = store.resource(request.key)
        return Lookup(request: request, resource: resource, groups: groups, now: moment, sharing: .shared)
            .standIn(on: failure)
    }
}
