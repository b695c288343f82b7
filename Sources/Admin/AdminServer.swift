public import Libevent
public import Proxy

/// The admin listener: health, metrics, status and purges, on the control loop and away from the clients.
///
/// Owned by whoever started it, confined to its loop. A connection is answered once and closed.
public final class AdminServer {
    /// Simultaneous connections; further ones are closed at once. Enough for a scrape and a few people.
    static let maxConnections = 64
    /// In nanoseconds: a request that is not complete by then is given up, and an answer that is not taken. In between
    /// nothing is due.
    static let requestTimeout: Int64 = 10_000_000_000
    /// How long a peer has to read an answer that came before the end of its request, in nanoseconds.
    static let lingerTimeout: Int64 = 1_000_000_000

    private let pages: AdminPages
    private let loop: EventLoop
    /// Told of the first request that is refused because of where it comes from.
    private var onRefusal: ((String) -> Void)?
    private var listener: Listener?
    private var connections: [ObjectIdentifier: AdminConnection] = [:]

    /// Where it listens, with the actual port.
    public let address: SocketAddress

    /// Listens at `address`; on `loop`, which is the server's control loop.
    /// - Parameters:
    ///   - inherited: sockets that listen already, of which one may listen there.
    ///   - version: of the program, for its pages.
    ///   - onRefusal: told why, the first time that a request is refused because of where it comes from.
    ///   - onPurge: told in a line what was purged, and how much of it there was.
    /// - Throws: if that address cannot be listened at.
    public init(
        at address: SocketAddress, _ settings: AdminSettings, from inherited: [InheritedListener],
        of server: ProxyServer, version: String, on loop: EventLoop,
        onRefusal: @escaping (String) -> Void, onPurge: @escaping (String) -> Void
    ) throws(ListenError) {
        self.loop = loop
        self.onRefusal = onRefusal
        pages = AdminPages(server, settings, version: version, on: loop, onPurge: onPurge)
        var listening = Listener.Settings()
        listening.pathMode = settings.socketMode
        let accepting = Accepting()
        let listener = try Listener(
            address, from: inherited, on: loop, settings: listening, onFailure: { _ in },
            accept: { descriptor, _ in accepting.server?.accept(descriptor) })
        self.listener = listener
        self.address = listener.localAddress
        accepting.server = self
    }

    /// The listener is made before the server can be named in its closure.
    private final class Accepting {
        weak var server: AdminServer?
    }

    /// The settings were read again: they are in use now, or there was a mistake in them. For the pages.
    public func reloaded(succeeded: Bool) { pages.reloaded(succeeded: succeeded) }

    /// Accepts no more and ends what is open.
    public func close() {
        listener = nil
        for connection in Array(connections.values) { connection.end() }
    }

    func ended(_ connection: AdminConnection) { connections[ObjectIdentifier(connection)] = nil }

    func refused(_ reason: String) {
        onRefusal?(reason)
        onRefusal = nil
    }

    private func accept(_ descriptor: consuming Descriptor) {
        guard connections.count < Self.maxConnections else { return }
        let connection = AdminConnection(adopting: descriptor, at: address, on: loop, pages: pages, of: self)
        connections[ObjectIdentifier(connection)] = connection
    }
}
