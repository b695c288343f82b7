/// The bound of the requests of one origin that are sent to a second server because the first one failed: retries never
/// multiply an outage. Shared by all loops; any thread, without a lock.
package final class RetryBudget: Sendable {
    /// The number of retries in ten seconds that is allowed whatever the share: a share of few requests is none.
    static let alwaysAllowed = 30

    /// The most retries in percent of the requests, both of the last ten seconds.
    private let percent: Int
    /// Requests, and retries.
    private let recent = SlidingCount()

    /// - Parameter percent: retries over requests; 0 to 100.
    init(percent: Int) { self.percent = percent }

    /// Counts a request, however often it is sent.
    func countRequest(at now: Int64) { recent.add(1, at: now) }

    /// Takes a retry out of the budget, if there is one. Loops that take one at the same moment may exceed it by one
    /// each.
    func take(at now: Int64) -> Bool {
        let (requests, retries) = recent.counts(at: now)
        guard retries < Self.alwaysAllowed || (retries + 1) * 100 <= requests * percent else { return false }
        recent.add(0, 1, at: now)
        return true
    }
}
