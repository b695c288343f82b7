import Coalescing
import HTTPSemantics
import Storage

/// What becomes of a request that meets a bound: full memory, a full queue, the longest wait.
extension Transaction {
    /// What the operator wants then.
    /// - Parameter operation: whose waiter the request was, or would have been: a fetch of its own is a way round that. There is none
    ///   round full memory or a full queue at the origin.
    func boundExceeded(_ what: StaticString, by operation: FetchOperation? = nil) {
        switch worker.settings.coalescing.whenExceeded {
        case .pass:
            if operation != nil, !mustGoAlone { return lookAgain(alone: true) }
            if serveStale(because: what) { return }
        case .stale:
            if serveStale(because: what) { return }
        case .unavailable:
            break
        }
        fail(.serviceUnavailable, "The proxy is at one of its limits; try again in a moment.", detail: what)
    }

    /// - Returns: false when nothing is stored that may stand in (RFC 9111 §4.2.4).
    private func serveStale(because detail: StaticString) -> Bool {
        guard let fallback, fallback.facts.mayServeStale(
            on: .overloaded, for: request.directives, at: worker.moment, policy: request.route.policy)
        else { return false }
        serve(fallback, .staleAccepted(age: fallback.facts.age(at: worker.moment)), detail: detail)
        return true
    }
}
