public import Bytes
public import Libevent
import Telemetry

/// One connection to a server of an origin: sends the request of the exchange it is leased to, reads the response.
///
/// Confined to its loop. Its pool keeps it while it is idle, its exchange while it is leased.
///
/// ```
/// connecting ─connected→ leased ─response complete, both sides willing→ idle ─lease→ leased
///     └─error→ closed      ├─error, abandoned, not reusable→ closed       └─readable, too old→ closed
///                          ├─readable before the request went out→ closed
///                          └─101→ handed over (as a tunnel)
/// ```
public final class UpstreamConnection: Socket {
    enum Phase {
        case connecting, idle, leased, handedOver, closed

        fileprivate func leads(to next: Phase) -> Bool {
            switch self {
            case .connecting, .idle: next == .leased || next == .closed
            case .leased: next == .idle || next == .handedOver || next == .closed
            case .handedOver: next == .closed
            case .closed: false
            }
        }
    }

    enum Waiting { case connect, head, progress, idle }

    let server: Int
    /// Address of the server's end.
    public let address: SocketAddress
    /// The address as text, for logs.
    public let addressText: ByteSlice
    let pool: UpstreamPool
    /// While leased; they hold each other until one of them ends it.
    var exchange: Exchange?
    /// The client connection whose it is, from the first exchange for that on.
    private(set) var owner: BoundConnections?
    private(set) var phase = Phase.connecting
    /// The present one, or the last.
    var lease = Lease()
    /// When it began to connect, in nanoseconds of the loop's clock.
    private let began: Int64
    /// Since when its server may wait for a request on it, on the same clock.
    private(set) var idleSince: Int64 = 0
    /// Whether it was noted of it while it is idle that it is still open.
    var isKnownOpen = false
    /// For how long the server keeps it while it is idle, in nanoseconds, where it has said so (`Keep-Alive`).
    var statedTime: Int64?
    /// Counted in the open-connections metric; true once connected.
    private var isCounted = false
    /// How many it has carried, with the present one.
    private var exchanges = 0
    /// Whether it will send at the end of the loop's iteration.
    var flushesSoon = false

    let reader: Exclusive<ResponseReader>
    var input: ByteBuffer?
    /// Set by the tunnel that took the connection over.
    public weak var tunnel: (any TunnelEnd)?

    var deadline = LazyDeadline<Waiting>()

    init(connectingTo address: SocketAddress, server: Int, pool: UpstreamPool, for exchange: Exchange)
        throws(SystemError)
    {
        self.server = server
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

    public override func connected(_ error: SystemError?) {
        guard phase == .connecting else { return }
        if let error { return cannotConnect(UpstreamError(cannotConnectTo: address, error)) }
        isCounted = true
        pool.opened(self, after: UInt64(max(0, loop.now - began)))
        exchange?.connected(self, nil)
    }

    private func cannotConnect(_ error: UpstreamError) {
        let exchange = exchange
        self.exchange = nil
        end(.failed(error))
        exchange?.connected(self, error)
    }

    /// - Parameter mayRepeat: whether the request goes out once more, should the connection be dead.
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
        pool.upstreamMetrics.add(.fetches)
        if isReused { pool.metrics.add(.upstreamReuses) }
        startReading()
        expect(.progress, within: pool.timeouts.noProgress)
        // What the client has sent of its content by then goes out with the head; and the heads of several requests go
        // out one after another, which wakes their origin once.
        flushSoon()
    }

    var saysTime: Bool { statedTime != nil }

    /// Waits for the next exchange, if its pool or its owner has room, and its server will wait as well.
    /// - Returns: why not, with nothing changed; `nil`: it does.
    func becomeIdle() -> ConnectionEnd? {
        // If reading was paused, the server may have begun to wait when the last of the response was sent, not read.
        let (now, since) = (loop.now, lease.paused ?? loop.now)
        // One with an owner lasts as long as that: its end would be the end of what its user has proved.
        let time = owner == nil ? min(pool.timeouts.idle, statedTime ?? .max) : statedTime ?? .max
        guard now - since < time else { return .notReusable }
        guard owner?.keep(idle: self) ?? pool.keep(idle: self) else { return .surplus }
        (idleSince, isKnownOpen) = (since, false)
        enter(.idle)
        if time == .max { stopWaiting() } else { expect(.idle, within: time - (now - since)) }
        return nil
    }

    /// What of the time that a server says is left unused, in nanoseconds: it may count from when its response was sent,
    /// and until a request has arrived.
    private static let mostMargin: Int64 = 1_000_000_000

    /// - Parameter seconds: for which the server says that it waits for the next request.
    func noteStatedTime(_ seconds: UInt32) {
        let time = Int64(seconds) * 1_000_000_000
        statedTime = time - min(time / 4, Self.mostMargin)
    }

    /// The exchange ends before the response does.
    func abandonExchange() {
        exchange = nil
        end(.abandoned)
    }

    /// Ends a connection that was handed over. On its loop; a second call does nothing.
    public func closeTunnel(abruptly: Bool = false) {
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
    ///   - detail: what the log says of it, if that is more than the reason's explanation.
    ///   - isNoResponse: what came is none to the request, of which the server took nothing.
    func fail(
        _ failure: UpstreamFailure, _ reason: UpstreamError.Reason?, _ detail: String? = nil, isMalformed: Bool = false,
        isNoResponse: Bool = false
    ) {
        let exchange = exchange
        let closedBeforeResponse =
            (lease.response == .awaited || isNoResponse) && (failure == .closed || failure == .send)
        // Not one that went over the request.
        if closedBeforeResponse, lease.isReused, loop.now - lease.began < Self.crossing {
            pool.noteIdle(lease.idleBefore, of: server, wasClosed: true, metRequest: true)
        }
        let error = UpstreamError(
            failure, reason, detail: "\(address): \(detail ?? reason.map { "\($0.explanation)" } ?? "")",
            closedBeforeResponse: closedBeforeResponse,
            isMalformed: isMalformed)
        self.exchange = nil
        end(.failed(error))
        exchange?.failed(error, isUnsent: lease.isUnsent || isNoResponse, content: lease.outgoing)
    }

    /// How long the end of an idle connection and a request take at most that pass each other on their way, in
    /// nanoseconds.
    private static let crossing: Int64 = 1_000_000_000

    func giveBackInput() {
        if let input = input.take() { pool.takeBack(input) }
    }

    public override func cannotWatch(_ error: SystemError) {
        guard phase == .connecting else { return fail(.connect, .shortage, "\(error)") }
        cannotConnect(UpstreamError(.connect, .shortage, detail: "\(address): \(error)"))
    }

    public override func writable() {
        if phase == .handedOver { tunnel?.tunnelWritable(self); return }
        flush()
    }

    public override func iterationEnds() {
        flushesSoon = false
        if !isWriteArmed { flush() }
    }

    public override func readable() {
        switch phase {
        case .handedOver:
            tunnel?.tunnelReadable(self)
        case .idle:
            // The end of the connection, or bytes that belong to no request.
            pool.noteIdle(loop.now - idleSince, of: server, wasClosed: true)
            end(.byServer)
        case .leased:
            // Seen before the request went out, or in the iteration in which it did: what no request asked for, or the
            // end. Bytes arriving between this check and the write go unnoticed.
            if lease.isReused, lease.response == .awaited, lease.isUnsent || loop.now == lease.began {
                return fail(.closed, .notSilent)
            }
            receive()
        case .connecting, .closed:
            stopReading()
        }
    }

    /// A response's head has been read, or a part of one.
    public override func roundCame() {
        if phase == .leased, let input { process(input) }
    }

    // MARK: Time

    /// What the origin owes us as long as its response's head is not there.
    func expectBeforeHead() {
        if lease.isSent {
            expect(.head, within: pool.timeouts.firstByte)
        } else if !lease.hasMore {
            // While the client still sends its content, nothing can be asked of the origin.
            stopWaiting()
        } else if deadline.waitsFor != .progress {
            // It takes what is sent.
            expect(.progress, within: pool.timeouts.noProgress)
        }
    }

    /// Bytes went either way. They do not extend the time to the end of the head: a head that drips is as bad as none.
    func progressed() {
        switch deadline.waitsFor {
        case .connect, .idle, .head: break
        case .progress: expect(.progress, within: patience)
        case nil: if lease.response == .inBody, !lease.isPaused { expect(.progress, within: patience) }
        }
    }

    /// How long nothing may move, in nanoseconds.
    var patience: Int64 { lease.allowedSilence ?? pool.timeouts.noProgress }

    func allowSilence(_ nanoseconds: Int64) {
        if nanoseconds > pool.timeouts.noProgress { lease.allowedSilence = nanoseconds }
    }

    /// - Parameter nanoseconds: from now.
    func expect(_ waiting: Waiting, within nanoseconds: Int64) {
        deadline = deadline.awaiting(waiting, until: loop.now + nanoseconds, for: self, on: pool.deadlines)
    }

    /// Nothing is owed at the moment.
    func stopWaiting() { deadline.clear() }

    public override func deadlineReached() -> Int64? {
        let (reached, left) = deadline.reached(at: loop.now)
        deadline = left
        switch reached {
        case .nothing: return nil
        case .later(let time): return time
        case .due(.connect):
            cannotConnect(UpstreamError(.connectTimeout, .unanswered, detail: "\(address): no connection in time"))
        case .due(.head): fail(.headTimeout, .headLate)
        case .due(.progress) where lease.response == .awaited: fail(.sendTimeout, .requestNotTaken)
        case .due(.progress): fail(.bodyTimeout, .bodyStalled)
        case .due(.idle):
            pool.noteIdle(loop.now - idleSince, of: server, wasClosed: false)
            end(.idleTimeout)
        }
        return nil
    }
}

/// Who relays bytes over a connection that was handed over.
public protocol TunnelEnd: AnyObject {
    func tunnelReadable(_ socket: Socket)
    func tunnelWritable(_ socket: Socket)
}
