import Bytes
import Coalescing
import HTTPSemantics
import Libevent
import Storage

/// What others find of a response whose head is there: those who wait get it; those who come later find the fetch under
/// the keys that the response is for, or a note that it is not for them.
///
/// ```
/// handOutOnceInMemory ─no memory→ awaitingMemory ─memory (`Fetch+Body`)→ handOut
///          └─memory────────────────────────────────────────────────────────↗
/// handOut: enterStreaming
///          announce        where others may join: aliases, `Vary` and markers, then the operation closes if need be
///          deliver         to all who wait: the operation's waiters, or the lone leader (`tellLoneLeader`)
///          decideWhetherToGoOn
/// ```
extension Fetch {
    /// Hands out the response whose head is there, as soon as there is memory for the first of its content: nobody gets
    /// a head whose content has to wait for what others may never give back. Only what an unsafe request did is told in
    /// any case.
    func handOutOnceInMemory(_ fetched: consuming FetchedResponse) {
        guard fetched.response.isPacked || beginBody(of: fetched.response) || !method.isSafe else {
            enterAwaitingMemory(with: fetched)
            waitForMemory()
            return decideWhetherToGoOn()
        }
        handOut(fetched)
    }

    /// To those who wait, and to be found by those who come; its body arrives from now on.
    @inline(__always) // Called in three places, of which one is not rare.
    func handOut(_ fetched: consuming FetchedResponse) {
        enterStreaming(with: fetched)
        let response = fetched.response
        // All of it came with its head.
        if response.isPacked { fetched.noteEnd(at: worker.moment) }
        if !plan.isShared {
            if learnsForOthers {
                rememberIfUnshareable(response, fetched.sharing)
                noteTooLarge()
            }
            // Others could have had it: what is known of the key no longer holds.
            if arriving.willBeStored, fetched.sharing.isForLateJoiners { forgetMarkers(after: response) }
            deliver(fetched)
        } else if let operation {
            operation.interims.end()
            // Before it can be found under another key.
            closeIfInvalidated()
            announce(response, fetched.sharing, by: operation)
            if !keeping.isWhole { operation.close() }
            deliver(fetched)
            closeIfInvalidated()
            if !keeping.isWhole { pinBeginning(of: response) }
        }
        decideWhetherToGoOn()
    }

    /// The head tells whether what comes is worth having when nobody waits for it any more: not what may never end.
    private func decideWhetherToGoOn() {
        // A fetch that carries a request's content needs its client until that is complete.
        setMayGoOn(
            unattended: arriving.willBeStored && !request.hasContent && !(isIncremental && arriving.length == nil)
                && (plan.isRefresh || worker.settings.coalescing.whenLastLeaves == .finish))
    }

    /// Before anybody gets the response: who may come later must find it where they look, or find that they may not
    /// have it.
    private func announce(_ response: StoredResponse, _ sharing: Sharing, by operation: FetchOperation) {
        let separates = response.facts.contains(.separatesRequests)
        let isRemembered = separates && sharing.isForSeveral && tellsOthersApart(operation)
        // What is about one request says nothing of how the requests for its key are told apart.
        if sharing.isForSeveral || !response.facts.status.concernsRequest {
            addAlias(for: response, of: operation, separates: isRemembered)
            noteContradiction()
        }
        // The marker first: who looks in between finds the operation or the marker, and leads no fetch in vain.
        switch sharing {
        case .nobody: rememberIfUnshareable(response, sharing)
        case .waitersOnly, .whileArriving, .everyone: if isRemembered { rememberSeparation() }
        }
        noteTooLarge()
        if !sharing.isForLateJoiners { operation.close() }
        // What HEAD gets says nothing of what GET will get, whose key it has.
        if sharing.isForLateJoiners, method != .head { forgetMarkers(after: response) }
    }

    func rememberIfUnshareable(_ response: StoredResponse, _ sharing: Sharing) {
        let status = response.facts.status
        if let reason = sharing.reasonToRemember(status, for: plan, method, leaderWasReleased: leaderWasReleased) {
            remember(reason, after: status)
        }
    }

    /// Whether it is for its leader alone only because coalescing is off: it asked for what all others would have asked
    /// for, and they, too, are better off with what it learns.
    var learnsForOthers: Bool { !plan.isShared && !plan.isPass && !request.route.isCoalesced }

    /// Whether a request before the leader's got what nobody else could have, either: then a status that speaks of the
    /// request speaks of them all, and the next crowd must not wait for one another.
    var leaderWasReleased: Bool { leader?.wasReleased == true }

    // MARK: The key that it belongs under

    /// The key under which the response belongs.
    var storeKey: CacheKey { placement.otherKey ?? request.key }
    var isElsewhere: Bool { placement.otherKey != nil }

    /// Whether a response of these groups is out of date with one of them (RFC 9875 §3): they are unknown until the
    /// head arrives.
    func isOutdated(_ groups: CacheGroups?) -> Bool {
        groups.map { worker.shared.groups.whenInvalidated($0, of: request.authority) != nil } ?? false
    }

    /// Some invalidations could not find the operation: those from before its key was chosen, those of the response's
    /// own key until the delivery, and those of its groups before its head named them.
    private func closeIfInvalidated() {
        if isOutdated(response?.groups) { operation?.close() }
        if placement.wasInvalidatedElsewhere(in: worker.shared.store) { operation?.close() }
    }

    /// Later requests find the operation under the key and the variant that its response is for.
    /// - Parameter separates: whether those alike the leader's look under what tells them apart, as in
    ///   `ClientRequest.fetchKey`.
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

    /// The response is not for all who asked under its key: they look under their own URLs, all at the same time, for a
    /// while or until something is stored under the key again.
    private func noteContradiction() {
        guard method != .head, isElsewhere, request.isUnderVariation else { return }
        let sent = request.sentKey.bytes
        guard worker.shared.variations.latest(for: sent.span) === request.variation else { return }
        remember(.search)
    }

    /// Who wants a part of what is too large to keep asks for that, and waits for no whole.
    private func noteTooLarge() {
        guard method == .get, plan.range == nil, let fetched, fetched.notStored == .tooLarge,
            fetched.response.facts.status == .ok
        else { return }
        remember(.range)
    }

    // MARK: What is remembered

    /// For a while, requests with this key go by what was found out (`KeyMarkers`).
    /// - Parameter status: of the response that it was found out by, where that matters.
    func remember(_ reason: NotSharedReason, after status: Status = .ok) {
        let memory = reason.memory(after: status, atMost: worker.settings.coalescing.unshareableTTL.nanoseconds)
        worker.shared.store.mark(request.key, reason, until: worker.now + memory, at: worker.moment)
    }

    /// Several may have the response. A whole that came where a part was asked for contradicts nothing by its head: what
    /// it says of that is remembered already (`rejectPart`). If it is stored, that forgets what it contradicts.
    private func forgetMarkers(after response: StoredResponse) {
        guard plan.range == nil || arriving.part != nil else { return }
        worker.shared.store.forgetMarkers(
            of: storeKey, after: response.facts, keepsWhole: plan.range == nil && keeping.isWhole)
    }

    /// Whether it is worth remembering that the response goes only to those alike the leader: where nobody else has
    /// asked so far, and the leader's request is like those of most visitors, nothing is written down.
    func tellsOthersApart(_ operation: FetchOperation) -> Bool { operation.wasJoinedByUnlike || request.isPeculiar }

    /// Requests that are not alike shall not wait for one another again.
    func rememberSeparation() {
        if worker.shared.store.resource(storeKey)?.separatesRequests(at: worker.moment) != true { remember(.unlike) }
    }
}
