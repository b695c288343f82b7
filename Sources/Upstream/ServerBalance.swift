/// Which of an origin's servers is asked next, as one loop sees it: in turn, passing over those that failed too often
/// of late. Pure: time is an argument.
///
/// ```
/// healthy ─maxFailures in a row→ left alone for a cool-down ─success→ healthy
///                                    ↑   └─over: one request tries it─┐
///                                    └────────────────────────────────┘
/// ```
public struct ServerBalance: Sendable {
    struct Health: Sendable {
        var failuresInARow = 0
        /// Monotonic nanoseconds until which the server is left alone.
        var leftAloneUntil: Int64 = .min
        /// When it last began to be left alone, or was back; `nil`: it never was.
        var changedAt: Int64?
    }

    private var health: [Health]
    private var next = 0
    private let maxFailures: Int
    private let cooldown: Int64

    /// - Parameter cooldown: nanoseconds.
    public init(servers: Int, maxFailures: Int, cooldown: Int64) {
        health = Array(repeating: Health(), count: servers)
        self.maxFailures = maxFailures
        self.cooldown = cooldown
    }

    /// The index of the server to ask at `now`. When all are left alone, the one whose time ends soonest: better to ask
    /// a server that may have recovered than to give up.
    /// - Parameter others: none of these, if there is another.
    public mutating func pick(at now: Int64, besides others: [Int] = []) -> Int {
        for step in 0..<health.count {
            let candidate = (next + step) % health.count
            guard health[candidate].leftAloneUntil <= now, !others.contains(candidate) else { continue }
            next = (candidate + 1) % health.count
            // One request tries it. Others pass it over until that one has an answer, or for another cool-down.
            if health[candidate].failuresInARow >= maxFailures { health[candidate].leftAloneUntil = now + cooldown }
            return candidate
        }
        return health.indices.filter { !others.contains($0) }
            .min { health[$0].leftAloneUntil < health[$1].leftAloneUntil } ?? 0
    }

    /// A response came, whatever its status: failures are counted from zero, and the server is asked again.
    /// - Parameter now: is asked for only if it had been left alone.
    /// - Returns: whether it had been left alone.
    public mutating func succeeded(_ server: Int, at now: @autoclosure () -> Int64) -> Bool {
        let failures = health[server].failuresInARow
        guard failures != 0 else { return false }
        let isBack = failures >= maxFailures
        health[server] = Health(changedAt: isBack ? now() : health[server].changedAt)
        return isBack
    }

    /// A failure to connect or to answer, not a response with an error status.
    /// - Returns: whether it is left alone, and was not before.
    public mutating func failed(_ server: Int, at now: Int64) -> Bool {
        health[server].failuresInARow += 1
        if health[server].failuresInARow >= maxFailures { health[server].leftAloneUntil = now + cooldown }
        guard health[server].failuresInARow == maxFailures else { return false }
        health[server].changedAt = now
        return true
    }

    /// How the server is, without its connections.
    func state(of server: Int) -> ServerState {
        let health = health[server]
        let isFailing = health.failuresInARow >= maxFailures
        return ServerState(
            isUp: !isFailing, changedAt: health.changedAt, failingLoops: isFailing ? 1 : 0,
            nextTry: isFailing ? health.leftAloneUntil : nil)
    }
}
