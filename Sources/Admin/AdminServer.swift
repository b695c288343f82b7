import Bytes
package import Libevent
package import Proxy
import HTTPSemantics
package import Routing
import TLS

/// The admin listener: health, metrics, status and purges, on the control loop and away from the clients.
///
/// Owned by its creator, confined to its loop. A connection gets one response and is closed.
package final class AdminServer {
    /// The maximum number of simultaneous connections: enough for a scrape and a few people.
    package static let maxConnections = 64
    /// The time, in nanoseconds, within which a request must arrive whole, and then a response must be accepted by its
    /// client. Between the two there is no deadline.
    static let requestTimeout: Int64 = 10_000_000_000
    /// The time, in nanoseconds, that a peer has to read a response that was sent before the end of its request.
    static let lingerTimeout: Int64 = 1_000_000_000
    /// The time, in nanoseconds, between two reports that `maxConnections` are open.
    static let limitReportInterval: Int64 = 60_000_000_000
    /// The time, in nanoseconds, in which a connection that is being made at a socket of the former program comes about.
    /// A client that comes in this time waits for the second after which its kernel sends a dropped segment again, so
    /// the time is no longer than a nearby client needs.
    static let leaveTime: Int64 = 20_000_000

    /// The time, in nanoseconds, that a client has to send its request once another program accepts the connections.
    static let lastRequestTime: Int64 = 400_000_000

    private let pages: AdminPages
    private let loop: EventLoop
    /// Called for the first request that is refused because of its source.
    private var onRefusal: ((String) -> Void)?
    private let onConnectionLimit: () -> Void
    private var lastLimitReport: Int64?
    private var hosts: [HostPattern] = []
    private var token: AdminToken?
    /// Whether clients speak TLS.
    package let isSecure: Bool
    /// What they are shown in handshakes from now on; `nil` in the clear, or if the certificates are damaged.
    private var tls: (settings: TLSSettings, server: TLSServer)?
    /// One listener, unless this program has taken over the sockets of several loops.
    private var listeners: [Listener] = []
    /// The listeners of `acceptRest`, until their sockets are closed.
    private var leaving: [Listener] = []
    /// The sockets, for the program that takes the place of this one; none once closed.
    package private(set) var sockets: [ListeningSocket] = []
    /// The oldest connection first.
    private var connections: [AdminConnection] = []
    /// Called once no client is about to send its request.
    private var whenFinished: (() -> Void)?

    /// The address of the listener, with the actual port.
    package let address: SocketAddress

    /// Opens `address`, on `loop`, which is the server's control loop. Accepts nothing before `resume`.
    /// - Parameters:
    ///   - tls: the certificates, if clients speak TLS.
    ///   - inherited: sockets that listen already, of which that at `address` is taken.
    ///   - version: the program's version, for the pages.
    ///   - onRefusal: called with the reason, the first time that a request is refused because of its source.
    ///   - onConnectionLimit: called when another connection comes while `maxConnections` are open, at most once a
    ///     minute.
    /// - Throws: if the listener cannot listen at `address`.
    package init(
        at address: SocketAddress, _ settings: AdminSettings, _ tls: TLSSettings, from inherited: InheritedSockets,
        of server: ProxyServer, version: String, on loop: EventLoop,
        onRefusal: @escaping (String) -> Void, onConnectionLimit: @escaping () -> Void
    ) throws(ListenError) {
        self.loop = loop
        self.onRefusal = onRefusal
        self.onConnectionLimit = onConnectionLimit
        isSecure = settings.isSecure
        pages = AdminPages(server, settings, version: version, on: loop)
        var listening = Listener.Settings()
        listening.pathMode = settings.socketMode
        // Its port is shared as those of the clients are: otherwise the next program could not listen at the same port
        // for other addresses.
        let targets = try ListenTarget.open([address], listening, forLoops: 1, from: inherited, for: .admin)
        sockets = targets.flatMap(\.sockets)
        self.address = targets.first?.address ?? address
        listeners = sockets.map(listener(of:))
        apply(settings, tls)
    }

    private func listener(of socket: ListeningSocket) -> Listener {
        Listener(of: socket, on: loop) { [unowned self] descriptor, _ in accept(descriptor) }
    }

    /// Sets the work of `POST /reload`, which gives the outcome to its argument, on the loop.
    package func onReload(_ reload: @escaping (@escaping (ReloadOutcome) -> Void) -> Void) { pages.onReload = reload }

    /// Notes for the pages that the settings were read again: they are in use now, or there was a mistake in them.
    package func reloaded(succeeded: Bool) { pages.reloaded(succeeded: succeeded) }

    /// Listens from now on, also where the kernel then gives it connections that would have come to the program before
    /// this one.
    /// - Throws: if another program listens there by now.
    package func listen() throws(ListenError) { for socket in sockets { try socket.listen() } }

    /// Accepts no connections until `resume`: another program answers.
    package func pause() { for listener in listeners { listener.pause() } }

    /// Accepts connections. Call `listen` before.
    package func resume() { for listener in listeners { listener.resume() } }

    /// Accepts the connections that wait at sockets that the program before this one had at another address, and those
    /// that are being made there. The program before this one must accept no more.
    package func acceptRest(of sockets: [ListeningSocket]) {
        guard !sockets.isEmpty else { return }
        for socket in sockets {
            let listener = listener(of: socket)
            listener.dropNewConnections()
            leaving.append(listener)
            // If memory is short, `leave` accepts them.
            try? listener.start()
        }
        loop.schedule(after: Self.leaveTime) { [weak self] in
            guard let self else { return }
            for listener in leaving {
                listener.leave { [weak self, unowned listener] in self?.leaving.removeAll { $0 === listener } }
            }
        }
    }

    /// Accepts no more connections; those that are open get their response.
    package func stopAccepting() {
        listeners = []
        leaving = []
        sockets = []
    }

    /// Waits for the clients whose connections were accepted and whose requests are yet to come, a short time at most.
    /// Call `stopAccepting` before.
    /// - Parameter completion: called once, perhaps at once.
    package func finish(_ completion: @escaping () -> Void) {
        whenFinished = completion
        loop.schedule(after: Self.lastRequestTime) { [weak self] in self?.whenFinished.take()?() }
        finishIfDone()
    }

    private func finishIfDone() {
        if !connections.contains(where: \.awaitsRequest) { whenFinished.take()?() }
    }

    /// Stops accepting, answers the requests that wait, and ends the open connections.
    package func close() {
        stopAccepting()
        pages.end()
        for connection in connections { connection.end() }
    }

    func ended(_ connection: AdminConnection) {
        connections.removeAll { $0 === connection }
        finishIfDone()
    }

    /// Applies settings that were read again, as far as they may change: the names, the token, and the certificates of
    /// handshakes from now on.
    package func apply(_ settings: AdminSettings, _ tls: TLSSettings) {
        hosts = settings.hosts
        token = settings.tokenFile.map { AdminToken($0.content) }
        guard isSecure, self.tls?.settings != tls else { return }
        var made = TLSServerSettings()
        made.identities = tls.identities
        made.minimumVersion = tls.minimumVersion
        // Certificates that are damaged are mistakes of the settings, which are not applied then.
        if let server = try? TLSServer(made) { self.tls = (tls, server) }
    }

    /// The TLS of a connection whose first bytes have arrived; `nil` if there can be none.
    func secure(_ connection: AdminConnection) -> TLSStream? {
        guard let stream = tls?.server.accept(onDescriptor: connection.descriptorNumber, .off) else { return nil }
        connection.secure(with: stream)
        return stream
    }

    /// The answer to a request that is refused; `nil` if it is allowed.
    func refusal(of head: RequestHead, _ fields: FieldView) -> AdminPage? {
        RequestSource.refusal(head, fields, at: address, isSecure: isSecure, hosts: hosts, token: token)
    }

    func refused(_ page: AdminPage) {
        onRefusal?(String(page.content))
        onRefusal = nil
    }

    private func accept(_ descriptor: consuming Descriptor) {
        guard connections.count < Self.maxConnections || makeRoom() else { return }
        connections.append(AdminConnection(adopting: descriptor, on: loop, pages: pages, of: self))
    }

    /// Ends the oldest connection whose request has not arrived whole. A client that wants a page sends its request at
    /// once, and silent connections must not keep a health check out.
    private func makeRoom() -> Bool {
        reportConnectionLimit()
        guard let oldest = connections.first(where: \.awaitsRequest) else { return false }
        oldest.end()
        return true
    }

    private func reportConnectionLimit() {
        if let lastLimitReport, loop.now - lastLimitReport < Self.limitReportInterval { return }
        lastLimitReport = loop.now
        onConnectionLimit()
    }
}
