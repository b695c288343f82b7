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
///                          └─101→ handed over (as a tunnel)
/// ```
public final class UpstreamConnection: Socket {
    enum Phase { case connecting, idle, leased, handedOver, closed }

    /// Request content held for a slow origin before the client is made to wait, in bytes: a few socket buffers.
    static let contentHighWater = 256 << 10

    private enum Waiting { case connect, head, progress, idle }

    let server: Int
    public let address: SocketAddress
    private let pool: UpstreamPool
    /// While leased; they hold each other until one of them ends it.
    private var exchange: Exchange?
    private var phase = Phase.connecting
    private var isReused = false
    /// Among the open connections of the metrics: from the moment it stood.
    private var isCounted = false

    // Sending
    private var headRest = ByteSlice("")
    private var outgoing: OutgoingContent?
    private var contentIsHeldBack = false
    /// Why sending stopped before its end; the connection is not used again.
    private var sendFailure: SystemError?

    // Receiving
    private var reader: ResponseReader?
    private var input: ByteBuffer?
    /// A piece of body that was refused, to be offered again.
    private var refused: ByteSlice?
    private var readingIsPaused = false
    private var hasReceivedBytes = false

    private var deadline = LazyDeadline<Waiting>()

    init(connectingTo address: SocketAddress, server: Int, pool: UpstreamPool, for exchange: Exchange) throws(SystemError) {
        self.server = server
        self.address = address
        self.pool = pool
        self.exchange = exchange
        try super.init(connectingTo: address, on: pool.loop)
        due(.connect, after: pool.settings.connectTimeout)
    }

    // MARK: Life

    public override func connected(_ error: SystemError?) {
        guard phase == .connecting else { return }
        let exchange = exchange
        if let error {
            end()
            exchange?.connected(UpstreamError(.connect, detail: "\(address): \(error)"))
        } else {
            phase = .leased
            isCounted = true
            pool.metrics.add(.upstreamConnects)
            exchange?.connected(nil)
        }
    }

    func isReserved(for exchange: Exchange) {
        phase = .leased
        self.exchange = exchange
        deadline.clear()
        stopReading()
    }

    func begin(_ exchange: Exchange, isReused: Bool, early: OutgoingContent?) {
        self.exchange = exchange
        self.isReused = isReused
        headRest = exchange.request.head
        outgoing = early ?? (exchange.request.content == .none ? nil : OutgoingContent())
        contentIsHeldBack = (early?.count ?? 0) >= Self.contentHighWater
        reader = ResponseReader(method: exchange.request.method, maxHeadSize: pool.settings.maxHeadSize)
        hasReceivedBytes = false
        readingIsPaused = false
        sendFailure = nil
        pool.metrics.add(.upstreamFetches)
        if isReused { pool.metrics.add(.upstreamReuses) }
        startReading()
        due(.progress, after: pool.settings.noProgressTimeout)
        flush()
    }

    /// The exchange ends before the response does.
    func abandonExchange() {
        exchange = nil
        end()
    }

    /// Gives up this connection as HTTP: whoever takes it reads and writes by itself. Gives what came behind the head.
    /// Called once, when the 101's head was dealt with.
    public func handOver() -> ByteSlice {
        input?.consume(handedOverHeadLength)
        let leftover = input?.copied() ?? ByteSlice("")
        giveBackInput()
        return leftover
    }

    private var handedOverHeadLength = 0

    /// Set by the tunnel that took the connection over.
    public weak var tunnel: (any TunnelEnd)?

    public func closeTunnel() { end() }

    private func end() {
        guard phase != .closed else { return }
        if phase == .idle { pool.forget(idle: self) }
        phase = .closed
        deadline.cancel(on: pool.loop.deadlines)
        giveBackInput()
        if isCounted { pool.metrics.add(.upstreamCloses) }
        close()
    }

    private func fail(_ failure: UpstreamFailure, _ detail: String) {
        let exchange = exchange
        let isDead = isReused && !hasReceivedBytes && (failure == .closed || failure == .send)
        self.exchange = nil
        end()
        exchange?.failed(UpstreamError(failure, detail: "\(address): \(detail)", closedBeforeResponse: isDead))
    }

    private func giveBackInput() {
        if let input { pool.buffers.takeBack(input) }
        input = nil
    }

    // MARK: Sending

    func send(_ content: Span<UInt8>) -> Bool {
        guard phase == .leased, let exchange else { return true }
        outgoing?.append(content, framing: exchange.request.content)
        flush()
        contentIsHeldBack = (outgoing?.count ?? 0) >= Self.contentHighWater
        return !contentIsHeldBack
    }

    func endContent(trailers: ByteSlice?) {
        guard phase == .leased, let exchange else { return }
        outgoing?.end(framing: exchange.request.content, trailers: trailers)
        flush()
    }

    public override func cannotWatch(_ error: SystemError) { fail(.connect, "\(error)") }

    public override func writable() {
        if phase == .handedOver { tunnel?.tunnelWritable(self); return }
        flush()
    }

    private var requestIsSent: Bool { headRest.isEmpty && (outgoing.map { $0.isEnded && $0.count == 0 } ?? true) }

    private func flush() {
        guard phase == .leased else { return }
        while !headRest.isEmpty || (outgoing?.count ?? 0) > 0 {
            let content = outgoing?.pieces
            let result = if let content, !content.isEmpty {
                headRest.isEmpty ? write(content.span) : write(headRest.span, content.span)
            } else {
                write(headRest.span)
            }
            switch result {
            case .wrote(let count):
                pool.metrics.add(.upstreamBytesOut, UInt64(count))
                let ofHead = min(count, headRest.count)
                headRest = headRest[ofHead..<headRest.count]
                if count > ofHead { content?.consume(count - ofHead) }
                progressed()
            case .wouldBlock:
                armWrite()
                return
            case .failed(let error):
                // The origin may have answered before it closed (RFC 9112 §9.5): send no more, and read what there is.
                disarmWrite()
                sendFailure = error
                headRest = ByteSlice("")
                outgoing = nil
                return
            }
        }
        disarmWrite()
        if reader?.isInBody != true {
            // While the client still sends its content, nothing can be asked of the origin.
            if requestIsSent { due(.head, after: pool.settings.firstByteTimeout) } else { deadline.clear() }
        }
        if contentIsHeldBack, (outgoing?.count ?? 0) < Self.contentHighWater / 2 {
            contentIsHeldBack = false
            exchange?.takesContent()
        }
    }

    // MARK: Receiving

    func resumeReading() {
        guard phase == .leased, readingIsPaused else { return }
        readingIsPaused = false
        if let piece = refused {
            refused = nil
            guard offer(piece.span) else { return }
        }
        startReading()
        progressed()
        process()
    }

    public override func readable() {
        switch phase {
        case .handedOver:
            tunnel?.tunnelReadable(self)
        case .idle:
            // Nobody asked: the end of the connection, or something that belongs to no request.
            end()
        case .leased:
            receive()
        case .connecting, .closed:
            stopReading()
        }
    }

    private func receive() {
        let buffer = input ?? pool.buffers.lend()
        input = buffer
        switch read(into: buffer, minimum: 16 << 10) {
        case .bytes(let count):
            pool.metrics.add(.upstreamBytesIn, UInt64(count))
            hasReceivedBytes = true
            progressed()
            process()
        case .wouldBlock:
            break
        case .endOfStream:
            endOfStream()
        case .failed(let error):
            fail(hasReceivedBytes ? .body : .closed, "\(error)")
        }
    }

    private func endOfStream() {
        switch reader?.endOfStream() {
        case .complete: complete(trailers: nil)
        case .beforeHead: fail(sendFailure == nil ? .closed : .send, sendFailure.map { "\($0)" } ?? "closed before a response")
        case .truncated: fail(.body, "closed in the middle of the body")
        case nil: end()
        }
    }

    /// Takes what the buffer holds, message part by message part, until it needs more or must stop.
    private func process() {
        while phase == .leased, !readingIsPaused, let input, let exchange, reader != nil {
            let event: ResponseReader.Event
            do throws(MessageSyntaxError) {
                event = try reader?.next(in: input.span) ?? .needMore
            } catch {
                return fail(reader?.isInBody == true ? .body : .head, "\(error.explanation)")
            }
            switch event {
            case .needMore:
                if input.isEmpty, reader?.isInBody == true { giveBackInput() }
                return
            case .interim(let length):
                guard let reader, !reader.hasTooManyInterim else { return fail(.head, "too many interim responses") }
                exchange.received(interim: reader.head(in: input.span))
                headTaken(length)
            case .switched(let length):
                return switchProtocols(exchange, input, length)
            case .head(let length):
                guard let reader else { return }
                exchange.received(final: reader.head(in: input.span))
                headTaken(length)
            case .body(let range, let consumed):
                if !range.isEmpty { _ = offer(input.span.extracting(range)) }
                if phase == .leased { input.consume(consumed) }
            case .end(let trailers, let consumed):
                input.consume(consumed)
                complete(trailers: trailers)
            }
        }
    }

    private func headTaken(_ length: Int) {
        // The handler may have ended the exchange.
        guard phase == .leased else { return }
        input?.consume(length)
        reader?.headTaken()
        if reader?.isInBody == true {
            due(.progress, after: pool.settings.noProgressTimeout)
        } else {
            // An interim response: the origin is at work.
            due(.head, after: pool.settings.firstByteTimeout)
        }
    }

    private func switchProtocols(_ exchange: Exchange, _ input: ByteBuffer, _ length: Int) {
        guard exchange.request.asksForUpgrade, let reader else { return fail(.head, "101 without having been asked") }
        phase = .handedOver
        stopReading()
        deadline.clear()
        self.exchange = nil
        handedOverHeadLength = length
        exchange.upgraded(self, head: reader.head(in: input.span))
    }

    /// False when the exchange wants no more at the moment.
    private func offer(_ body: Span<UInt8>) -> Bool {
        switch exchange?.received(body: body) {
        case .taken:
            return true
        case .takenAndFull:
            pause()
        case .refused:
            refused = ByteSlice(copying: body)
            pause()
        case nil:
            return false
        }
        return false
    }

    private func pause() {
        readingIsPaused = true
        stopReading()
        deadline.clear()
    }

    private func complete(trailers: ByteSlice?) {
        let exchange = exchange
        self.exchange = nil
        // Anything behind the response was not asked for: the connection's framing cannot be trusted (RFC 9112 §9.3).
        let isReusable = reader?.keepsAlive == true && requestIsSent && sendFailure == nil && (input?.isEmpty ?? true)
        reader = nil
        giveBackInput()
        if isReusable, pool.keep(idle: self) {
            phase = .idle
            due(.idle, after: pool.settings.idleTimeout)
        } else {
            end()
        }
        exchange?.completed(trailers: trailers)
    }

    // MARK: Time

    /// Bytes went either way. The time to the end of the head is not prolonged by them: a head that drips is as bad as none.
    private func progressed() {
        switch deadline.waitsFor {
        case .connect, .idle, .head: break
        case .progress: due(.progress, after: pool.settings.noProgressTimeout)
        case nil: if reader?.isInBody == true, !readingIsPaused { due(.progress, after: pool.settings.noProgressTimeout) }
        }
    }

    private func due(_ waiting: Waiting, after duration: Duration) {
        deadline.set(waiting, at: pool.loop.now + duration.nanoseconds, for: self, on: pool.loop.deadlines)
    }

    public override func deadlineReached(_ kind: UInt8) -> Int64? {
        switch deadline.reached(at: pool.loop.now) {
        case .nothing: return nil
        case .later(let time): return time
        case .due(.connect):
            let exchange = exchange
            end()
            exchange?.connected(UpstreamError(.connectTimeout, detail: "\(address): no connection in time"))
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

extension Duration {
    /// Whole nanoseconds, saturating.
    package var nanoseconds: Int64 {
        let (seconds, attoseconds) = components
        let (whole, overflow) = seconds.multipliedReportingOverflow(by: 1_000_000_000)
        return overflow ? .max : whole &+ attoseconds / 1_000_000_000
    }
}
