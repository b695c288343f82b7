import Coalescing
import HTTPSemantics
import Storage
import Upstream

/// Ending with what is stored: the origin confirmed it, or it stands in for an origin that failed.
extension Fetch {
    func originFailed(_ error: UpstreamError) {
        if let stale = usableStale(on: error.originFailure) {
            return answer(with: stale, source: .staleOnError(error.originFailure), status: nil)
        }
        var error = error
        error.duration = UInt64(max(0, worker.now - sentAt.monotonic))
        end(.failed(error))
    }

    func usableStale(on failure: OriginFailure) -> StoredResponse? {
        guard let stored = plan.fallback,
            stored.facts.mayServeStale(
                on: failure, for: request.directives, at: worker.moment, policy: request.route.policy)
        else { return nil }
        return stored
    }

    /// Ends with a response that is already complete.
    /// - Parameter isStored: whether it was put into the store as it is.
    func answer(with stored: StoredResponse, source: FetchedResponse.Source, status: Status?, isStored: Bool = false) {
        let storedHead = stored.head
        let sharing = stored.facts.sharing(for: request, plan, request.route.policy, hasPassCookie: hasPassCookie)
        // RFC 9111 §5.2.2.4: after `no-cache`, each request needs a validation of its own; and the 304 may have made it
        // private.
        let forWaiters: Sharing = if case .nobody = sharing, source == .validated { sharing } else { .waitersOnly }
        operation?.close()
        var circumstances = circumstances(of: stored)
        circumstances.otherKey = Placement.staysUnderItsKey(stored, for: request) ? nil : request.sentKey
        circumstances.search = Placement.stated(storedHead.view)
        let fetched = FetchedResponse(
            stored, source: source, sharing: forWaiters, originStatus: status, length: stored.bodyLength,
            willBeStored: isStored, circumstances)
        fetched.noteEnd(at: worker.moment)
        deliver(fetched)
        end(source == .validated ? .complete : .stoodIn)
    }
}
