import Bytes
import HTTP2
import HTTPSemantics
import Libevent
import Routing
import Synchronization
import TLS
import Telemetry

/// The client connections of one loop: accepts them as long as there is room, and holds the open ones. Also holds the
/// objects that these share, such as the batch and the lent buffers, and their settings.
///
/// Owned by its worker, confined to its loop.
final class ClientConnections {
    let context: LoopContext
    /// The clients whose bytes were read, and the hits that wait to be written to them.
    let batch: SocketBatch
    let starvedClients: StarvedClients
    let latestGroup = LatestGroup()
    /// For the responses and the frames of HTTP/2, of all connections by turns.
    let fieldList = FieldList()
    let sessionMemory = SessionMemory()
    private let contexts: ReadContexts
    private(set) var hitPath: HitPath
    // Also in the loop's settings; held here to avoid a retain.
    private(set) var timeouts: ClientTimeouts
    private(set) var mostRequests: Int
    /// Whether connections persist after their current request.
    private(set) var keepsConnections = true
    /// Whether idle connections are to close: the program ends.
    private var closesIdle = false
    private var listeners: [Listener] = []
    /// The listeners that accept only what waits in their queues.
    private var leaving: [ObjectIdentifier: Listener] = [:]
    /// Those that speak TLS, or the PROXY protocol, by their addresses in the settings.
    private var specialListeners: [SocketAddress: ListenerSettings] = [:]
    /// The certificates of the TLS listeners; `nil` if there are none.
    private(set) var tls: TLSServer?
    let handshakes: Handshakes
    /// Connections whose handshake is not done.
    private var handshaking: [ObjectIdentifier: HandshakingConnection] = [:]
    /// Connections whose PROXY header has not arrived.
    private var proxied: [ObjectIdentifier: ProxiedConnection] = [:]
    private var connections: [ObjectIdentifier: ClientTransport] = [:]
    private var idle = IdleConnections()
    /// Clients that got 503 or 429 before any byte from them was read. If such a connection were closed at once, the kernel
    /// would answer the client's request with a reset, which may erase the response before the client reads it (RFC
    /// 9112 §9.6).
    private var turnedAway: [ObjectIdentifier: ClientTransport] = [:]
    /// The most clients in `turnedAway`; further ones are closed at once. Each holds a descriptor, and there are few
    /// when there is no room.
    private static let mostTurnedAway = 16
    private static let tooMany = SyntheticResponse(
        .serviceUnavailable, "Too many connections; try again in a moment.")
    /// Called once no connection is left; only while draining.
    private var onEmpty: (() -> Void)?
    /// How many connections had a request or tunnel when draining began, or might still send a request and have not
    /// ended without one; `nil` before.
    private var underWay: Int?
    /// When the connections that say nothing are looked through again, in nanoseconds of the loop's clock.
    private var nextSilentSearch: Int64 = 0
    private var hasReportedCutOff = false

    init(ofWorker index: Int, _ tls: TLSServer?, in context: LoopContext) {
        self.context = context
        self.tls = tls
        specialListeners = context.settings.specialListeners
        handshakes = Handshakes(loop: context.loop)
        batch = SocketBatch(on: context.loop, outputCapacity: 64 << 10)
        starvedClients = StarvedClients(loop: context.loop, index: index, turns: context.turns)
        let settings = context.loopSettings
        contexts = ReadContexts(limits: settings.headLimits)
        timeouts = settings.timeouts
        mostRequests = settings.mostRequests
        hitPath = HitPath(in: context, output: batch.output, fieldList)
        answersChallenges = context.settings.tls.acmeChallenges != nil
    }

    /// Whether some requests are challenges of certificate authorities.
    private(set) var answersChallenges = false

    /// Applies the settings that the context has by now.
    /// - Parameter tls: the certificates of handshakes from now on.
    func applySettings(_ tls: TLSServer?) {
        self.tls = tls
        specialListeners = context.settings.specialListeners
        let settings = context.loopSettings
        hitPath = HitPath(in: context, output: batch.output, fieldList)
        timeouts = settings.timeouts
        mostRequests = settings.mostRequests
        answersChallenges = context.settings.tls.acmeChallenges != nil
        contexts.change(settings.headLimits)
        latestGroup.forget()
    }

    /// Prepares for connections at listeners of new settings, which may come before the settings apply.
    func expect(at new: [SocketAddress: ListenerSettings], _ newTLS: TLSServer?) {
        specialListeners.merge(new) { former, _ in former }
        tls = tls ?? newTLS
    }

    // An object reached through two others is retained at each use: the same as in `LoopContext`.

    /// Serves a client whose bytes were read, in the next batch.
    @inline(never)
    func serve(_ client: ClientTransport) { batch.add(client) }

    /// Bytes in the output of the batch.
    var pendingCount: Int { @inline(never) get { batch.output.count } }

    /// What clients of HTTP/2 are told, or held to.
    var sessionLimits: ServerSession.Limits {
        var limits = ServerSession.Limits()
        let settings = context.settings.clients
        (limits.streams, limits.streamWindow) = (settings.maxStreams, settings.streamWindow)
        limits.connectionWindow = 4 * settings.streamWindow
        (limits.fieldLines, limits.headBytes) = (settings.maxFieldLines, settings.maxHeadSize)
        return limits
    }

    func lendContext() -> ReadContext { contexts.lend() }
    func lendContentContext() -> ReadContext { contexts.lendForContent() }
    func takeBack(_ context: consuming ReadContext) { contexts.takeBack(context) }

    /// Closes each connection after its current request from now on; idle connections stay open until `drain`.
    func stopPersisting() { keepsConnections = false }

    /// Accepts connections at `targets` from now on, on the sockets that are for this loop.
    /// - Throws: if memory is short. `stopListening` accepts what waits even then.
    func listen(at targets: [ListenTarget], asLoop index: Int, among count: Int) throws(ListenError) {
        var settings = Listener.Settings()
        settings.backlog = Int32(clamping: context.settings.backlog)
        var failure: ListenError?
        for target in targets {
            for socket in target.sockets(ofLoop: index, among: count) {
                let listener = Listener(
                    of: socket, on: context.loop, settings: settings,
                    onFailure: { [notices = context.notices] error in notices.cannotAccept(error) },
                    accept: { [unowned self, configured = target.configured] descriptor, peer in
                        accept(descriptor, from: peer, at: configured)
                    })
                listeners.append(listener)
                do throws(ListenError) { try listener.start() } catch { failure = error }
            }
        }
        if let failure { throw failure }
    }

    /// Accepts only connections at `addresses` that the kernel has already queued. Open connections stay.
    func stopListening(at addresses: [SocketAddress]) {
        let all = listeners
        listeners.removeAll { addresses.contains($0.localAddress) }
        for listener in all where addresses.contains(listener.localAddress) {
            leaving[ObjectIdentifier(listener)] = listener
            listener.leave { [unowned self, unowned listener] in
                leaving[ObjectIdentifier(listener)] = nil
                reportIfEmpty()
            }
        }
    }

    /// - Parameter configured: the listener's address as the settings have it.
    private func accept(_ descriptor: consuming Descriptor, from peer: SocketAddress, at configured: SocketAddress) {
        guard !specialListeners.isEmpty, let listener = specialListeners[configured] else {
            return take(descriptor, from: peer, .plain)
        }
        let offer = ListenerOffer(of: listener)
        guard listener.isProxied else { return take(descriptor, from: peer, offer) }
        guard context.recorder.trustedProxies.include(peer) else {
            context.notices.notProxied(peer, because: "it is not in clients.trusted-proxies", status: .forbidden)
            let answer = SyntheticResponse(.forbidden, "Only trusted proxies may connect here.")
            return turnAway(descriptor, from: peer, with: answer, offer)
        }
        let most = context.settings.clients.maxConnections
        guard proxied.count < most else {
            context.metrics.add(.clientConnectionsRefused)
            context.notices.tooManyConnections(most: most)
            return turnAway(descriptor, from: peer, with: Self.tooMany, offer)
        }
        let connection = ProxiedConnection(adopting: descriptor, peer: peer, offer, clients: self)
        proxied[ObjectIdentifier(connection)] = connection
        connection.begin()
    }

    /// Refuses a connection that does not begin with a PROXY header.
    func refuse(
        _ connection: ProxiedConnection, _ descriptor: consuming Descriptor, because error: ProxyHeader.SyntaxError
    ) {
        let peer = connection.peer
        context.notices.notProxied(peer, because: error.rawValue, status: .badRequest)
        let answer = SyntheticResponse(.badRequest, "A connection to this listener begins with a PROXY header.")
        turnAway(descriptor, from: peer, with: answer)
        ended(connection)
    }

    /// Takes the connection of a client that a PROXY header names.
    /// - Parameter early: the bytes behind the header.
    func take(
        _ connection: ProxiedConnection, _ descriptor: consuming Descriptor, from client: SocketAddress?,
        early: ByteBuffer
    ) {
        take(descriptor, from: client ?? connection.peer, connection.offer, early: early)
        ended(connection)
    }

    func ended(_ connection: ProxiedConnection) {
        proxied[ObjectIdentifier(connection)] = nil
        reportIfEmpty()
    }

    /// Serves a client.
    private func take(
        _ descriptor: consuming Descriptor, from peer: SocketAddress, _ offer: ListenerOffer,
        early: ByteBuffer? = nil
    ) {
        let client = clientToCount(peer)
        if let client, let most = context.settings.clients.maxConnectionsPerClient,
            !context.shared.clientCounts.add(client, upTo: most)
        {
            context.metrics.add(.clientConnectionsLimited)
            context.notices.tooManyConnections(of: client, most: most)
            let answer = SyntheticResponse(Status(429), "This client has too many connections; close one of them.")
            return turnAway(descriptor, from: peer, with: answer, offer)
        }
        let count = context.shared.connections.wrappingAdd(1, ordering: .relaxed).newValue
        let most = context.settings.clients.maxConnections
        guard count <= most || makeRoom(upTo: most) else {
            context.shared.connections.subtract(1, ordering: .relaxed)
            if let client { context.shared.clientCounts.remove(client) }
            context.metrics.add(.clientConnectionsRefused)
            context.notices.tooManyConnections(most: most)
            return turnAway(descriptor, from: peer, with: Self.tooMany, offer)
        }
        // A reload may have lowered the limit by many: close one idle connection more for each new one.
        if count > most + 1 { _ = makeRoom(upTo: most) }
        context.metrics.add(.clientConnectionsOpened)
        if let before = underWay { underWay = before + 1 }
        guard let certificates = offer.certificates else {
            let connection = HTTP1Connection(adopting: descriptor, peer: peer, clients: self)
            connection.mayBecomeHTTP2 = offer.speaksHTTP2
            connection.isCounted = client != nil
            return serve(connection, early: early)
        }
        let connection = HandshakingConnection(
            adopting: descriptor, peer: peer, offer, certificates, early: early, isCounted: client != nil, clients: self
        )
        handshaking[ObjectIdentifier(connection)] = connection
        connection.begin()
        if closesIdle { connection.drain() }
    }

    /// The client began with the preface of HTTP/2 (RFC 9113 §3.3).
    func speaksHTTP2(_ former: HTTP1Connection, _ bytes: ByteBuffer) {
        let early = ByteBuffer(capacity: bytes.count)
        early.append(bytes.span)
        guard let descriptor = former.giveUp() else { return }
        connections[ObjectIdentifier(former)] = nil
        let connection = HTTP2Connection(adopting: descriptor, peer: former.peer, clients: self)
        connection.isCounted = former.isCounted
        serve(connection, early: early)
    }

    private func serve(_ connection: ClientTransport, early: ByteBuffer?) {
        connections[ObjectIdentifier(connection)] = connection
        connection.begin(with: early)
    }

    /// The client whose connections are counted: `nil` if there is no limit, for trusted proxies, which have many
    /// clients, and for Unix sockets, whose clients have no address.
    private func clientToCount(_ peer: SocketAddress) -> IPAddress? {
        guard context.settings.clients.maxConnectionsPerClient != nil, let address = IPAddress(peer),
            !context.recorder.trustedProxies.include(peer)
        else { return nil }
        return address.ofClient
    }

    /// Closes the connection that has been idle for longest. Called only at the limit: below it, idle connections take
    /// no other client's place.
    private func makeRoom(upTo most: Int) -> Bool {
        // Serve the pending batch first: a client whose request was just read is not idle, and serving it may close a
        // connection.
        batch.serve()
        if context.shared.connections.load(ordering: .relaxed) <= most { return true }
        var maySearch = true
        while true {
            while let (candidate, until) = idle.next() {
                if let connection = connections[candidate], connection.idleUntil == until, connection.closeIfIdle() {
                    return true
                }
            }
            guard maySearch, idle.find(among: connections, at: context.loop.now, timeout: timeouts.idle) else {
                return endSilentHandshake()
            }
            maySearch = false
        }
    }

    /// A client that speaks TLS would not understand the answer, which is not worth a handshake.
    private func turnAway(
        _ descriptor: consuming Descriptor, from peer: SocketAddress, with answer: SyntheticResponse,
        _ offer: ListenerOffer = .plain
    ) {
        guard offer.certificates == nil else { return Socket(adopting: descriptor, on: context.loop).abort() }
        let client = HTTP1Connection(adopting: descriptor, peer: peer, clients: self)
        turnedAway[ObjectIdentifier(client)] = client
        client.turnAway(with: answer)
        if turnedAway.count > Self.mostTurnedAway { client.end() }
    }

    /// Called by each connection, once, when it has ended.
    /// - Parameter wasIdle: whether it had no request in progress. While draining, this means that it has sent none.
    func ended(_ connection: ClientTransport, wasIdle: Bool) {
        guard connections.removeValue(forKey: ObjectIdentifier(connection)) != nil else {
            turnedAway[ObjectIdentifier(connection)] = nil
            return
        }
        if wasIdle, let before = underWay { underWay = before - 1 }
        discount(connection.peer, isCounted: connection.isCounted)
    }

    private func discount(_ peer: SocketAddress, isCounted: Bool) {
        context.shared.connections.subtract(1, ordering: .relaxed)
        if isCounted, let address = IPAddress(peer) { context.shared.clientCounts.remove(address.ofClient) }
        context.metrics.add(.clientConnectionsClosed)
        reportIfEmpty()
    }

    /// Accepts only connections that the kernel has already queued, closes each connection after its current request,
    /// or after its first one if that arrives soon, and calls `whenEmpty` once no connection is left.
    /// - Parameter closingIdle: otherwise each idle connection waits for one more request.
    func drain(closingIdle: Bool, whenEmpty: @escaping () -> Void) {
        stopListening(at: listeners.map(\.localAddress))
        // Requests of the connections accepted last may have been read: serve them.
        batch.serve()
        onEmpty = whenEmpty
        closesIdle = closingIdle
        if closingIdle {
            for connection in Array(connections.values) { connection.drain() }
            for connection in handshaking.values { connection.drain() }
        }
        underWay = connections.values.count { $0.phase != .lingering } + handshaking.count
        reportIfEmpty()
    }

    /// Ends every connection now.
    func cut() {
        reportCutOff()
        for connection in Array(connections.values) { connection.cut() }
        for client in Array(turnedAway.values) { client.end() }
        for connection in Array(proxied.values) { connection.end() }
        for connection in Array(handshaking.values) { connection.end("the program ends") }
    }

    /// Counts the requests and tunnels that are about to be aborted. Only the first call has an effect.
    func reportCutOff() {
        guard !hasReportedCutOff else { return }
        hasReportedCutOff = true
        var report = DrainReport()
        var idle = 0
        for connection in connections.values {
            switch connection.phase {
            case .reading: if connection.idleUntil == nil { report.cutRequests += 1 } else { idle += 1 }
            case .serving: report.cutRequests += 1
            case .tunnelling: report.cutTunnels += 1
            case .lingering, .closed: break
            }
        }
        idle += handshaking.count
        // `underWay` is `nil` if there was no drain, because a second signal arrived at once.
        report.ended = underWay.map { $0 - idle - report.cutRequests - report.cutTunnels } ?? 0
        context.shared.drained.withLock { $0.add(report) }
    }

    private func reportIfEmpty() {
        if connections.isEmpty, leaving.isEmpty, proxied.isEmpty, handshaking.isEmpty { onEmpty.take()?() }
    }
}

// MARK: - Handshakes

extension ClientConnections {
    /// Serves a client whose handshake is done.
    func take(_ former: HandshakingConnection, _ descriptor: consuming Descriptor, through stream: TLSStream) {
        forget(former)
        context.metrics.add(
            .handshakes(ClientHandshake(isTLS13: stream.isTLS13, isResumed: stream.isResumed)))
        let security = ClientSecurity(stream, former.certificates)
        let connection =
            stream.agreesOnHTTP2
            ? HTTP2Connection(adopting: descriptor, through: stream, security, peer: former.peer, clients: self)
            : HTTP1Connection(adopting: descriptor, through: stream, security, peer: former.peer, clients: self)
        connection.isCounted = former.isCounted
        serve(connection, early: nil)
        // A client that comes while the program ends may send one request.
        if closesIdle { connection.drain() }
    }

    /// Ends the oldest connection whose client has said nothing for a while. Called only at the limit of connections.
    /// - Returns: whether there was one.
    fileprivate func endSilentHandshake() -> Bool {
        let now = context.loop.now
        guard now >= nextSilentSearch else { return false }
        let oldest = handshaking.values.lazy.filter { !$0.hasBegun && !$0.isClosed }.min { $0.accepted < $1.accepted }
        guard let oldest, now - oldest.accepted >= timeouts.firstRequest else {
            // The search takes time, and those that it has found are young.
            nextSilentSearch = now + timeouts.firstRequest / 4
            return false
        }
        oldest.end("another client takes its place")
        return true
    }

    /// Answers a client in the clear that sent a request in the clear.
    func refuseInTheClear(_ former: HandshakingConnection, _ descriptor: consuming Descriptor) {
        forget(former)
        context.metrics.add(.handshakeFailures(.plain))
        context.notices.handshakeFailed(former.peer, "a request in the clear, answered 400")
        let answer = SyntheticResponse(.badRequest, "This port speaks TLS: use https:// in the URL.")
        turnAway(descriptor, from: former.peer, with: answer)
        left(former)
    }

    /// Called when a handshake has failed.
    func failed(_ former: HandshakingConnection, _ failure: TLSFailure) {
        context.metrics.add(.handshakeFailures(HandshakeFailure(failure.kind)))
        context.notices.handshakeFailed(former.peer, failure.reason)
        ended(former)
    }

    /// Called when a connection has ended without a handshake.
    func ended(_ former: HandshakingConnection) {
        forget(former)
        left(former)
    }

    private func forget(_ former: HandshakingConnection) {
        handshaking[ObjectIdentifier(former)] = nil
        if former.hasBegun { handshakes.ended() }
    }

    private func left(_ former: HandshakingConnection) {
        if let before = underWay { underWay = before - 1 }
        discount(former.peer, isCounted: former.isCounted)
    }
}
