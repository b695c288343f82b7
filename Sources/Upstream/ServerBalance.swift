/// Chooses the next of an origin's servers, as one loop sees them: in turn, passing over servers that failed too often
/// lately. Likewise chooses one of a server's addresses (`ServerAddresses`). Pure: time is an argument.
///
/// ```
/// healthy ─maxFailures in a row→ left alone for a cool-down ─success→ healthy
///                                    ↑   └─over: one request tries it─┐
///                                    └────────────────────────────────┘
/// ```
/// After a try that ends without a verdict, as when its client leaves, the server is left alone for as long again as
/// the try took. A short try costs little, and a server that hangs does not get an unbroken row of clients.
struct ServerBalance: Sendable {
    struct Health: Sendable {
        var failuresInARow = 0
        /// Monotonic nanoseconds until which the server is left alone.
        var leftAloneUntil: Int64 = .min
        /// When the server last began to be left alone, or was back; `nil` if it never was left alone.
        var changedAt: Int64?
        var answeredAt: Int64?
        var failedAt: Int64?
    }

    /// The result of `pick`.
    struct Pick: Equatable {
        let server: Int
        /// When the request was chosen to try a server that had been left alone; `nil` if it was not chosen.
        let tryBegan: Int64?
    }

    private var health: [Health]
    private var next: Int
    private let maxFailures: Int
    private let cooldown: Int64

    /// - Parameters:
    ///   - first: the number of the server that is asked first, modulo the number of servers. If all loops began with
    ///     the same server, it would get the first requests of all of them.
    ///   - cooldown: nanoseconds.
    init(servers: Int, startingAt first: Int = 0, maxFailures: Int, cooldown: Int64) {
        health = Array(repeating: Health(), count: servers)
        next = first % max(1, servers)
        self.maxFailures = maxFailures
        self.cooldown = cooldown
    }

    /// The server to ask at `now`. If all are left alone, the server whose time ends soonest: asking a server that may
    /// have recovered is better than giving up.
    /// - Parameter others: servers not to choose if there is another.
    mutating func pick(at now: Int64, besides others: [Int] = []) -> Pick {
        for step in 0..<health.count {
            let candidate = (next + step) % health.count
            guard health[candidate].leftAloneUntil <= now, !others.contains(candidate) else { continue }
            next = (candidate + 1) % health.count
            guard health[candidate].failuresInARow >= maxFailures else { return Pick(server: candidate, tryBegan: nil) }
            // One request tries the server. Others pass over the server until that try has an answer or ends without
            // one, or for another cool-down.
            health[candidate].leftAloneUntil = now + cooldown
            return Pick(server: candidate, tryBegan: now)
        }
        let soonest = health.indices.filter { !others.contains($0) }
            .min { health[$0].leftAloneUntil < health[$1].leftAloneUntil }
        return Pick(server: soonest ?? 0, tryBegan: nil)
    }

    /// Notes that the try that began at `began` ended with neither an answer nor a failure. Does nothing if other
    /// requests brought a verdict meanwhile.
    mutating func undecided(_ server: Int, tryBegan began: Int64, at now: Int64) {
        guard health[server].failuresInARow >= maxFailures, health[server].leftAloneUntil == began + cooldown else {
            return
        }
        health[server].leftAloneUntil = min(began + cooldown, now + (now - began))
    }

    /// Notes a response of any status: failures are counted from zero, and the server is asked again.
    /// - Returns: whether the server had been left alone.
    mutating func succeeded(_ server: Int, at now: Int64) -> Bool {
        health[server].answeredAt = now
        let failures = health[server].failuresInARow
        guard failures != 0 else { return false }
        let isBack = failures >= maxFailures
        health[server] = Health(changedAt: isBack ? now : health[server].changedAt, answeredAt: now)
        return isBack
    }

    /// Notes a failure to connect or to answer. A response with an error status is not a failure.
    /// - Parameter isCertain: whether the failure counts as `maxFailures` failures.
    /// - Returns: whether the server is now left alone, and was not before.
    mutating func failed(_ server: Int, isCertain: Bool = false, at now: Int64) -> Bool {
        let before = health[server].failuresInARow
        health[server].failuresInARow = isCertain ? max(before + 1, maxFailures) : before + 1
        health[server].failedAt = now
        guard health[server].failuresInARow >= maxFailures else { return false }
        health[server].leftAloneUntil = now + cooldown
        guard before < maxFailures else { return false }
        health[server].changedAt = now
        return true
    }

    /// Whether the server is passed over.
    func isLeftAlone(_ server: Int, at now: Int64) -> Bool { health[server].leftAloneUntil > now }

    /// Replaces the list of servers.
    /// - Parameter places: the former number of each server; `nil` for a new one.
    mutating func change(to places: [Int?]) {
        next = places.firstIndex(of: next) ?? 0
        health = places.map { $0.map { health[$0] } ?? Health() }
    }

    /// The state of the server, without its connections.
    func state(of server: Int, at now: Int64) -> ServerState {
        let health = health[server]
        let isFailing = health.failuresInARow >= maxFailures
        return ServerState(
            isUp: !isFailing, changedAt: health.changedAt, failingLoops: isFailing ? 1 : 0,
            nextTry: isFailing ? health.leftAloneUntil : nil, answeredAt: health.answeredAt,
            // `nextTry` would not do instead, since it moves with each try that begins.
            outdatedBy: health.failedAt.flatMap { isFailing && now - $0 >= cooldown ? $0 : nil })
    }
}
