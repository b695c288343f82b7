import Bytes
import Libevent
import TLS

/// One loop's connections to one place. A connection keeps its own, even when the place has left the list.
///
/// Confined to its loop. Idle connections are used last in, first out: the connection used last is the least likely to
/// be dead, and surplus connections grow old and close.
final class PlaceConnections {
    private struct Kept {
        /// The idle connections; the one that became idle last is the last.
        var idle: [UpstreamConnection] = []
        /// How long the place keeps idle connections open.
        var patience = ServerPatience()

        mutating func take(mayRepeat: Bool, at now: Int64) -> UpstreamConnection? {
            // If the last connection is too old, so are the others.
            guard let last = idle.last, now < last.deadline.time else { return nil }
            let time = now - last.idleSince
            guard mayRepeat || time < patience.trusted(statesTimeout: last.statesTimeout) else {
                // Not taken, but still open. If the server gets only requests that cannot be sent twice, no other
                // observation shows that its connections may last longer.
                if !last.isKnownOpen { patience.noteOpen(after: time) }
                last.isKnownOpen = true
                return nil
            }
            return idle.removeLast()
        }
    }

    let place: Place
    /// The number of the server in the settings.
    let server: Int
    /// Whether the server is given by a name.
    let isNamed: Bool
    /// How its connections are secured; `nil` in the clear.
    let tls: ServerTLS?
    /// Whether the place is in the list.
    var isListed = true
    /// Whether idle connections are kept: the place is in the list, and not drained.
    var keepsIdle = true
    private let kept = Exclusive(Kept())
    /// The number of open connections, idle ones included.
    var open = 0
    /// The copy of a request that asks whether the place is back, until it has ended.
    var probe: Probe?

    init(_ place: Place, server: Int, isNamed: Bool, tls: ServerTLS?) {
        self.place = place
        self.server = server
        self.isNamed = isNamed
        self.tls = tls
    }

    /// The number of idle connections.
    var idle: Int { kept.use { $0.idle.count } }

    /// Takes the idle connection that became idle last, if the request may use it.
    /// - Parameter mayRepeat: whether the request is sent again if the connection is dead.
    func takeIdle(mayRepeat: Bool, at now: Int64) -> UpstreamConnection? {
        kept.use { $0.take(mayRepeat: mayRepeat, at: now) }
    }

    func keep(_ connection: UpstreamConnection) { kept.use { $0.idle.append(connection) } }

    /// - Returns: whether it was there.
    func forget(_ connection: UpstreamConnection) -> Bool {
        kept.use { kept in
            guard let index = kept.idle.firstIndex(where: { $0 === connection }) else { return false }
            kept.idle.remove(at: index)
            return true
        }
    }

    /// Closes the connections that no client waits for: idle ones, and that of a probe.
    func endUnawaited() {
        // A copy: each connection that ends is forgotten.
        for connection in kept.use({ $0.idle }) { connection.end(.outOfUse) }
        probe?.stop()
    }

    /// Notes that a connection that had been idle for `time` nanoseconds was still open then, or was closed by its
    /// server.
    /// - Parameter metRequest: whether a request had been sent on the connection by then.
    func noteIdle(_ time: Int64, wasClosed: Bool, metRequest: Bool = false) {
        kept.use {
            if wasClosed {
                $0.patience.noteClosed(after: time, metRequest: metRequest)
            } else {
                $0.patience.noteOpen(after: time)
            }
        }
    }
}
