import Synchronization

/// Bounds how many requests of one origin are sent to a second server because of what the first one did, so that
/// retries never multiply an outage. Shared by all loops; any thread, without a lock.
package final class RetryBudget: Sendable {
    /// So many retries at a time are allowed whatever the share: at few requests, a share of them is none.
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

    /// The retry has ended, whatever its outcome.
    func ended() { inFlight.subtract(1, ordering: .relaxed) }

    /// Retries in flight.
    package var retriesInFlight: Int { inFlight.load(ordering: .relaxed) }
}
