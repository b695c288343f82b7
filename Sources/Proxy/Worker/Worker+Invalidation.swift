import Bytes
import HTTPSemantics
import Libevent
import Storage

extension Worker {
    /// Invalidates stored responses after a successful unsafe request (RFC 9111 §4.4): responses for its target, and
    /// for the targets of the same origin that its response names. Fetches in flight for these targets are no longer
    /// shared, and their responses are not stored as if they had been requested afterwards.
    /// - Parameter generation: the generation of the request's own fetch.
    /// - Returns: the generation under which the response to this request may be stored; `nil` if it may not be (see
    ///   `ResponseStore`).
    func invalidate(
        _ request: ClientRequest, answeredBy response: FieldView, status: Status, after generation: Generation
    ) -> Generation? {
        let groups = CacheGroups.invalidated(by: response, method: request.method, status: status)
        if !groups.isEmpty {
            shared.groups.invalidate(groups, of: request.authority, at: loop.now)
            for origin in shared.origins { origin.closeFetches(outdatedBy: shared.groups, of: request.authority) }
        }
        let next = shared.store.invalidate(request.key, after: generation)
        invalidateWhatElse(isUnder: request.sentKey)
        let base = request.targetURI
        for related in Invalidation.relatedTargets(of: response, base: base) {
            guard let url = ParsedURL("\(request.scheme.name)://\(String(base.authority))\(String(related))") else {
                continue
            }
            let (fields, urlFields) = (request.fields, url.fields)
            let route = loopSettings.route(url.head, urlFields.view)
            url.write(to: keys, route.key, as: fields.view)
            let key = keys.key()
            // The request's own key is invalidated already; a second invalidation would prevent the storing of its own
            // response.
            guard key != request.sentKey else { continue }
            shared.store.invalidate(key)
            invalidateWhatElse(isUnder: key)
        }
        return next
    }

    /// - Parameter key: the key of the URL as sent, which the caller has invalidated in the store. The order matters: a
    ///   fetch that learns a variation afterwards finds the key invalidated (`Placement.chooseStoreKey`).
    private func invalidateWhatElse(isUnder key: CacheKey) {
        let sent = key.bytes
        shared.variations.noteInvalidation(of: sent.span)
        // Fetches in flight for the URL may be at another origin than the request, if the settings were reloaded
        // meanwhile.
        let origins = shared.origins
        for origin in origins { origin.closeFetches(of: key) }
        for variation in shared.variations.all(for: sent.span) {
            let key = keys.key(key, under: variation)
            shared.store.invalidate(key)
            for origin in origins { origin.closeFetches(of: key) }
        }
    }
}
