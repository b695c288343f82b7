package import Bytes
package import Libevent
import TLS
import Telemetry

/// One connection to a server of an origin. It sends the request of the exchange that it is leased to, and reads the
/// response.
///
/// Confined to its loop. The pool holds an idle connection, the exchange a leased one.
///
/// ```
/// connecting ─connected→ leased ─response complete, both sides willing→ idle ─lease→ leased
///     │└─error→ closed     ├─error, abandoned, not reusable→ closed       └─readable, too old→ closed
///     │                    ├─readable before the request went out→ closed
///     │                    └─101→ handed over (as a tunnel)
///     └─connected, with TLS→ securing ─handshake done→ leased
///                               └─error→ closed
/// ```
package final class UpstreamConnection: Socket {
    enum Phase {
        case connecting, securing, idle, leased, handedOver, closed

        fileprivate func leads(to next: Phase) -> Bool {
            switch self {
            case .connecting: next == .securing || next == .leased || next == .closed
            case .securing, .idle: next == .leased || next == .closed
            case .leased: next == .idle || next == .handedOver || next == .closed
            case .handedOver: next == .closed
            case .closed: false
            }
        }
    }

    enum Waiting { case connect, head, progress, idle }

    /// The loop's connections to the place that the connection leads to.
    let home: PlaceConnections
    /// The address of the server.
    package let address: SocketAddress
    /// The address as text, for logs.
    package let addressText: ByteSlice
    let pool: UpstreamPool
    /// The exchange of the lease. Connection and exchange hold each other until one of them ends the lease.
    var exchange: Exchange?
    /// The owner, from the first exchange with an owner on; `nil`: the connection belongs to no client connection.
    private(set) var owner: BoundConnections?
    private(set) var phase = Phase.connecting
    /// The present lease, or the last.
    var lease = Lease()
    /// When connecting began, in nanoseconds of the loop's clock.
    private let began: Int64
    /// Since when the server may wait for a request on the connection, on the same clock.
    private(set) var idleSince: Int64 = 0
    /// Whether the pool has noted, in this idle time, that the connection is still open (`ServerPatience.noteOpen`).
    var isKnownOpen = false
    /// For how long the server keeps the idle connection, in nanoseconds, if it has stated that (`Keep-Alive`).
    var statedTime: Int64?
    /// Whether the connection is counted in the open-connections metric; true once connected.
    private var isCounted = false
    /// The number of exchanges carried, the present one included.
    private var exchanges = 0
    /// Whether the connection will flush at the end of the loop's iteration.
    var flushesSoon = false
    /// From the beginning of the handshake on; `nil` in the clear.
    var stream: TLSStream?

    let reader: Exclusive<ResponseReader>
    var input: ByteBuffer?
    /// Set by the tunnel that took the connection over.
    package weak var tunnel: (any TunnelEnd)?

    var deadline = LazyDeadline<Waiting>()

    init(connectingTo address: SocketAddress, at home: PlaceConnections, pool: UpstreamPool, for exchange: Exchange)
        throws(SystemError)
    {
        self.home = home
        self.address = address
        addressText = ByteSlice(address.description)
        self.pool = pool
        self.exchange = exchange
        began = pool.loop.now
        reader = Exclusive(ResponseReader(maxHeadSize: pool.settings.maxHeadSize))
        try super.init(connectingTo: address, on: pool.loop)
        expect(.connect, within: pool.timeouts.connect)
    }

    // MARK: Life

    /// The only way into a phase.
    func enter(_ next: Phase) {
        assert(phase.leads(to: next), "\(phase) does not lead to \(next)")
        phase = next
    }

    package override func connected(_ error: SystemError?) {
        guard phase == .connecting else { return }
        if let error { return cannotConnect(UpstreamError(cannotConnectTo: address, error)) }
        if let tls = home.tls { return secure(by: tls) }
        established()
    }

    /// The connection is ready for its first request.
    func established() {
        isCounted = true
        pool.opened(self, after: UInt64(max(0, loop.now - began)))
        exchange?.connected(self, nil)
    }

    func cannotConnect(_ error: UpstreamError) {
        let exchange = exchange
        self.exchange = nil
        end(.failed(error))
        exchange?.connected(self, error)
    }

    /// - Parameter mayRepeat: whether the request is sent again if the connection is dead.
    func begin(_ exchange: Exchange, isReused: Bool, mayRepeat: Bool, early: OutgoingContent?) {
        enter(.leased)
        self.exchange = exchange
        if let owner = exchange.owner { self.owner = owner }
        exchanges += 1
        let (framing, headLength) = (exchange.request.content, exchange.request.head.count)
        lease = Lease(
            isReused: isReused, began: loop.now, idleBefore: isReused ? loop.now - idleSince : 0,
            looksFirst: isReused && !mayRepeat, headLength: headLength, headLeft: headLength,
            outgoing: early ?? (framing == .none ? nil : OutgoingContent(framing)), contentIsHeldBack: early != nil)
        let method = exchange.request.method
        reader.use { $0.begin(answering: method) }
        pool.countExchange(isReused: isReused)
        startReading()
        expect(.progress, within: pool.timeouts.noProgress)
        // The content that the client has sent by then goes out with the head. The heads of several requests go out one
        // after another, which wakes their origin once.
        flushSoon()
    }

    var statesTimeout: Bool { statedTime != nil }

    /// Makes the connection wait for the next exchange, if its pool or its owner has room, and its server will wait as
    /// well.
    /// - Returns: the reason why it cannot wait, with nothing changed; `nil` if it waits.
    func becomeIdle() -> ConnectionEnd? {
        // If reading was paused, the server may have begun to wait when it sent the last byte of the response, before
        // that byte was read.
        let (now, since) = (loop.now, lease.paused ?? loop.now)
        // A connection with an owner is kept as long as the owner, or for the time that the server states: closing it
        // would lose the authentication of the user.
        let time = owner == nil ? min(pool.timeouts.idle, statedTime ?? .max) : statedTime ?? .max
        guard now - since < time else { return .notReusable }
        guard owner?.keep(idle: self) ?? pool.keep(idle: self) else { return .surplus }
        (idleSince, isKnownOpen) = (since, false)
        enter(.idle)
        if time == .max { stopWaiting() } else { expect(.idle, within: time - (now - since)) }
        return nil
    }

    /// The most of a server's stated time that is left unused, in nanoseconds. The server may count from the moment
    /// when its response was sent, until the moment when a request has arrived.
    private static let mostMargin: Int64 = 1_000_000_000

    /// - Parameter seconds: the time for which the server says that it waits for the next request.
    func noteStatedTime(_ seconds: UInt32) {
        let time = Int64(seconds) * 1_000_000_000
        statedTime = time - min(time / 4, Self.mostMargin)
    }

    /// Called when the exchange ends before the response does.
    func abandonExchange() {
        exchange = nil
        end(.abandoned)
    }

    /// Ends a connection that was handed over. On its loop; a second call does nothing.
    package func closeTunnel(abruptly: Bool = false) {
        end(.tunnelEnded, abruptly: abruptly)
    }

    func end(_ why: ConnectionEnd, abruptly: Bool = false) {
        guard phase != .closed else { return }
        if phase == .idle {
            if let owner { owner.forget(idle: self) } else { pool.forget(idle: self) }
        }
        enter(.closed)
        deadline = deadline.cancelled(on: pool.deadlines)
        giveBackInput()
        if isCounted { pool.closed(self, why, exchanges: exchanges) }
        if abruptly { abort() } else { close() }
    }

    /// - Parameters:
    ///   - detail: the text for the log; `nil`: the reason's explanation.
    ///   - isNoResponse: whether the received bytes do not answer the request, of which the server took no byte.
    func fail(
        _ failure: UpstreamFailure, _ reason: UpstreamError.Reason?, _ detail: String? = nil, isMalformed: Bool = false,
        isNoResponse: Bool = false
    ) {
        let exchange = exchange
        let closedBeforeResponse =
            (lease.response == .awaited || isNoResponse) && (failure == .closed || failure == .send)
        // A connection that ended later than `crossing` was closed because of the request, not because it was idle.
        if closedBeforeResponse, lease.isReused, loop.now - lease.began < Self.crossing {
            home.noteIdle(lease.idleBefore, wasClosed: true, metRequest: true)
        }
        let error = UpstreamError(
            failure, reason, detail: "\(address): \(detail ?? reason.map { "\($0.explanation)" } ?? "")",
            closedBeforeResponse: closedBeforeResponse,
            isMalformed: isMalformed)
        self.exchange = nil
        end(.failed(error))
        exchange?.failed(error, isUnsent: lease.isUnsent || isNoResponse, content: lease.outgoing)
    }

    /// The longest time, in nanoseconds, in which the close of an idle connection and a request may cross on their way.
    private static let crossing: Int64 = 1_000_000_000

    func giveBackInput() {
        if let input = input.take() { pool.takeBack(input) }
    }

    package override func cannotWatch(_ error: SystemError) {
        guard phase == .connecting || phase == .securing else { return fail(.connect, .shortage, "\(error)") }
        cannotConnect(UpstreamError(.connect, .shortage, detail: "\(address): \(error)"))
    }

    package override func writable() {
        switch phase {
        case .handedOver: tunnel?.tunnelWritable(self)
        case .securing: handshake()
        case .connecting, .idle, .leased, .closed: flush()
        }
    }

    package override func iterationEnds() {
        flushesSoon = false
        if !isWriteArmed { flush() }
    }

    package override func readable() {
        switch phase {
        case .handedOver:
            tunnel?.tunnelReadable(self)
        case .idle:
            if isOnlyReportedForTLS { return }
            // The connection ended, or brought bytes that belong to no request.
            home.noteIdle(loop.now - idleSince, wasClosed: true)
            end(.byServer)
        case .leased:
            // Bytes that no request asked for, or the end of the connection, seen before the request was sent or in the
            // iteration in which it was sent. Bytes arriving between this check and the write go unnoticed.
            if lease.isReused, lease.response == .awaited, lease.isUnsent || loop.now == lease.began {
                if isOnlyReportedForTLS { return }
                return fail(.closed, .notSilent)
            }
            receive()
        case .securing:
            handshake()
        case .connecting, .closed:
            stopReading()
        }
    }

    /// Called when a response's head, or a part of one, has been read.
    package override func batchIsReady(isShared: Bool) {
        if phase == .leased, let input { process(input) }
    }

    // MARK: Time

    /// Sets the deadline for the origin until the response's head is complete.
    func expectBeforeHead() {
        if lease.isSent {
            expect(.head, within: pool.timeouts.firstByte)
        } else if !lease.hasMore {
            // While the client still sends its content, the origin has no deadline.
            stopWaiting()
        } else if deadline.waitsFor != .progress {
            // The origin must take the bytes that wait to be sent.
            expect(.progress, within: pool.timeouts.noProgress)
        }
    }

    /// Called when bytes were sent or received. Bytes do not extend the time to the end of the head: a head that
    /// arrives byte by byte is as bad as none.
    func progressed() {
        switch deadline.waitsFor {
        case .connect, .idle, .head: break
        case .progress: expect(.progress, within: patience)
        case nil: if lease.response == .inBody, !lease.isPaused { expect(.progress, within: patience) }
        }
    }

    /// The longest time without progress, in nanoseconds.
    var patience: Int64 { lease.allowedSilence ?? pool.timeouts.noProgress }

    func allowSilence(_ nanoseconds: Int64) {
        if nanoseconds > pool.timeouts.noProgress { lease.allowedSilence = nanoseconds }
    }

    /// - Parameter nanoseconds: the time from now.
    func expect(_ waiting: Waiting, within nanoseconds: Int64) {
        deadline = deadline.awaiting(waiting, until: loop.now + nanoseconds, for: self, on: pool.deadlines)
    }

    /// Removes the deadline: the origin owes no bytes at the moment.
    func stopWaiting() { deadline.clear() }

    package override func deadlineReached() -> Int64? {
        let (reached, left) = deadline.reached(at: loop.now)
        deadline = left
        switch reached {
        case .nothing: return nil
        case .later(let time): return time
        case .due(.connect):
            cannotConnect(
                phase == .securing
                    ? UpstreamError(.connectTimeout, .handshakeLate, detail: "\(address): no TLS handshake in time")
                    : UpstreamError(.connectTimeout, .unanswered, detail: "\(address): no connection in time"))
        case .due(.head): fail(.headTimeout, .headLate)
        case .due(.progress) where lease.response == .awaited: fail(.sendTimeout, .requestNotTaken)
        case .due(.progress): fail(.bodyTimeout, .bodyStalled)
        case .due(.idle):
            home.noteIdle(loop.now - idleSince, wasClosed: false)
            end(.idleTimeout)
        }
        return nil
    }
}

/// An object that relays bytes over a connection that was handed over.
package protocol TunnelEnd: AnyObject {
    func tunnelReadable(_ socket: Socket)
    func tunnelWritable(_ socket: Socket)
}
