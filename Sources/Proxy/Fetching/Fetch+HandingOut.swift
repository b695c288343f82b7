import Coalescing
import HTTPSemantics
import Storage

/// A response whose head is there, on its way to those who wait; and what those who come later are to find.
extension Fetch {
    /// Hands out the response whose head is there; its body arrives from now on.
    func handOut(_ fetched: consuming FetchedResponse) {
        stream(fetched)
        let response = fetched.response
        // All of it came with its head.
        if response.isPacked { fetched.noteEnd(at: worker.moment) }
        if !plan.isShared {
            if learnsForOthers { rememberIfUnshareable(response, fetched.sharing) }
            // Others could have had it: what is known of the key no longer holds.
            if keeping == .stored, plan.range == nil, fetched.sharing.isForLateJoiners {
                worker.shared.store.clearMarker(storeKey)
            }
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
        goOn(
            unattended: keeping == .stored && !request.hasContent
                && (plan.isRefresh || worker.settings.coalescing.whenLastLeaves == .finish))
    }

    /// Before anybody gets the response: who may come later must find it where they look, or find that they may not
    /// have it.
    private func announce(_ response: StoredResponse, _ sharing: Sharing, by operation: FetchOperation) {
        addAlias(for: response, of: operation)
        noteContradiction()
        let separatesCookies = response.facts.contains(.separatesCookies)
        switch sharing {
        case .nobody:
            operation.close()
            rememberIfUnshareable(response, sharing)
        case .waitersOnly, .whileArriving:
            if sharing == .waitersOnly { operation.close() }
            if separatesCookies { rememberCookies(operation) }
        case .everyone:
            break
        }
        // Of a part the marker says that the whole is too large, which is still so.
        if sharing.isForLateJoiners, !separatesCookies, plan.range == nil {
            worker.shared.store.clearMarker(storeKey)
        }
    }

    private func rememberIfUnshareable(_ response: StoredResponse, _ sharing: Sharing) {
        if let reason = sharing.reasonToRemember(
            response.facts.status, for: plan, method, leaderWasReleased: leaderWasReleased)
        {
            remember(reason)
        }
    }

    /// Whether it is for its leader alone only because coalescing is off: it asked for what all others would have asked
    /// for, and they, too, are better off with what it learns.
    var learnsForOthers: Bool { !plan.isShared && !plan.isPass && !request.route.isCoalesced }

    /// Whether a request before the leader's got what nobody else could have, either: then a status that speaks of the
    /// request speaks of them all, and the next crowd must not wait for one another.
    var leaderWasReleased: Bool { leader?.wasReleased == true }
}
