public import Bytes
import HTTPSemantics
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
    enum Phase { case connecting, idle, leased, handedOver, closed }

    /// Request content held while there is no connection yet before the client waits, in bytes: a form, so that its client is spared that.
    static let earlyContent = 8 << 10

    enum Waiting { case connect, head, progress, idle }

    let server: Int
    /// Of the server's end.
    public let address: SocketAddress
    /// The same as text, for logs.
    public let addressText: ByteSlice
    let pool: UpstreamPool
    /// While leased; they hold each other until one of them ends it.
    var exchange: Exchange?
    var phase = Phase.connecting
    var isReused = false
    /// When it was leased, in nanoseconds of the loop's clock.
    private var leasedAt: Int64 = 0
    /// Counted in the open-connections metric; true once connected.
    var isCounted = false

    // Sending
    /// Bytes of the request's head that are still to be sent.
    var headLeft = 0
    var outgoing: OutgoingContent?
    var contentIsHeldBack = false
    var flushesSoon = false
    /// While a response goes on that was held back: one that ends now leaves no connection to be used again.
    var endIsUnseen = false
    /// Why sending stopped before its end; the connection is not used again.
    var sendFailure: SystemError?

    // Receiving
    let reader: Exclusive<ResponseReader>
    /// Whether the final head has come.
    var isInBody = false
    var input: ByteBuffer?
    /// A piece of body that was refused, to be offered again.
    var refused: ByteSlice?
    var readingIsPaused = false
    var hasReceivedBytes = false

    var deadline = LazyDeadline<Waiting>()

    init(connectingTo address: SocketAddress, server: Int, pool: UpstreamPool, for exchange: Exchange) throws(SystemError) {
        self.server = server
        self.address = address
        addressText = ByteSlice(address.description)
        self.pool = pool
        self.exchange = exchange
        reader = Exclusive(ResponseReader(maxHeadSize: pool.settings.maxHeadSize))
        try super.init(connectingTo: address, on: pool.loop)
        due(.connect, after: pool.timeouts.connect)
    }

    // MARK: Life

    public override func connected(_ error: SystemError?) {
        guard phase == .connecting else { return }
        if let error { return cannotConnect(UpstreamError(.connect, detail: "\(address): \(error)")) }
        phase = .leased
        isCounted = true
        pool.metrics.add(.upstreamConnects)
        exchange?.connected(nil)
    }

    private func cannotConnect(_ error: UpstreamError) {
        let exchange = exchange
        self.exchange = nil
        end()
        exchange?.connected(error)
    }

    func begin(_ exchange: Exchange, isReused: Bool, early: OutgoingContent?) {
        phase = .leased
        self.exchange = exchange
        self.isReused = isReused
        leasedAt = loop.now
        headLeft = exchange.request.head.count
        outgoing = early ?? (exchange.request.content == .none ? nil : OutgoingContent())
        contentIsHeldBack = (early?.count ?? 0) >= Self.earlyContent
        let method = exchange.request.method
        reader.use { $0.begin(answering: method) }
        isInBody = false
        hasReceivedBytes = false
        readingIsPaused = false
        sendFailure = nil
        pool.metrics.add(.upstreamFetches)
        if isReused { pool.metrics.add(.upstreamReuses) }
        startReading()
        due(.progress, after: pool.timeouts.noProgress)
        // What the client has sent of its content already goes out with the head.
        if outgoing != nil, early == nil { flushSoon() } else { flush(exchange.request.head) }
    }

    /// The exchange ends before the response does.
    func abandonExchange() {
        exchange = nil
        end()
    }

    /// Gives up this connection as HTTP: whoever takes it reads and writes by itself. Gives what came after the head.
    /// Called once, when the 101's head was dealt with.
    public func handOver() -> ByteSlice {
        input?.consume(handedOverHeadLength)
        let leftover = input?.copied() ?? ByteSlice("")
        giveBackInput()
        return leftover
    }

    var handedOverHeadLength = 0

    /// Set by the tunnel that took the connection over.
    public weak var tunnel: (any TunnelEnd)?

    /// Ends a connection that was handed over. On its loop; a second call does nothing.
    public func closeTunnel() { end() }

    func end() {
        guard phase != .closed else { return }
        if phase == .idle { pool.forget(idle: self) }
        phase = .closed
        stopDeadline()
        giveBackInput()
        if isCounted { pool.metrics.add(.upstreamCloses) }
        close()
    }

    func fail(_ failure: UpstreamFailure, _ detail: String, isMalformed: Bool = false) {
        let exchange = exchange
        let isDead = isReused && !hasReceivedBytes && (failure == .closed || failure == .send)
        self.exchange = nil
        end()
        exchange?.failed(UpstreamError(failure, detail: "\(address): \(detail)", closedBeforeResponse: isDead, isMalformed: isMalformed))
    }

    func giveBackInput() {
        if let input = input.take() { pool.takeBack(input) }
    }

    public override func cannotWatch(_ error: SystemError) {
        guard phase == .connecting else { return fail(.connect, "\(error)") }
        cannotConnect(UpstreamError(.connect, detail: "\(address): \(error)"))
    }

    public override func writable() {
        if phase == .handedOver { tunnel?.tunnelWritable(self); return }
        flush()
    }

    public override func readable() {
        switch phase {
        case .handedOver:
            tunnel?.tunnelReadable(self)
        case .idle:
            // Nobody asked: the end of the connection, or something that belongs to no request.
            end()
        case .leased:
            // Seen in the iteration in which the request went out, so before it did: what no request asked for, or the end. What comes between the
            // look and the request only another look would tell.
            if isReused, !hasReceivedBytes, loop.now == leasedAt { return fail(.closed, "not silent while it was idle") }
            receive()
        case .connecting, .closed:
            stopReading()
        }
    }

    // MARK: Time

    /// What the origin owes us as long as its response's head is not there.
    func dueBeforeHead() {
        if requestIsSent {
            due(.head, after: pool.timeouts.firstByte)
        } else if headLeft == 0, (outgoing?.count ?? 0) == 0 {
            // While the client still sends its content, nothing can be asked of the origin.
            stopWaiting()
        } else if deadline.waitsFor != .progress {
            // It takes what is sent.
            due(.progress, after: pool.timeouts.noProgress)
        }
    }

    /// Bytes went either way. The time to the end of the head is not prolonged by them: a head that drips is as bad as none.
    func progressed() {
        switch deadline.waitsFor {
        case .connect, .idle, .head: break
        case .progress: due(.progress, after: pool.timeouts.noProgress)
        case nil: if isInBody, !readingIsPaused { due(.progress, after: pool.timeouts.noProgress) }
        }
    }

    // The deadline is changed in a copy: while the wheel is asked, nothing of this object is being written, so no access is checked.

    /// - Parameter nanoseconds: from now.
    func due(_ waiting: Waiting, after nanoseconds: Int64) {
        var deadline = deadline
        deadline.set(waiting, at: loop.now + nanoseconds, for: self, on: pool.deadlines)
        self.deadline = deadline
    }

    /// Nobody owes anything at the moment.
    func stopWaiting() {
        var deadline = deadline
        deadline.clear()
        self.deadline = deadline
    }

    private func stopDeadline() {
        var deadline = deadline
        deadline.cancel(on: pool.deadlines)
        self.deadline = deadline
    }

    public override func deadlineReached(_ kind: UInt8) -> Int64? {
        var deadline = deadline
        let reached = deadline.reached(at: loop.now)
        self.deadline = deadline
        switch reached {
        case .nothing: return nil
        case .later(let time): return time
        case .due(.connect): cannotConnect(UpstreamError(.connectTimeout, detail: "\(address): no connection in time"))
        case .due(.head): fail(.headTimeout, "no response head in time")
        case .due(.progress): fail(hasReceivedBytes ? .bodyTimeout : .headTimeout, "no progress in time")
        case .due(.idle): end()
        }
        return nil
    }
}

/// Who relays bytes over a connection that was handed over.
public protocol TunnelEnd: AnyObject {
    func tunnelReadable(_ socket: Socket)
    func tunnelWritable(_ socket: Socket)
}
