import Coalescing
import HTTPSemantics
import Storage

/// What becomes of a request that meets a bound: full memory, a full queue, the longest wait.
extension Transaction {
    /// Does what the operator wants then.
    /// - Parameters:
    ///   - operation: whose waiter the request was, or would have been: a fetch of its own avoids that bound. Nothing
    ///     avoids full memory or a full queue at the origin.
    ///   - failure: of the origin, if it is one: to be asked again by somebody else, it would keep them waiting as long
    ///     again.
    func boundExceeded(_ what: StaticString, by operation: FetchOperation? = nil, meaning failure: OriginFailure? = nil)
    {
        switch worker.settings.coalescing.whenExceeded {
        case .pass where operation != nil && !mustGoAlone:
            guard let failure, let stale = fallback(on: failure) else { return lookAgain(alone: true) }
            return serve(stale, .staleAccepted(age: stale.facts.age(at: worker.moment)), detail: what)
        case .pass, .stale:
            if let stale = fallback(on: .overloaded) {
                return serve(stale, .staleAccepted(age: stale.facts.age(at: worker.moment)), detail: what)
            }
        case .unavailable: break
        }
        // That of memory is told once for all.
        if operation != nil || !worker.isOverloaded { worker.notices.refused(request, at: what) }
        fail(OwnAnswer(.serviceUnavailable, "The proxy is overloaded; try again in a moment."), detail: what)
    }

    /// What is stored, if it may stand in (RFC 9111 §4.2.4).
    func fallback(on failure: OriginFailure) -> StoredResponse? {
        guard let fallback,
            fallback.facts.mayServeStale(
                on: failure, for: request.directives, at: worker.moment, policy: request.route.policy)
        else { return nil }
        return fallback
    }
}
