import Bytes
import HTTPSemantics
import Libevent
import Storage

extension Worker {
    /// An unsafe request succeeded (RFC 9111 §4.4): what is stored for its target, and for the targets of the same
    /// origin that its response names, is used no more; nor is what is on its way for them shared or stored as if it
    /// came afterwards.
    /// - Parameter generation: of the request's own fetch.
    /// - Returns: the generation under which its answer may be stored, if it is one that may (see `ResponseStore`).
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
            // Once is enough, and a second time would keep out the request's own answer.
            guard key != request.sentKey else { continue }
            shared.store.invalidate(key)
            invalidateWhatElse(isUnder: key)
        }
        return next
    }

    /// - Parameter key: as sent; invalidated in the store before. In this order: whoever learns a variation afterwards
    ///   finds the key invalidated (`Placement.chooseStoreKey`).
    private func invalidateWhatElse(isUnder key: CacheKey) {
        let sent = key.bytes
        shared.variations.noteInvalidation(of: sent.span)
        // What is in flight for the URL may be at another origin than the request: a reload may have come in between.
        let origins = shared.origins
        for origin in origins { origin.closeFetches(of: key) }
        for variation in shared.variations.all(for: sent.span) {
            let key = keys.key(key, under: variation)
            shared.store.invalidate(key)
            for origin in origins { origin.closeFetches(of: key) }
        }
    }
}
