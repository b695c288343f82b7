public import Libevent
public import Proxy

/// The admin listener: health, metrics, status and purges, on the control loop and away from the clients.
///
/// Owned by whoever started it, confined to its loop. A connection is answered once and closed.
public final class AdminServer {
    /// Simultaneous connections. Enough for a scrape and a few people.
    public static let maxConnections = 64
    /// In nanoseconds: a request that is not complete by then is given up, and an answer that is not taken. In between
    /// nothing is due.
    static let requestTimeout: Int64 = 10_000_000_000
    /// How long a peer has to read an answer that came before the end of its request, in nanoseconds.
    static let lingerTimeout: Int64 = 1_000_000_000
    /// That all places are taken is told once in this time, in nanoseconds.
    static let crowdReportInterval: Int64 = 60_000_000_000

    private let pages: AdminPages
    private let loop: EventLoop
    /// Told of the first request that is refused because of where it comes from.
    private var onRefusal: ((String) -> Void)?
    private let onCrowd: () -> Void
    private var lastCrowdReport: Int64?
    private var listener: Listener?
    /// The oldest first.
    private var connections: [AdminConnection] = []

    /// Where it listens, with the actual port.
    public let address: SocketAddress

    /// Listens at `address`; on `loop`, which is the server's control loop.
    /// - Parameters:
    ///   - inherited: sockets that listen already, of which one may listen there.
    ///   - version: of the program, for its pages.
    ///   - onRefusal: told why, the first time that a request is refused because of where it comes from.
    ///   - onCrowd: told that `maxConnections` are open and another one came, at most once a minute.
    ///   - onPurge: told in a line what was purged, and how much of it there was.
    /// - Throws: if that address cannot be listened at.
    public init(
        at address: SocketAddress, _ settings: AdminSettings, from inherited: [InheritedListener],
        of server: ProxyServer, version: String, on loop: EventLoop,
        onRefusal: @escaping (String) -> Void, onCrowd: @escaping () -> Void, onPurge: @escaping (String) -> Void
    ) throws(ListenError) {
        self.loop = loop
        self.onRefusal = onRefusal
        self.onCrowd = onCrowd
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
        for connection in connections { connection.end() }
    }

    func ended(_ connection: AdminConnection) { connections.removeAll { $0 === connection } }

    func refused(_ reason: String) {
        onRefusal?(reason)
        onRefusal = nil
    }

    private func accept(_ descriptor: consuming Descriptor) {
        guard connections.count < Self.maxConnections || makeRoom() else { return }
        connections.append(AdminConnection(adopting: descriptor, at: address, on: loop, pages: pages, of: self))
    }

    /// Ends the oldest connection whose request has not come whole: who asks for a page sends that at once, and silent
    /// ones must not keep a health check out.
    private func makeRoom() -> Bool {
        tellOfCrowd()
        guard let oldest = connections.first(where: \.awaitsRequest) else { return false }
        oldest.end()
        return true
    }

    private func tellOfCrowd() {
        if let lastCrowdReport, loop.now - lastCrowdReport < Self.crowdReportInterval { return }
        lastCrowdReport = loop.now
        onCrowd()
    }
}
