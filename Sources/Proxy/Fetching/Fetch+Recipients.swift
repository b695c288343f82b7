import Coalescing
import HTTPSemantics
import Storage

/// Who gets what the fetch brings: those who wait for its operation, or the one client that it is for (`SoleClient`).
extension Fetch {
    /// Hands out the response whose head is there; its body arrives from now on.
    func handOut(_ fetched: consuming FetchedResponse) {
        state = .streaming
        self.fetched = fetched
        let response = fetched.response
        // All of it came with its head.
        if response.isPacked { fetched.noteEnd(at: worker.moment) }
        if sole != nil {
            // Others could have had it: what is known of the key no longer holds.
            if keeping == .stored, plan.range == nil, fetched.sharing.letsOthersIn { worker.shared.store.clearMarker(storeKey) }
            deliver(fetched)
        } else if let operation {
            operation.interims.end()
            // Before it can be found under another key.
            closeIfInvalidated()
            announce(response, fetched.sharing, by: operation)
            if !keeping.isWhole { operation.close() }
            deliver(fetched)
            closeIfInvalidated()
            if !keeping.isWhole { holdStart(of: response) }
        }
        // A fetch that carries a request's content needs its client until that is complete.
        goOn(unattended: keeping == .stored && !request.hasContent
            && (plan.isRefresh || worker.settings.coalescing.whenLastLeaves == .finish))
    }

    /// Before anybody gets the response: who may come later must find it where they look, or find that they may not have it.
    private func announce(_ response: StoredResponse, _ sharing: Sharing, by operation: FetchOperation) {
        addAlias(for: response, of: operation)
        noteContradiction()
        switch sharing {
        case .nobody(let reason):
            operation.close()
            // What HEAD gets says nothing of what GET will get, whose key it has.
            let isForOthersToo = !response.facts.status.concernsRequest || othersGotNoMore
            if method != .head, worker.settings.coalescing.isEnabled, reason.isRemembered, isForOthersToo { remember(reason) }
        case .waitersOnly:
            operation.close()
        case .everyone, .whileArriving:
            // Of a part the marker says that the whole is too large, which is still so.
            if plan.range == nil { worker.shared.store.clearMarker(storeKey) }
        }
    }

    /// Whether a request before the leader's got what nobody else could have, either: then a status that speaks of the request speaks of them all, and
    /// the next crowd must not wait for one another.
    var othersGotNoMore: Bool { client?.wasReleased == true }

    /// To all who wait.
    func deliver(_ fetched: consuming FetchedResponse) {
        operation?.deliver(fetched)
        bring(.success(fetched))
    }

    /// To the client of a fetch that is for it alone; others are told by the operation.
    func bring(_ result: consuming Result<FetchedResponse, OperationError>) {
        guard sole?.takesOutcome() == true else { return }
        client?.fetch(self, brings: consume result)
    }

    /// The client of a fetch that is for it alone leaves.
    /// - Returns: whether it still waited.
    func clientLeaves(_ operation: FetchOperation) -> Bool {
        let wasWaiting = sole?.leave() == true
        client = nil
        if state != .over, sole?.isDispensable != true { operation.cancel() }
        return wasWaiting
    }

    /// Sets whether the fetch outlives its last client. If it must not and none is left, it ends now.
    func goOn(unattended mayGoOn: Bool) {
        if let sole {
            self.sole?.isDispensable = mayGoOn
            if !mayGoOn, sole.isGone { operation?.cancel() }
        } else if let operation {
            operation.lastLeavePolicy = mayGoOn ? .goOn : .cancel
            if !mayGoOn { operation.cancelIfUnattended() }
        }
    }
}
