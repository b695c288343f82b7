import Bytes
import Coalescing
import HTTPSemantics
import Libevent
import Storage
import Upstream

/// Where a response belongs that says which queries it is for (No-Vary-Search draft). A request is looked up under what is known of its path;
/// the response may say otherwise, and then goes where its own word puts it.
extension Fetch {
    /// When the head is there. Only what will be stored teaches: the draft goes by the most recently *stored* response with the field,
    /// whatever its status; one without the field takes nothing back.
    /// - Returns: why it is not stored after all.
    func chooseStoreKey(_ fields: FieldView) -> NotStoredReason? {
        // An unsafe request's own invalidation may have moved it on (`Worker.invalidate`).
        storeGeneration = generation
        // As nearly always.
        guard fields.contains(.noVarySearch) || request.isUnderVariation else { return nil }
        search = Self.said(fields)
        if search.isDefault, !request.isUnderVariation { return nil }
        let variations = worker.shared.variations
        let sent = request.sentKey.bytes
        var storeKey = request.sentKey
        if !search.isDefault,
           let variation = willBeStored ? variations.learn(search, for: sent.span) : variations.known(search, for: sent.span) {
            let isUnchanged = variation === request.variation && request.isUnderVariation
            storeKey = isUnchanged ? request.key : worker.keys.key(request.sentKey, under: variation)
        }
        guard storeKey != request.key else {
            otherKey = nil
            return nil
        }
        otherKey = storeKey
        let store = worker.shared.store
        storeGeneration = storeKey == request.sentKey ? sentGeneration : store.generation(storeKey)
        // In this order: who invalidates begins with the key as sent and asks for variations then. So either it shows here, or the
        // variation showed there.
        wasInvalidated = pathWasInvalidated || store.wasInvalidated(request.key, since: generation)
            || store.wasInvalidated(request.sentKey, since: sentGeneration)
        return wasInvalidated ? .outdated : nil
    }

    /// From when on a response with these fields is out of date with one of its groups (RFC 9875 §3), if it is; before its head nobody knew that it is of
    /// those.
    func outdatedSince(_ fields: FieldView) -> Int64? {
        guard fields.contains(.cacheGroups) else { return nil }
        return outdatedSince(CacheGroups.of(fields, requested: sentAt))
    }

    func outdatedSince(_ groups: CacheGroups?) -> Int64? {
        groups.flatMap { worker.shared.groups.whenInvalidated($0, of: request.authority) }
    }

    /// An invalidation before `chooseStoreKey`, or one of the response's own key between that and the delivery did not find the operation; nor did one of
    /// its groups before the head said that it is of those.
    func closeIfInvalidated() {
        if let response, outdatedSince(response.groups) != nil { operation?.close() }
        guard isElsewhere else { return }
        if wasInvalidated || worker.shared.store.wasInvalidated(storeKey, since: storeGeneration) { operation?.close() }
    }

    /// The response is not for all who asked under its key: for a while they look under their own URLs, at the same time and not one after
    /// another. Until something is stored there again.
    func noteContradiction() {
        guard plan.isShared, method != .head, isElsewhere, request.isUnderVariation else { return }
        let sent = request.sentKey.bytes
        guard worker.shared.variations.latest(for: sent.span) === request.variation else { return }
        let until = worker.now + worker.settings.coalescing.unshareableTTL.nanoseconds
        worker.shared.store.markUnshareable(request.key, until: until, reason: .search)
    }

    /// What was stored for the URL alone is older than what is stored now for it and others; it would be found first.
    func dropFormer() {
        guard isElsewhere || request.isUnderVariation, storeKey != request.sentKey, let former = worker.shared.store.resource(request.sentKey), former.count > 0 else { return }
        worker.shared.store.invalidate(request.sentKey)
    }

    /// Whether a stored response still belongs under the key it was found under, once it has been updated.
    func staysUnderItsKey(_ response: StoredResponse) -> Bool {
        guard request.isUnderVariation else { return true }
        let head = response.head
        return Self.said(head.view) == request.variation?.rule
    }

    /// What a response says of queries. A field too large to be learnt does not count.
    static func said(_ fields: FieldView) -> NoVarySearch {
        let said = NoVarySearch(fields)
        return said.size <= SearchVariations.largest ? said : .default
    }
}
