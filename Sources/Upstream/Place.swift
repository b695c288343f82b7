import Bytes
package import Libevent
import Synchronization

/// One address of one server, with its health and its counts, which all loops share. Requests read the place, and count
/// in it, without a lock.
///
/// Owned by the list of its `ServerGroup`, and by the connections to it. The same object stays over reloads and
/// look-ups that leave the server, with its TLS, and the address.
package final class Place: Sendable {
    /// The server. Only `location` and `isSecure` count: weight and backup stand in the list.
    package let server: UpstreamServer
    /// One address; the two loopback addresses, which are two ways to one server; or none, for a name that was not
    /// looked up yet.
    package let addresses: [SocketAddress]
    /// Different from that of any other place of the program.
    let number: Int

    private static let places = Atomic<Int>(0)

    private let health: Guarded<PlaceHealth>
    /// `PlaceHealth.awayUntil`, to be read without the lock.
    private let away: Atomic<Int64>
    /// When the place was back; `.min`: it was never away.
    private let back = Atomic<Int64>(.min)
    private let failuresInARow = Atomic<Int>(0)
    /// Requests in flight; counted under `least-requests` only.
    private let inFlight = Atomic<Int>(0)
    /// The moving average of the time to a response's head in nanoseconds, and the time of the last one; 0: none yet.
    private let averageLatency = Atomic<Int64>(0)
    private let measuredAt = Atomic<Int64>(0)
    /// Answers, and the failures among them.
    private let answers = SlidingCount()

    init(_ server: UpstreamServer, _ addresses: [SocketAddress], isDrained: Bool = false) {
        self.server = server
        self.addresses = addresses
        number = Self.places.add(1, ordering: .relaxed).newValue
        let health = PlaceHealth(isDrained: isDrained)
        away = Atomic(health.awayUntil)
        self.health = Guarded(health)
    }

    /// Until when the place gets no request but a probe; `PlaceHealth.inUse`: it gets requests.
    var awayUntil: Int64 { away.load(ordering: .relaxed) }
    var isInUse: Bool { awayUntil == PlaceHealth.inUse }
    /// Whether a response that is no failure changes anything.
    var hasFailed: Bool { failuresInARow.load(ordering: .relaxed) != 0 || !isInUse }
    /// When the place was back, to let its share grow from then on.
    var backAt: Int64 { back.load(ordering: .relaxed) }

    /// Changes the health, and publishes the parts of it that requests read.
    @discardableResult
    func change<Result: Sendable>(at now: Int64, _ body: (inout PlaceHealth) -> Result) -> Result {
        health.withLock { health in
            let before = health.awayUntil
            let result = body(&health)
            let after = health.awayUntil
            if before != PlaceHealth.inUse, after == PlaceHealth.inUse {
                back.store(now, ordering: .relaxed)
                failuresInARow.store(0, ordering: .relaxed)
                answers.clear()
                averageLatency.store(0, ordering: .relaxed)
            }
            if before != after { away.store(after, ordering: .releasing) }
            return result
        }
    }

    /// Whether the place is away, and was in use at `time`, as far as is known.
    func isAway(since time: Int64) -> Bool {
        let health = presentHealth
        return health.awayUntil != PlaceHealth.inUse && health.changedAt ?? .min >= time
    }

    /// A copy, for operators.
    var presentHealth: PlaceHealth { health.withLock { $0 } }

    // MARK: Answers

    /// Notes a response that is no failure. Failures are counted from zero.
    /// - Parameter isCounted: whether it is compared with other places' answers.
    func noteAnswer(isCounted: Bool, at now: Int64) {
        if failuresInARow.load(ordering: .relaxed) != 0 { failuresInARow.store(0, ordering: .relaxed) }
        if isCounted { answers.add(1, at: now) }
    }

    /// - Returns: the failures in a row, this one included.
    func noteFailure(isCounted: Bool, at now: Int64) -> Int {
        if isCounted { answers.add(1, 1, at: now) }
        return failuresInARow.add(1, ordering: .relaxed).newValue
    }

    /// Of the last ten seconds.
    func recentAnswers(at now: Int64) -> (answers: Int, failures: Int) {
        let (answers, failures) = answers.counts(at: now)
        return (answers, failures)
    }

    // MARK: Load

    /// Requests in flight. Each `begin` is followed by one `end`.
    package var requestsInFlight: Int { inFlight.load(ordering: .relaxed) }
    func begin() { inFlight.add(1, ordering: .relaxed) }
    func end() { inFlight.subtract(1, ordering: .relaxed) }

    /// Adds a time to a response's head to the average, as it is by now, with an eighth of the weight.
    func noteLatency(_ nanoseconds: Int64, at now: Int64) {
        let average = latency(at: now).map { $0 + (nanoseconds - $0) / 8 } ?? nanoseconds
        averageLatency.store(max(1, average), ordering: .relaxed)
        measuredAt.store(now, ordering: .relaxed)
    }

    /// The average time to a response's head in nanoseconds; `nil`: none came yet. It halves with every ten seconds
    /// without a response: otherwise a place that was slow once would hardly be asked again.
    func latency(at now: Int64) -> Int64? {
        let average = averageLatency.load(ordering: .relaxed)
        guard average > 0 else { return nil }
        let age = max(0, now - measuredAt.load(ordering: .relaxed))
        return max(1, average >> min(62, age / Self.latencyHalves))
    }

    private static let latencyHalves: Int64 = 10_000_000_000
}
