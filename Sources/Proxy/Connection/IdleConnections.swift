/// The connections of one loop that have been idle for longest, found when there are too many. A search examines all
/// connections. So it finds many at once, and after a search without result the next search waits: a burst of new
/// clients must not cost one search each.
struct IdleConnections {
    /// The most connections found in one search.
    private static let most = 256
    /// The pause after a search without result, in nanoseconds.
    private static let pause: Int64 = 100_000_000
    /// The least idle time of a connection that may be closed, in nanoseconds: the request on a newer connection is
    /// still on its way. Without it, clients in a burst would close each other's connections, and none would get 503.
    private static let least: Int64 = 1_000_000_000

    /// The connections found, with the ends of their idle times; the longest idle last.
    private var found: [(connection: ObjectIdentifier, until: Int64)] = []
    private var nextSearch = Int64.min

    /// - Parameter timeout: how long a connection may be idle, in nanoseconds.
    /// - Returns: whether any were found.
    mutating func find(among connections: [ObjectIdentifier: ClientTransport], at now: Int64, timeout: Int64) -> Bool {
        guard now >= nextSearch else { return false }
        let latest = now - Self.least + timeout
        let idle = connections.compactMap { id, connection in
            connection.idleUntil.flatMap { $0 <= latest ? (connection: id, until: $0) : nil }
        }
        found = Array(idle.sorted { $0.until < $1.until }.prefix(Self.most).reversed())
        if found.isEmpty { nextSearch = now + Self.pause }
        return !found.isEmpty
    }

    /// Removes and returns the connection that has been idle for longest. It may have become busy, or be closed, since
    /// the search.
    mutating func next() -> (connection: ObjectIdentifier, until: Int64)? { found.popLast() }
}
