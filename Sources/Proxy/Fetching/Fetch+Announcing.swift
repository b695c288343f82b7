import Bytes
import Coalescing
import HTTPSemantics
import Libevent
import Storage

/// Makes a response known once its head is there. The waiters get the response. Later requests find the fetch under the
/// keys that the response is for, or a marker that they cannot share it.
///
/// ```
/// handOutOnceInMemory ─no memory→ awaitingMemory ─memory (`Fetch+Body`)→ handOut
///          └─memory────────────────────────────────────────────────────────↗
/// handOut: enterStreaming
///          announce        where others may join: aliases, `Vary` and markers, then the operation closes if necessary
///          deliver         to the operation's waiters, or to the lone leader (`tellLoneLeader`)
///          decideWhetherToGoOn
/// ```
extension Fetch {
    /// Hands out the response whose head is there, as soon as there is memory for the first piece of its content: no
    /// client gets a head whose content has to wait for memory that other bodies may never release. The response to an
    /// unsafe method is handed out in any case, since it tells the effect of the request.
    func handOutOnceInMemory(_ fetched: consuming FetchedResponse) {
        guard fetched.response.isPacked || beginBody(of: fetched.response) || !method.isSafe else {
            enterAwaitingMemory(with: fetched)
            waitForMemory()
            return decideWhetherToGoOn()
        }
        handOut(fetched)
    }

    /// Gives the response to the waiters, and lets later requests find it. Its body arrives from now on.
    @inline(__always) // Called in three places, of which one is not rare.
    func handOut(_ fetched: consuming FetchedResponse) {
        enterStreaming(with: fetched)
        let response = fetched.response
        // The whole content came with the head.
        if response.isPacked { fetched.noteEnd(at: worker.moment) }
        if !plan.isShared {
            if learnsForOthers {
                rememberIfUnshareable(response, fetched.sharing)
                noteTooLarge()
            }
            // Others could have had the response: the markers of the key no longer hold.
            if arriving.willBeStored, fetched.sharing.isForLateJoiners { forgetMarkers(after: response) }
            deliver(fetched)
        } else if let operation {
            operation.interims.end()
            // Before the operation can be found under another key.
            closeIfInvalidated()
            announce(response, fetched.sharing, by: operation)
            if !keeping.isWhole { operation.close() }
            deliver(fetched)
            closeIfInvalidated()
            if !keeping.isWhole { pinBeginning(of: response) }
        }
        decideWhetherToGoOn()
    }

    /// Decides whether the fetch continues without clients. The head tells: the response must be storable, and its body
    /// must not be one that may never end.
    private func decideWhetherToGoOn() {
        // A fetch that carries a request's content needs its client until that is complete.
        setMayGoOn(
            unattended: arriving.willBeStored && !request.hasContent && !(isIncremental && arriving.length == nil)
                && (plan.isRefresh || worker.settings.coalescing.whenLastLeaves == .finish))
    }

    /// Before any client gets the response: a later request must find the operation where it looks, or find a marker
    /// that it may not have the response.
    private func announce(_ response: StoredResponse, _ sharing: Sharing, by operation: FetchOperation) {
        let separates = response.facts.contains(.separatesRequests)
        let isRemembered = separates && sharing.isForSeveral && tellsOthersApart(operation)
        // A status that concerns one request says nothing of how the requests for its key are told apart.
        if sharing.isForSeveral || !response.facts.status.concernsRequest {
            addAlias(for: response, of: operation, separates: isRemembered)
            noteContradiction()
        }
        // The marker comes first: a request that looks in between finds the operation or the marker, and leads no fetch
        // in vain.
        switch sharing {
        case .nobody: rememberIfUnshareable(response, sharing)
        case .waitersOnly, .whileArriving, .everyone: if isRemembered { rememberSeparation() }
        }
        noteTooLarge()
        if !sharing.isForLateJoiners { operation.close() }
        // A response to HEAD says nothing of the response to GET, which has the same key.
        if sharing.isForLateJoiners, method != .head { forgetMarkers(after: response) }
    }

    func rememberIfUnshareable(_ response: StoredResponse, _ sharing: Sharing) {
        let status = response.facts.status
        if let reason = sharing.reasonToRemember(status, for: plan, method, leaderWasReleased: leaderWasReleased) {
            remember(reason, after: status)
        }
    }

    /// Whether the fetch is for its leader alone only because coalescing is off. It sent the same request as all others
    /// would have sent, so its result is worth remembering for them.
    var learnsForOthers: Bool { !plan.isShared && !plan.isPass && !request.route.isCoalesced }

    /// Whether an earlier fetch, which the leader's request had joined, brought a response that only its own leader
    /// could have. Then a status that concerns the request concerns them all, and the requests of the next crowd must
    /// not wait for one another.
    var leaderWasReleased: Bool { leader?.wasReleased == true }

    // MARK: The response's key

    /// The key under which the response belongs.
    var storeKey: CacheKey { placement.otherKey ?? request.key }
    var isElsewhere: Bool { placement.otherKey != nil }

    /// Whether a response of these groups is out of date because one of them was invalidated (RFC 9875 §3). The groups
    /// are unknown until the head arrives.
    func isOutdated(_ groups: CacheGroups?) -> Bool {
        groups.map { worker.shared.groups.whenInvalidated($0, of: request.authority) != nil } ?? false
    }

    /// Closes the operation after an invalidation that could not find it: one from before its key was chosen, one of
    /// the response's own key before the delivery, or one of its groups before its head named them.
    private func closeIfInvalidated() {
        if isOutdated(response?.groups) { operation?.close() }
        if placement.wasInvalidatedElsewhere(in: worker.shared.store) { operation?.close() }
    }

    /// Lets later requests find the operation under the key and the variant that its response is for.
    /// - Parameter separates: whether requests that match the leader's look it up under their distinguishing fields, as
    ///   in `ClientRequest.fetchKey`.
    private func addAlias(for response: StoredResponse, of operation: FetchOperation, separates: Bool) {
        let varies = response.facts.contains(.varies)
        guard varies || isElsewhere || separates else { return }
        let key = plan.key.moved(to: storeKey, variant: varies ? response.variantKey : nil)
        if key != plan.key { worker.fetches(of: request).addAlias(operation, for: key) }
        if separates, let variant = request.ownVariant(under: varies ? response.varyRule : .none) {
            let own = plan.key.moved(to: storeKey, variant: variant)
            if own != plan.key { worker.fetches(of: request).addAlias(operation, for: own) }
        }
        if varies { worker.shared.store.learn(response.varyRule, for: storeKey) }
    }

    /// The response is not for all requests that were made under its key: these look under their own URLs, all at the
    /// same time, for a while or until a response is stored under the key again.
    private func noteContradiction() {
        guard method != .head, isElsewhere, request.isUnderVariation else { return }
        let sent = request.sentKey.bytes
        guard worker.shared.variations.latest(for: sent.span) === request.variation else { return }
        remember(.search)
    }

    /// A client that wants a part of a representation too large to keep requests that part, and does not wait for the
    /// whole.
    private func noteTooLarge() {
        guard method == .get, plan.range == nil, let fetched, fetched.notStored == .tooLarge,
            fetched.response.facts.status == .ok
        else { return }
        remember(.range)
    }

    // MARK: Markers

    /// For a while, requests with this key follow the marker (`KeyMarkers`).
    /// - Parameter status: the status of the response that gave the reason, where it matters.
    func remember(_ reason: NotSharedReason, after status: Status = .ok) {
        let memory = reason.memory(after: status, atMost: worker.settings.coalescing.unshareableTTL.nanoseconds)
        worker.shared.store.mark(request.key, reason, until: worker.now + memory, at: worker.moment)
    }

    /// Several clients may have the response. A whole response to a range request contradicts no marker by its head:
    /// its meaning for ranges is remembered already (`rejectPart`). If the response is stored, the storing removes the
    /// markers that it contradicts.
    private func forgetMarkers(after response: StoredResponse) {
        guard plan.range == nil || arriving.part != nil else { return }
        worker.shared.store.forgetMarkers(
            of: storeKey, after: response.facts, keepsWhole: plan.range == nil && keeping.isWhole)
    }

    /// Whether to remember that the response goes only to requests that match the leader's. No marker is set if no
    /// other request has joined so far and the leader's request is like that of most visitors.
    func tellsOthersApart(_ operation: FetchOperation) -> Bool { operation.wasJoinedByUnlike || request.isPeculiar }

    /// Requests that do not match shall not wait for one another again.
    func rememberSeparation() {
        if worker.shared.store.resource(storeKey)?.separatesRequests(at: worker.moment) != true { remember(.unlike) }
    }
}
