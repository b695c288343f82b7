import Libevent

/// The connections to origins that belong to one client connection, because its user may be authenticated on one of
/// them (NTLM, Negotiate). Later requests of the client connection use them, and no request of another client does.
///
/// They begin with a request that has such credentials, not with the 401 that asks for them: a client that never
/// answers the 401 would hold a connection, so that one is closed. Nothing in a later request tells whose it is, so all
/// later requests of the client connection pass, and their responses are for no other client. Hits stay hits: no stored
/// response came over such a connection.
///
/// Owned by the client connection, which calls `close()` when it ends. Confined to the loop of both. A connection in
/// use returns when its exchange is complete. It holds this object, and this object holds the idle connections, until
/// either ends.
///
/// ```
/// open ─client connection ends→ closed: idle connections end at once, a connection in use after its exchange
/// ```
package final class BoundConnections {
    /// The most idle connections of one client connection: one to each of a few origins.
    static let most = 4

    /// At most one connection of each pool. The connection that became idle last is the last in the list.
    private var idle: [UpstreamConnection] = []
    private var isClosed: Bool

    /// For a client connection that is open.
    package init() { isClosed = false }

    private init(isClosed: Bool) { self.isClosed = isClosed }

    /// For a client connection that has ended.
    package static var closed: BoundConnections { BoundConnections(isClosed: true) }

    /// The idle connection to the origin of `pool`, if there is one and its deadline has not passed. Its age does not
    /// matter, even for a request that cannot be sent twice: a new connection would not be authenticated.
    func takeIdle(of pool: UpstreamPool) -> UpstreamConnection? {
        guard let index = idle.firstIndex(where: { $0.pool === pool }) else { return nil }
        guard pool.loop.now < idle[index].deadline.time else { return nil }
        return idle.remove(at: index)
    }

    /// Keeps a connection for the next exchange. False if the connection cannot be kept.
    func keep(idle connection: UpstreamConnection) -> Bool {
        guard !isClosed, !connection.pool.isRetired else { return false }
        // Removed from the list before they end, since `end` calls `forget(idle:)`.
        let former = idle.filter { $0.pool === connection.pool }
        idle.removeAll { $0.pool === connection.pool }
        former.forEach { $0.end(.surplus) }
        if idle.count == Self.most { idle.removeFirst().end(.surplus) }
        idle.append(connection)
        return true
    }

    func forget(idle connection: UpstreamConnection) { idle.removeAll { $0 === connection } }

    /// Called when the client connection ends. A second call does nothing.
    package func close() {
        isClosed = true
        let left = idle
        idle = []
        for connection in left { connection.end(.clientEnded) }
    }
}
