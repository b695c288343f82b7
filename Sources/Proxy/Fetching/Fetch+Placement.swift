import Bytes
import Coalescing
import HTTPSemantics
import Libevent
import Storage

/// What follows from the key that the response belongs under (`Placement`).
extension Fetch {
    /// The key under which the response belongs.
    var storeKey: CacheKey { placement.otherKey ?? request.key }
    var isElsewhere: Bool { placement.otherKey != nil }

    /// - Returns: why it is not stored after all.
    func chooseStoreKey(by fields: FieldView, willBeStored: Bool) -> NotStoredReason? {
        // Nearly always.
        guard fields.contains(.noVarySearch) || request.isUnderVariation else { return nil }
        // In a local variable nothing watches its exclusive use at run time.
        var placement = placement
        let reason = placement.chooseStoreKey(by: fields, for: request, willBeStored: willBeStored, worker: worker)
        self.placement = placement
        return reason
    }

    /// Whether a response of these groups is out of date with one of them (RFC 9875 §3): they are unknown until the
    /// head arrives.
    func isOutdated(_ groups: CacheGroups?) -> Bool {
        groups.map { worker.shared.groups.whenInvalidated($0, of: request.authority) != nil } ?? false
    }

    /// Some invalidations could not find the operation: those from before its key was chosen, those of the response's
    /// own key until the delivery, and those of its groups before its head named them.
    func closeIfInvalidated() {
        if isOutdated(response?.groups) { operation?.close() }
        if placement.wasInvalidatedElsewhere(in: worker.shared.store) { operation?.close() }
    }

    /// Later requests find the operation under the key and the variant that its response is for.
    func addAlias(for response: StoredResponse, of operation: FetchOperation) {
        let varies = response.facts.contains(.varies)
        guard varies || isElsewhere else { return }
        let key = plan.key.moved(to: storeKey, variant: varies ? response.variantKey : nil)
        if key != plan.key { worker.fetches(of: request).addAlias(operation, for: key) }
        if varies { worker.shared.store.learn(response.varyRule, for: storeKey) }
    }

    /// The response is not for all who asked under its key: they look under their own URLs, all at the same time, for a
    /// while or until something is stored under the key again.
    func noteContradiction() {
        guard method != .head, isElsewhere, request.isUnderVariation else { return }
        let sent = request.sentKey.bytes
        guard worker.shared.variations.latest(for: sent.span) === request.variation else { return }
        remember(.search)
    }

    /// What was stored for the URL alone is older than what is now stored for it and others, but would be found first.
    func dropFormer() {
        guard isElsewhere || request.isUnderVariation, storeKey != request.sentKey,
            let former = worker.shared.store.resource(request.sentKey), former.count > 0
        else { return }
        worker.shared.store.invalidate(request.sentKey)
    }
}
