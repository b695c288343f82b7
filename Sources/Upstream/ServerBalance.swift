/// Which of an origin's servers is asked next, as one loop sees it: in turn, passing over those that failed too often
/// of late. Likewise which of a server's addresses (`ServerAddresses`). Pure: time is an argument.
///
/// ```
/// healthy ─maxFailures in a row→ left alone for a cool-down ─success→ healthy
///                                    ↑   └─over: one request tries it─┐
///                                    └────────────────────────────────┘
/// ```
/// A try that ends without a verdict, as by a client that leaves, costs as long again as it took: little after a
/// moment, and no unbroken row of clients runs into a server that hangs.
struct ServerBalance: Sendable {
    struct Health: Sendable {
        var failuresInARow = 0
        /// Monotonic nanoseconds until which the server is left alone.
        var leftAloneUntil: Int64 = .min
        /// When it last began to be left alone, or was back; `nil`: it never was.
        var changedAt: Int64?
        var answeredAt: Int64?
        var failedAt: Int64?
    }

    /// What `pick` gives.
    struct Pick: Equatable {
        let server: Int
        /// When the request was chosen to try a server that had been left alone; `nil`: it was not.
        let tryBegan: Int64?
    }

    private var health: [Health]
    private var next: Int
    private let maxFailures: Int
    private let cooldown: Int64

    /// - Parameters:
    ///   - first: the number of the server that is asked first; beyond the last, they are counted on from the first. If
    ///     all loops began with the same one, it would get the first requests of all of them.
    ///   - cooldown: nanoseconds.
    init(servers: Int, startingAt first: Int = 0, maxFailures: Int, cooldown: Int64) {
        health = Array(repeating: Health(), count: servers)
        next = first % max(1, servers)
        self.maxFailures = maxFailures
        self.cooldown = cooldown
    }

    /// The server to ask at `now`. When all are left alone, the one whose time ends soonest: better to ask
    /// a server that may have recovered than to give up.
    /// - Parameter others: none of these, if there is another.
    mutating func pick(at now: Int64, besides others: [Int] = []) -> Pick {
        for step in 0..<health.count {
            let candidate = (next + step) % health.count
            guard health[candidate].leftAloneUntil <= now, !others.contains(candidate) else { continue }
            next = (candidate + 1) % health.count
            guard health[candidate].failuresInARow >= maxFailures else { return Pick(server: candidate, tryBegan: nil) }
            // One request tries it. Others pass it over until that one has an answer or ends without one, or for another
            // cool-down.
            health[candidate].leftAloneUntil = now + cooldown
            return Pick(server: candidate, tryBegan: now)
        }
        let soonest = health.indices.filter { !others.contains($0) }
            .min { health[$0].leftAloneUntil < health[$1].leftAloneUntil }
        return Pick(server: soonest ?? 0, tryBegan: nil)
    }

    /// A try that began then ended with neither an answer nor a failure. Does nothing if others brought one meanwhile.
    mutating func undecided(_ server: Int, tryBegan began: Int64, at now: Int64) {
        guard health[server].failuresInARow >= maxFailures, health[server].leftAloneUntil == began + cooldown else {
            return
        }
        health[server].leftAloneUntil = min(began + cooldown, now + (now - began))
    }

    /// A response came, whatever its status: failures are counted from zero, and the server is asked again.
    /// - Returns: whether it had been left alone.
    mutating func succeeded(_ server: Int, at now: Int64) -> Bool {
        health[server].answeredAt = now
        let failures = health[server].failuresInARow
        guard failures != 0 else { return false }
        let isBack = failures >= maxFailures
        health[server] = Health(changedAt: isBack ? now : health[server].changedAt, answeredAt: now)
        return isBack
    }

    /// A failure to connect or to answer, not a response with an error status.
    /// - Parameter isCertain: it counts as `maxFailures`.
    /// - Returns: whether it is left alone, and was not before.
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

    /// Whether it is passed over.
    func isLeftAlone(_ server: Int, at now: Int64) -> Bool { health[server].leftAloneUntil > now }

    /// There are others from now on.
    /// - Parameter places: of each, which it was before; `nil`: none.
    mutating func change(to places: [Int?]) {
        next = places.firstIndex(of: next) ?? 0
        health = places.map { $0.map { health[$0] } ?? Health() }
    }

    /// How the server is, without its connections.
    func state(of server: Int, at now: Int64) -> ServerState {
        let health = health[server]
        let isFailing = health.failuresInARow >= maxFailures
        return ServerState(
            isUp: !isFailing, changedAt: health.changedAt, failingLoops: isFailing ? 1 : 0,
            nextTry: isFailing ? health.leftAloneUntil : nil, answeredAt: health.answeredAt,
            // Not by the next try, which moves with each one that begins.
            outdatedBy: health.failedAt.flatMap { isFailing && now - $0 >= cooldown ? $0 : nil })
    }
}
