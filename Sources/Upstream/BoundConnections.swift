import Libevent

/// The connections to origins that are one client connection's own, because on one of them its user may have been
/// authenticated (NTLM, Negotiate): what else comes on the client connection goes over them, and nothing of anybody else.
///
/// Owned by the client connection, which closes it when it ends. Confined to the loop of both. A connection that is in
/// use comes back when its exchange is complete; it holds its owner, and the owner the idle ones, until either ends.
///
/// ```
/// open ─client connection ends→ closed: the idle ones are closed at once, one in use after its exchange
/// ```
public final class BoundConnections {
    /// As many as one client connection keeps: one to each origin, of few origins.
    static let most = 4

    /// At most one of each pool. The one that became idle last is the last.
    private var idle: [UpstreamConnection] = []
    private var isClosed: Bool

    /// Of a client connection that is open.
    public init() { isClosed = false }

    private init(isClosed: Bool) { self.isClosed = isClosed }

    /// Of a client connection that has gone.
    public static var closed: BoundConnections { BoundConnections(isClosed: true) }

    /// The one to the origin of `pool`, if there is one that is idle. Not one whose time is over; but one of any age,
    /// whatever is to be sent on it: a new one would not be authenticated.
    func takeIdle(of pool: UpstreamPool) -> UpstreamConnection? {
        guard let index = idle.firstIndex(where: { $0.pool === pool }) else { return nil }
        guard pool.loop.now < idle[index].deadline.time else { return nil }
        return idle.remove(at: index)
    }

    /// Keeps a connection for the next exchange.
    func keep(idle connection: UpstreamConnection) -> Bool {
        guard !isClosed, !connection.pool.isRetired else { return false }
        // Out of the list before they end: ending asks to be forgotten.
        let former = idle.filter { $0.pool === connection.pool }
        idle.removeAll { $0.pool === connection.pool }
        former.forEach { $0.end(.surplus) }
        if idle.count == Self.most { idle.removeFirst().end(.surplus) }
        idle.append(connection)
        return true
    }

    func forget(idle connection: UpstreamConnection) { idle.removeAll { $0 === connection } }

    /// The client connection ends. A second call does nothing.
    public func close() {
        isClosed = true
        let left = idle
        idle = []
        for connection in left { connection.end(.clientEnded) }
    }
}
