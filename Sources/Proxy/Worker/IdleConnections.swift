/// The connections of one loop that have been idle for longest, found when there are too many. All have to be looked at for that, so many are found
/// at once, and after a search without result the next one waits: a crowd at the door must not cost a walk through all connections each.
struct IdleConnections {
    /// Found at once.
    private static let most = 256
    /// After a search without result, in nanoseconds.
    private static let pause: Int64 = 100_000_000

    /// With the end of its idle time; the longest idle last.
    private var found: [(connection: ObjectIdentifier, until: Int64)] = []
    private var nextSearch = Int64.min

    /// - Returns: whether there are any.
    mutating func find(among connections: [ObjectIdentifier: ClientConnection], at now: Int64) -> Bool {
        guard now >= nextSearch else { return false }
        let idle = connections.compactMap { id, connection in connection.idleUntil.map { (connection: id, until: $0) } }
        found = Array(idle.sorted { $0.until < $1.until }.prefix(Self.most).reversed())
        if found.isEmpty { nextSearch = now + Self.pause }
        return !found.isEmpty
    }

    /// The longest idle; it may have become busy, or be gone.
    mutating func next() -> (connection: ObjectIdentifier, until: Int64)? { found.popLast() }
}
