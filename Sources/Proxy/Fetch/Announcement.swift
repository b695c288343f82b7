import Bytes
import Coalescing
import HTTPSemantics
import Libevent
import Routing
import Storage

/// Makes a response known once its head is there: later requests find the fetch under the keys that the response is
/// for, or a marker that they cannot share it.
///
/// A temporary value of one fetch, on its loop. It changes the table of fetches, and the notes in the store.
struct Announcement {
    private let fetch: Fetch

    init(of fetch: Fetch) { self.fetch = fetch }

    private var request: ClientRequest { fetch.request }
    private var plan: FetchPlan { fetch.plan }
    private var context: LoopContext { fetch.context }
    /// The key under which the response belongs, if not the request's.
    private var otherKey: CacheKey? { fetch.placement.otherKey }
    private var store: ResponseStore { context.shared.store }
    private var storeKey: CacheKey { fetch.storeKey }
    private var method: Method { fetch.method }

    /// Announces the response of a fetch that others may join. Before any client gets the response: a later request
    /// must find the operation where it looks, or find a marker that it may not have the response.
    /// - Parameter keepsWhole: whether the body is kept whole.
    /// - Returns: whether the operation is found by the key that the response belongs under.
    @inline(never) // Kept out of the code of a pass.
    func announce(_ fetched: FetchedResponse, by operation: FetchOperation, keepsWhole: Bool) -> Bool {
        let (response, sharing) = (fetched.response, fetched.sharing)
        // Before the operation can be found under another key.
        closeIfInvalidated(response, operation)
        let separates = response.facts.contains(.separatesRequests)
        let isRemembered = separates && sharing.isForSeveral && distinguishesRequests(operation)
        // A status that concerns one request says nothing of how the requests for its key are told apart.
        let hasAlias = sharing.isForSeveral || !response.facts.status.concernsRequest
        if hasAlias {
            addAlias(for: response, of: operation, separates: isRemembered)
            noteContradiction()
        }
        // The marker comes first: a request that looks in between finds the operation or the marker, and leads no fetch
        // in vain.
        switch sharing {
        case .nobody: rememberIfUnshareable(response, sharing)
        case .waitersOnly, .whileArriving, .everyone: if isRemembered { rememberSeparation() }
        }
        noteTooLarge(fetched)
        if !sharing.isForLateJoiners || !keepsWhole { operation.close() }
        // A response to HEAD says nothing of the response to GET, which has the same key.
        if sharing.isForLateJoiners, method != .head { forgetMarkers(after: fetched, keepsWhole: keepsWhole) }
        return hasAlias
    }

    /// Closes the operation after an invalidation that could not find it: one of the response's own key before the
    /// delivery, or one of its tags or groups before its head named them.
    func closeIfInvalidated(_ response: StoredResponse, _ operation: FetchOperation) {
        if response.tags?.firstPurge != nil { operation.close() }
        if fetch.wasInvalidated { operation.invalidate() }
    }

    /// Sets the markers for later requests, after the response of a fetch that is for its leader alone.
    func announceAlone(_ fetched: FetchedResponse) {
        if plan.recordsResultForOthers {
            rememberIfUnshareable(fetched.response, fetched.sharing)
            noteTooLarge(fetched)
        }
        // Others could have had the response: the markers of the key no longer hold.
        if fetched.decision.willBeStored, fetched.sharing.isForLateJoiners {
            forgetMarkers(after: fetched, keepsWhole: true)
        }
    }

    /// Lets later requests find the operation under the key and the variant that its response is for.
    /// - Parameter separates: whether requests that match the leader's look it up under their distinguishing fields, as
    ///   in `ClientRequest.fetchKey`.
    private func addAlias(for response: StoredResponse, of operation: FetchOperation, separates: Bool) {
        let varies = response.facts.contains(.varies)
        guard varies || otherKey != nil || separates else { return }
        let key = plan.key.moved(to: storeKey, variant: varies ? response.variantKey : nil)
        if key != plan.key { context.fetches(of: request).addAlias(operation, for: key) }
        if separates, let variant = request.ownVariant(under: varies ? response.varyRule : .none) {
            let own = plan.key.moved(to: storeKey, variant: variant)
            if own != plan.key { context.fetches(of: request).addAlias(operation, for: own) }
        }
        if varies { store.learn(response.varyRule, for: storeKey) }
    }

    /// The response is not for all requests that were made under its key: these look under their own URLs, all at the
    /// same time, for a while or until a response is stored under the key again.
    private func noteContradiction() {
        guard method != .head, otherKey != nil, request.isUnderVariation else { return }
        let sent = request.sentKey.bytes
        guard context.shared.variations.latest(for: sent.span) === request.variation else { return }
        remember(.search)
    }

    /// A client that wants a part of a representation too large to keep requests that part, and does not wait for the
    /// whole.
    private func noteTooLarge(_ fetched: FetchedResponse) {
        guard method == .get, plan.range == nil, fetched.notStored == .tooLarge, fetched.response.facts.status == .ok
        else { return }
        remember(.range)
    }

    // MARK: Markers

    /// For a while, requests with this key follow the marker (`KeyMarkers`).
    /// - Parameter status: the status of the response that gave the reason, where it matters.
    func remember(_ reason: NotSharedReason, after status: Status = .ok) {
        let memory = reason.memory(after: status, atMost: context.settings.coalescing.unshareableTTL.nanoseconds)
        store.mark(request.key, reason, until: context.now + memory, at: context.moment)
    }

    /// Another machine had a response that is for each request alone.
    /// - Parameter time: in nanoseconds.
    func rememberUnshareable(for time: Int64) {
        let most = context.settings.coalescing.unshareableTTL.nanoseconds
        store.mark(request.key, .notCacheable, until: context.now + min(time, most), at: context.moment)
    }

    func rememberIfUnshareable(_ response: StoredResponse, _ sharing: Sharing) {
        let status = response.facts.status
        if let reason = sharing.reasonToRemember(status, for: plan, leaderWasReleased: fetch.leaderWasReleased) {
            remember(reason, after: status)
        }
    }

    /// Several clients may have the response. A whole response to a range request contradicts no marker by its head:
    /// its meaning for ranges is remembered already (`HeadHandling.rejectPart`). If the response is stored, the storing
    /// removes the markers that it contradicts.
    private func forgetMarkers(after fetched: FetchedResponse, keepsWhole: Bool) {
        guard plan.range == nil || fetched.decision.part != nil else { return }
        store.forgetMarkers(
            of: storeKey, after: fetched.response.facts, keepsWhole: plan.range == nil && keepsWhole)
    }

    /// Whether to remember that the response goes only to requests that match the leader's. No marker is set if no
    /// other request has joined so far and the leader's request is like that of most visitors.
    func distinguishesRequests(_ operation: FetchOperation) -> Bool {
        operation.wasJoinedByNonmatching || request.isPersonalized
    }

    /// Requests that do not match shall not wait for one another again.
    func rememberSeparation() {
        if store.resource(storeKey)?.separatesRequests(at: context.moment) != true { remember(.unlike) }
    }
}

extension FetchOperation {
    /// The waiters begin to read one after another, on loops of their own. The beginning of a body that is not kept
    /// whole stays until the last of them has begun, however far the first has read. The operation is already closed.
    nonisolated func pinBeginning(of fetched: FetchedResponse, until callbacks: CallbackBarrier) {
        guard fetched.mayServeOthers, let body = fetched.response.looseBody, waiterCount > 1,
            let cursor = body.attach()
        else { return }
        callbacks.whenAllAreCalledBack { body.detach(cursor) }
    }
}
