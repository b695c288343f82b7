import Bytes
import HTTPSemantics
import Libevent
import Logging
import Routing
import SharedTier
import Telemetry
import Upstream

/// One loop's messages to the operator in the diagnostics log, with a limit per second for each kind. Confined to its
/// loop.
final class Notices {
    private enum Kind: Hashable {
        case malformed, timeout, handshake, http2
        /// One kind for each upstream, so that failures of one upstream do not suppress messages about another.
        case upstream(String), resumed(String), connection(String), bound(String)
        case server, accept, capacity, memory, denied, limited, tier, machine

        /// The level of its messages, and its name in a message about suppressed ones. Errors of clients are below
        /// `warning`: only some operators look for them, and any client can cause any number of them.
        var description: (level: Logger.Level, name: String) {
            switch self {
            case .malformed: (.info, "malformed requests")
            case .handshake: (.info, "failed handshakes of clients")
            case .http2: (.info, "ends of HTTP/2 connections with an error")
            case .timeout: (.info, "requests that did not arrive in time")
            case .upstream(let name): (.warning, "failures of upstream \(name)")
            case .resumed(let name): (.notice, "resumed responses of upstream \(name)")
            case .connection(let name): (.debug, "connections of upstream \(name)")
            case .server: (.warning, "changes of servers")
            case .denied: (.info, "requests of clients that may not use their route")
            case .limited: (.notice, "requests and connections beyond the limit of their client")
            case .accept: (.warning, "failures to accept connections")
            case .capacity: (.warning, "connections turned away")
            case .memory: (.warning, "shortages of memory for bodies")
            case .tier: (.warning, "responses in the shared tier that were not used")
            case .machine: (.warning, "failures of other machines of the shared tier")
            case .bound(let name): (.warning, "requests at a bound of upstream \(name)")
            }
        }
    }

    /// The most messages of one kind in an interval, on one loop.
    private static let mostInInterval = 5
    /// In nanoseconds.
    private static let interval: Int64 = 1_000_000_000

    private let loop: EventLoop
    private let log: Logger
    private let shared: SharedState
    /// The removed fields that this loop has reported, or knows another loop to have reported.
    private var reportedFields = ReportedFields()
    private var limit = RateLimitedNotice<Kind>(limit: Notices.mostInInterval, interval: UInt64(Notices.interval))
    /// Whether a timer is set that reports suppressed messages in case no further message of their kind arrives.
    private var willReportSuppressed = false

    init(loop: EventLoop, shared: SharedState) {
        self.loop = loop
        self.shared = shared
        log = shared.log
    }

    func malformed(_ error: MessageSyntaxError, from peer: SocketAddress) {
        write(
            .malformed,
            "malformed request from \(peer): \(error.name) at byte \(error.position), answered \(error.status.code)")
    }

    /// Reports a request of HTTP/2 that broke the rules of its version.
    func malformedHTTP2(from peer: SocketAddress) {
        write(.malformed, "malformed request from \(peer): reset with PROTOCOL_ERROR (RFC 9113 §8.1.1)")
    }

    /// Reports the end of a connection of HTTP/2 with an error.
    /// - Parameter byPeer: whether the client has ended it.
    func http2(_ peer: SocketAddress, _ reason: String, byPeer: Bool) {
        write(.http2, byPeer ? "HTTP/2 client \(peer) ended with \(reason)" : "HTTP/2 client \(peer): \(reason)")
    }

    /// Reports a hello of TLS on a connection in the clear.
    func tlsHello(from peer: SocketAddress) {
        write(
            .malformed,
            "malformed request from \(peer): a TLS hello on a listener without TLS: use https:// in `listen`")
    }

    /// Reports a connection that was refused by a listener with the PROXY protocol.
    func notProxied(_ peer: SocketAddress, because reason: String, status: Status) {
        write(
            .malformed, "connection from \(peer) to a listener with proxy-protocol: \(reason), answered \(status.code)")
    }

    /// Reports a client whose handshake failed, in OpenSSL's words.
    func handshakeFailed(_ peer: SocketAddress, _ reason: String) {
        write(.handshake, "TLS handshake with \(peer) failed: \(reason)")
    }

    func timeout(_ peer: SocketAddress) { write(.timeout, "request from \(peer) did not arrive in time, answered 408") }

    func upstreamFailed(_ error: UpstreamError, of request: ClientRequest) {
        let upstream = request.route.origin.settings.name
        write(.upstream(upstream), "upstream \(upstream) failed for \(request.summary): \(error)")
    }

    /// Reports that a response which had broken off goes on.
    /// - Parameters:
    ///   - received: the number of bytes before the break.
    ///   - server: the address of the server that sends the rest.
    func resumed(_ request: ClientRequest, after received: Int, at server: ByteSlice) {
        let upstream = request.route.origin.settings.name
        write(
            .resumed(upstream),
            "upstream \(upstream): response to \(request.summary) broke off after \(received) bytes; resumed at \(String(server))"
        )
    }

    /// Reports that a server, or one address of it, is not used any more, or is used again. Only the loop that brings
    /// the change about is told of it.
    func placeChanged(of origin: Origin, _ news: PlaceNews) {
        let address = news.address.map { "address \($0) of " } ?? ""
        let subject = "upstream \(origin.settings.name): \(address)server \(news.server)"
        switch news.event {
        case .isEjected(let duration, let cause, let inARow, let isOnly):
            let consequence =
                isOnly
                ? "is failing, but still used because it is the only one,"
                : "not used for \(Duration.nanoseconds(duration))"
            // A name's address that takes no connection needs no other reason.
            let reason =
                inARow.map { " after \($0) failures in a row, the last one" }
                ?? (cause.isConnection ? "" : " because it fails far more often than the others, the last time")
            write(.server, "\(subject) \(consequence)\(reason): \(cause.detail)")
        case .isDown(let cause):
            write(.server, "\(subject) is down: \(cause.detail)")
        case .isBack(let time):
            write(.server, at: .notice, "\(subject) is back after \(time / 1_000_000_000) s")
        }
    }

    /// Reports an opened or closed upstream connection at `debug`, to analyze how an origin treats connections. Formats
    /// no text unless `debug` is logged.
    func connectionChanged(of origin: Origin, to address: SocketAddress, _ news: ConnectionNews) {
        guard log.logLevel <= .debug else { return }
        let upstream = origin.settings.name
        let event =
            switch news {
            case .opened(let duration): "connected to \(address) in \(duration / 1000) µs"
            case .closed(let why, let exchanges):
                "connection to \(address) closed after \(exchanges) request\(exchanges == 1 ? "" : "s"): \(why)"
            }
        write(.connection(upstream), "upstream \(upstream): \(event)")
    }

    /// Reports that there is no memory for bodies: requests get 503, or the action of `coalescing.when-exceeded`.
    func overloaded(_ shared: SharedState) {
        write(
            .memory,
            "bodies in flight or being read use \(shared.budget.inUse) of \(shared.budget.limit) bytes; what finds no room gets 503 or is cut off until some complete (coalescing.when-exceeded)"
        )
    }

    /// Reports that a request reached a bound of its upstream's fetches, and that no stored response can be sent
    /// instead.
    func refused(_ request: ClientRequest, at bound: StaticString) {
        let upstream = request.route.origin.settings.name
        write(.bound(upstream), "upstream \(upstream): answered 503 (\(bound)) for \(request.summary)")
    }

    /// Reports that these fields of a request are not forwarded to the origin. Each field is reported once per network
    /// of peers, over all loops: enough for the operator of a proxy in front of this one to notice it, and no client
    /// can fill the log.
    func removed(_ fields: [RemovedField], from arrival: Arrival) {
        // Usually empty although field lines were replaced: a trusted proxy mostly sends the same values as this proxy.
        guard !fields.isEmpty else { return }
        let address = arrival.clientAddress
        // `nil` for a Unix socket.
        let network = IPAddress(address.span).map { PeerNetwork(around: $0) }
        let new = fields.filter { !reportedFields.has($0, from: network) }
        guard !new.isEmpty else { return }
        let now = UInt64(loop.now)
        // Fields that may not be reported now are reported with a later request.
        guard let told = shared.reportedFields.withLock({ $0.take(new, from: network, at: now) }) else { return }
        for field in new { reportedFields.add(field, from: network) }
        guard !told.isEmpty else { return }
        let peer = address.isEmpty ? "a Unix socket" : String(address)
        log.notice(
            "\(ReportedFields.notice(of: told, from: peer, in: network, isTrusted: arrival.isFromTrustedProxy))")
    }

    /// Reports that a request was refused by the rules of its route.
    /// - Parameter client: `nil` for a client of a Unix socket.
    func refused(_ refusal: AccessRules.Refusal, of client: IPAddress?, on route: Route) {
        let name = client.map { "\($0)" } ?? "a client of a Unix socket"
        switch refusal {
        case .denied: write(.denied, "\(name) may not use route \(route.place), answered 403")
        case .limited: write(.limited, "\(name) has used up rate-limit of route \(route.place), answered 429")
        }
    }

    /// Reports a `PURGE` that is refused.
    func refused(
        _ refusal: PurgeAccess.Refusal, from peer: SocketAddress, isTrustedProxy: Bool, _ settings: LoopSettings,
        _ fields: HeadBlock
    ) {
        let client = settings.trustedProxies.client(of: peer, isProxied: isTrustedProxy, fields.view)
        let name = client.map { "\($0)" } ?? "a client of a Unix socket"
        write(.denied, "\(name) may not purge (\(refusal.rawValue)), answered 403")
    }

    /// Reports that what stands in the shared tier is not used.
    func refused(_ refusal: TierRefusal, of request: ClientRequest) { notUsed(refusal.detail, for: request) }

    /// Reports that a response in the shared tier is not one that this machine would store for all.
    func notForAll(_ request: ClientRequest) {
        notUsed("by this machine's rules it is not for all clients, or not to be stored", for: request)
    }

    private func notUsed(_ reason: String, for request: ClientRequest) {
        write(.tier, "shared tier: the response stored there for \(request.summary) is not used: \(reason)")
    }

    /// Reports that another machine, which said that it fetches a response, gave none.
    func machineFailed(_ problem: String, at address: ByteSlice, of request: ClientRequest) {
        write(.machine, "shared tier: no response to \(request.summary) from \(String(address)): \(problem)")
    }

    func cannotAccept(_ error: SystemError) { write(.accept, "cannot accept connections: \(error)") }

    func tooManyConnections(most: Int) {
        write(.capacity, "limit of \(most) client connections reached; new connections get 503")
    }

    func tooManyConnections(of client: IPAddress, most: Int) {
        write(.limited, "\(client) has \(most) connections; new ones get 429")
    }

    private func write(_ kind: Kind, at level: Logger.Level? = nil, _ text: @autoclosure () -> String) {
        switch limit.admit(kind, at: UInt64(loop.now)) {
        case .write(let suppressed):
            let more = suppressed > 0 ? " (\(suppressed) similar messages suppressed)" : ""
            log.log(level: level ?? kind.description.level, "\(text())\(more)")
        case .suppress:
            reportSuppressedLater()
        }
    }

    private func reportSuppressedLater() {
        guard !willReportSuppressed else { return }
        willReportSuppressed = true
        loop.schedule(after: Self.interval) { [weak self] in self?.reportSuppressed() }
    }

    private func reportSuppressed() {
        willReportSuppressed = false
        for (kind, count) in limit.takeSuppressed(at: UInt64(loop.now)) {
            let (level, name) = kind.description
            log.log(level: level, "\(count) more messages suppressed: \(name)")
        }
        if limit.hasSuppressed { reportSuppressedLater() }
    }
}
