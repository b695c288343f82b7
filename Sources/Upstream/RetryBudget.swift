import Synchronization

/// The bound of the requests of one origin that are sent to a second server because the first one failed: retries never
/// multiply an outage. Shared by all loops; any thread, without a lock.
package final class RetryBudget: Sendable {
    /// The number of retries in flight that are allowed even beyond the share: a share of few requests is none.
    static let alwaysAllowed = 3

    /// The most retries in percent of the requests, both of the last ten seconds.
    private let percent: Int
    /// Requests, and retries.
    private let recent = SlidingCount()
    private let inFlight = Atomic<Int>(0)

    /// - Parameter percent: retries over requests; 0 to 100.
    init(percent: Int) { self.percent = percent }

    /// Counts a request, however often it is sent.
    func countRequest(at now: Int64) { recent.add(1, at: now) }

    /// Takes a retry out of the budget, if there is one. `ended` gives it back.
    func begin(at now: Int64) -> Bool {
        let others = inFlight.add(1, ordering: .relaxed).oldValue
        let (requests, retries) = recent.counts(at: now)
        guard others < Self.alwaysAllowed || (retries + 1) * 100 <= requests * percent else {
            inFlight.subtract(1, ordering: .relaxed)
            return false
        }
        recent.add(0, 1, at: now)
        return true
    }

    /// Gives a retry back: it has ended, with any outcome.
    func ended() { inFlight.subtract(1, ordering: .relaxed) }

    /// Retries in flight.
    package var retriesInFlight: Int { inFlight.load(ordering: .relaxed) }
}
