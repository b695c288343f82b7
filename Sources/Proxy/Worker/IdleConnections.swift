/// The connections of one loop that have been idle for longest, found when there are too many. All have to be looked at
/// for that, so many are found at once, and after a search without result the next one waits: a crowd at the door must
/// not cost a walk through all connections each.
struct IdleConnections {
    /// Found at once.
    private static let most = 256
    /// The pause after a search without result, in nanoseconds.
    private static let pause: Int64 = 100_000_000
    /// In nanoseconds: a connection that is younger is not idle, its request is on its way. Without this a crowd at the
    /// door would close each other's connections, and nobody would be told 503.
    private static let least: Int64 = 1_000_000_000

    /// The connections found, with the ends of their idle times; the longest idle last.
    private var found: [(connection: ObjectIdentifier, until: Int64)] = []
    private var nextSearch = Int64.min

    /// - Parameter timeout: how long a connection may be idle, in nanoseconds.
    /// - Returns: whether there are any.
    mutating func find(among connections: [ObjectIdentifier: ClientConnection], at now: Int64, timeout: Int64) -> Bool {
        guard now >= nextSearch else { return false }
        let latest = now - Self.least + timeout
        let idle = connections.compactMap { id, connection in
            connection.idleUntil.flatMap { $0 <= latest ? (connection: id, until: $0) : nil }
        }
        found = Array(idle.sorted { $0.until < $1.until }.prefix(Self.most).reversed())
        if found.isEmpty { nextSearch = now + Self.pause }
        return !found.isEmpty
    }

    /// The longest idle; it may have become busy, or be gone.
    mutating func next() -> (connection: ObjectIdentifier, until: Int64)? { found.popLast() }
}
