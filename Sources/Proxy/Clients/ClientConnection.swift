import Bytes
import HTTPSemantics
import Libevent
import Telemetry
import Upstream

/// One client's connection: reads requests, one after another, and writes their responses in the same order (RFC 9112 §9.3).
///
/// Owned by its worker, confined to its loop. A plain hit is answered inside `readable()` (see `ClientConnection+Hits`); anything else
/// becomes a `Transaction`.
///
/// ```
/// reading ─head→ (hit) → reading
///    │      └──→ serving ─response sent, content read→ reading
///    │              ├─upgraded→ tunnelling ─either side ends→ closed
///    │              └─response sent, connection not kept→ lingering
///    ├─bad head, 408→ lingering ─peer closes, or time→ closed
///    └─end of stream, idle too long→ closed
/// ```
final class ClientConnection: Socket {
    enum Phase { case reading, serving, tunnelling, lingering, closed }
    enum Waiting { case request, head, content, send, linger }

    let worker: Worker
    let peer: SocketAddress
    /// The peer's address as text, for the log and `X-Forwarded-For`; made when first needed.
    private(set) lazy var peerText = ByteSlice(peer.host)

    var phase = Phase.reading
    var context: ReadContext?
    var deadline = LazyDeadline<Waiting>()
    var requests = 0
    /// When the first byte of the current request was seen (nanoseconds of the loop's clock).
    var requestBegan: Int64 = 0

    private var transaction: Transaction?
    private var delivery: Delivery?
    private var interims: ByteBuffer?
    private var content: ContentReader?
    private var tunnelRelay: Tunnel?
    private var keepsAlive = true
    private var inputEnded = false
    private var isServing = false
    /// First byte of the response, in nanoseconds of the loop's clock; 0 before.
    private var firstByteSent: Int64 = 0

    init(adopting descriptor: consuming Descriptor, peer: SocketAddress, worker: Worker) {
        self.worker = worker
        self.peer = peer
        super.init(adopting: descriptor, on: worker.loop)
        due(.request, worker.timeouts.idle)
        startReading()
    }

    // MARK: Reading

    override func readable() {
        switch phase {
        case .reading, .serving: receive()
        case .tunnelling: tunnelRelay?.clientReadable()
        case .lingering: discard()
        case .closed: stopReading()
        }
    }

    override func writable() {
        switch phase {
        case .serving:
            disarmWrite()
            if delivery == nil { flushInterims() } else { pump() }
        case .tunnelling: tunnelRelay?.clientWritable()
        case .reading, .lingering, .closed: disarmWrite()
        }
    }

    private func receive() {
        let context = context ?? worker.lendContext()
        self.context = context
        // A client that sends ahead of its responses is read no further than one buffer.
        guard phase == .reading || content != nil || context.buffer.count < Worker.readBufferSize else { return stopReading() }
        switch read(into: context.buffer, minimum: Worker.readBufferSize / 2) {
        case .bytes(let count):
            worker.metrics.add(.clientBytesIn, UInt64(count))
            if phase == .reading, requestBegan == 0 { requestBegan = worker.loop.now }
            proceed()
        case .wouldBlock:
            giveBackContextIfUnused()
        case .endOfStream:
            endOfStream()
        case .failed:
            end()
        }
    }

    /// The client will send nothing more. A client that only closed its half looks like one that has gone; as most servers do, we take
    /// it to have gone while its response is still to come, and go on with what is complete here.
    private func endOfStream() {
        inputEnded = true
        stopReading()
        guard phase == .serving, content == nil, let delivery, delivery.followed == nil else { return end() }
    }

    private func proceed() {
        if phase == .serving { readContent() }
        if phase == .reading { serve() }
    }

    /// Takes requests out of the buffer until it needs more bytes or one must be waited for.
    private func serve() {
        guard !isServing else { return }
        isServing = true
        defer { isServing = false }
        while phase == .reading, let context, !context.buffer.isEmpty {
            let progress: HeadProgress
            do throws(MessageSyntaxError) {
                let buffer = context.buffer
                progress = try context.parser.parse(buffer.span)
            } catch {
                return refuse(error)
            }
            guard case .complete(let length) = progress else {
                due(.head, worker.timeouts.head, onlyIfNot: .head)
                break
            }
            requests += 1
            keepsAlive = context.parser.head.keepsAlive && !worker.isDraining
                && requests < worker.settings.clients.maxRequestsPerConnection ?? .max
            if !answerHit(context) { beginTransaction(context) }
            // The connection may have ended meanwhile, and the context gone back.
            guard phase != .closed else { return }
            context.buffer.consume(length)
            context.parser.reset()
            if phase == .serving { readContent() }
        }
        if inputEnded, phase == .reading { return end() }
        giveBackContextIfUnused()
    }

    private func beginTransaction(_ context: ReadContext) {
        let head = context.parser.head
        let (parser, buffer) = (context.parser, context.buffer)
        let fields = HeadBlock(copying: parser.view(in: buffer.span))
        phase = .serving
        firstByteSent = 0
        if requestBegan == 0 { requestBegan = worker.loop.now }
        deadline.clear()
        switch worker.admit(head, fields, from: peerText) {
        case .refused(let status, let explanation, let extra):
            keepsAlive = keepsAlive && head.framing == .none
            worker.metrics.add(.requests(MethodClass(head.method)))
            return respondWithoutTransaction(status, explanation, extra: extra, head: head, fields: fields)
        case .admitted(let request):
            if request.hasContent { content = ContentReader(head.framing, limit: worker.settings.clients.maxBodySize) }
            let transaction = Transaction(request, client: self, worker: worker)
            self.transaction = transaction
            transaction.start()
        }
    }

    // MARK: The request's content

    private func readContent() {
        while phase == .serving, let context, let reader = content {
            let buffer = context.buffer
            let event: ContentReader.Event
            do throws(MessageSyntaxError) {
                event = try reader.next(in: buffer.span)
            } catch {
                // Its head may have been answered; what follows cannot be trusted.
                if firstByteSent == 0, delivery == nil { transaction?.leave(); return refuse(error) }
                return end()
            }
            switch event {
            case .needMore(let consumed):
                context.buffer.consume(consumed)
                if deadline.waitsFor == nil { due(.content, worker.timeouts.content) }
                return
            case .piece(let range, let consumed):
                let goesOn = transaction?.receive(content: buffer.span.extracting(range)) ?? true
                context.buffer.consume(consumed)
                due(.content, worker.timeouts.content)
                if !goesOn {
                    stopReading()
                    deadline.clear()
                    return
                }
            case .end(let trailers, let consumed):
                context.buffer.consume(consumed)
                content = nil
                if deadline.waitsFor == .content { deadline.clear() }
                transaction?.endContent(trailers: trailers)
                finishIfDone()
            case .tooLarge:
                content = nil
                keepsAlive = false
                if delivery == nil, let transaction {
                    let request = transaction.request
                    transaction.leave()
                    self.transaction = nil
                    respondWithoutTransaction(
                        .contentTooLarge, "The request's content is larger than is taken here.", extra: "", head: request.head, fields: request.fields)
                }
                return
            }
        }
    }

    // MARK: Ending

    private func refuse(_ error: MessageSyntaxError) {
        worker.metrics.add(.malformedRequests)
        worker.noteMalformed(error, from: peer)
        keepsAlive = false
        phase = .serving
        content = nil
        transaction = nil
        respondWithoutTransaction(error.status, error.explanation, extra: "", head: nil, fields: nil)
    }

    /// An answer of our own to what never became a transaction.
    private func respondWithoutTransaction(
        _ status: Status, _ explanation: StaticString, extra: StaticString, head: RequestHead?, fields: HeadBlock?
    ) {
        let buffer = ByteBuffer(capacity: 512)
        worker.errors.write(
            status, explanation, provenance: nil, persists: keepsAlive, version: head?.version ?? .http11,
            date: worker.loop.wallClockSeconds, isHead: head?.method == .head, extra: extra, to: buffer)
        refusal = (status.code, head, fields)
        send(buffer, .none, .sized, passesTrailers: false)
    }

    /// What was answered without a transaction, for the log.
    private var refusal: (status: UInt16, head: RequestHead?, fields: HeadBlock?)?

    /// Closes with what was sent on its way: waits for the peer to read it, for a bounded time (RFC 9112 §9.6).
    private func linger() {
        phase = .lingering
        try? shutdownWrite()
        if inputEnded { return end() }
        due(.linger, worker.timeouts.linger)
        startReading()
    }

    private func discard() {
        let context = context ?? worker.lendContext()
        self.context = context
        context.buffer.removeAll()
        switch read(into: context.buffer, minimum: 4096) {
        case .bytes, .wouldBlock: giveBackContext()
        case .endOfStream, .failed: end()
        }
    }

    /// Closes now. Whatever is under way is left.
    func end(abruptly: Bool = false) {
        guard phase != .closed else { return }
        if phase == .serving { record(isAborted: true) }
        phase = .closed
        transaction?.leave()
        transaction = nil
        delivery?.detach()
        delivery = nil
        tunnelRelay?.clientEnded()
        tunnelRelay = nil
        deadline.cancel(on: worker.loop.deadlines)
        giveBackContext()
        if abruptly { abort() } else { close() }
        worker.ended(self)
    }

    private func giveBackContextIfUnused() {
        if let context, context.buffer.isEmpty { giveBackContext() }
    }

    private func giveBackContext() {
        if let context { worker.takeBack(context) }
        context = nil
    }

    /// The program ends: no request after the one under way.
    func drain() {
        keepsAlive = false
        if phase == .reading { end() }
    }

    // MARK: Time

    func due(_ waiting: Waiting, _ nanoseconds: Int64, onlyIfNot current: Waiting? = nil) {
        if let current, deadline.waitsFor == current { return }
        deadline.set(waiting, at: worker.loop.now + nanoseconds, for: self, on: worker.loop.deadlines)
    }

    override func deadlineReached(_ kind: UInt8) -> Int64? {
        switch deadline.reached(at: worker.loop.now) {
        case .nothing: return nil
        case .later(let time): return time
        case .due(.request), .due(.linger): end()
        case .due(.send): end(abruptly: true)
        case .due(.head): timeOut("The request's head took too long.")
        case .due(.content):
            if delivery == nil { timeOut("The request's content took too long.") } else { end() }
        }
        return nil
    }

    private func timeOut(_ explanation: StaticString) {
        worker.noteTimeout(peer)
        keepsAlive = false
        phase = .serving
        content = nil
        transaction?.leave()
        transaction = nil
        respondWithoutTransaction(.requestTimeout, explanation, extra: "", head: nil, fields: nil)
    }
}

// MARK: - Sending

extension ClientConnection: TransactionClient {
    var persists: Bool { keepsAlive && !worker.isDraining && (content == nil || transaction?.wantsContent == true) }

    func send(_ head: ByteBuffer, _ source: Delivery.Source, _ framing: Delivery.Framing, passesTrailers: Bool) {
        if framing == .untilClose { keepsAlive = false }
        if let pending = interims {
            // They come first.
            pending.append(head.span)
            interims = nil
            delivery = Delivery(head: pending, source: source, framing: framing, passesTrailers: passesTrailers)
        } else {
            delivery = Delivery(head: head, source: source, framing: framing, passesTrailers: passesTrailers)
        }
        pump()
    }

    /// A hit went out as a whole.
    func hitSent() {
        requestBegan = 0
        guard keepsAlive else { return linger() }
        due(.request, worker.timeouts.idle)
    }

    /// A hit went out in part; it is in the log already.
    func sendRest(_ head: ByteBuffer, _ body: CompleteBodyReader) {
        phase = .serving
        delivery = Delivery(head: head, source: .complete(body), framing: .sized)
        armWrite()
        due(.send, worker.timeouts.send)
    }

    func send(interim: ByteSlice) {
        guard phase == .serving, delivery == nil else { return }
        let buffer = interims ?? ByteBuffer(capacity: 256)
        buffer.append(interim)
        interims = buffer
        flushInterims()
    }

    func flushInterims() {
        guard let buffer = interims else { return }
        switch write(buffer.span) {
        case .wrote(let count):
            worker.metrics.add(.clientBytesOut, UInt64(count))
            buffer.consume(count)
            if buffer.isEmpty { interims = nil } else { armWrite() }
        case .wouldBlock: armWrite()
        case .failed: end()
        }
    }

    func resumeContent() {
        guard phase == .serving, content != nil else { return }
        startReading()
        readContent()
    }

    func pump() {
        guard let delivery else { return }
        let outcome = delivery.pump(on: self, worker.gather) { count in
            worker.metrics.add(.clientBytesOut, UInt64(count))
            if firstByteSent == 0 { firstByteSent = worker.loop.now }
        }
        switch outcome {
        case .done:
            responseSent()
        case .blocked:
            armWrite()
            due(.send, worker.timeouts.send)
        case .starved:
            disarmWrite()
            if deadline.waitsFor == .send { deadline.clear() }
            if let body = delivery.followed { worker.followers.wait(self, for: body) }
        case .cutOff:
            // Without an announced end a plain close would look like one.
            end(abruptly: delivery.framing == .untilClose)
        case .peerGone:
            end()
        }
    }

    private func responseSent() {
        disarmWrite()
        if deadline.waitsFor == .send { deadline.clear() }
        record(isAborted: false)
        delivery?.detach()
        delivery = nil
        transaction?.responseSent()
        transaction = nil
        refusal = nil
        finishIfDone()
    }

    /// The next request may come once the response is out and the content is in.
    private func finishIfDone() {
        guard phase == .serving, transaction == nil, delivery == nil else { return }
        guard keepsAlive, content == nil, !worker.isDraining else {
            content = nil
            return linger()
        }
        phase = .reading
        requestBegan = 0
        due(.request, worker.timeouts.idle)
        if !inputEnded { startReading() }
        // From inside `serve` its loop goes on; else there may be a request in the buffer already.
        if !isServing { serve() }
    }

    func tunnel(to upstream: UpstreamConnection, head: ByteBuffer) {
        record(isAborted: false)
        phase = .tunnelling
        deadline.clear()
        let early = context?.buffer.copied()
        giveBackContext()
        let relay = Tunnel(client: self, upstream: upstream, toClient: head, toUpstream: early, worker: worker)
        tunnelRelay = relay
        transaction?.responseSent()
        transaction = nil
        relay.start()
    }

    /// One line in the access log, and the counts that go with it.
    private func record(isAborted: Bool) {
        let delivered = delivery?.bodyBytesSent ?? 0
        if let transaction {
            worker.record(
                transaction.request, transaction.provenance, status: firstByteSent == 0 && isAborted ? 0 : transaction.status,
                began: requestBegan, firstByte: firstByteSent, bodyBytes: delivered, isAborted: isAborted, client: peerText)
        } else if let refusal {
            worker.record(refused: refusal.status, refusal.head, refusal.fields, began: requestBegan, client: peerText)
        }
    }
}

extension ClientConnection: BodyFollowers.Follower {
    func bodyGrew() {
        if phase == .serving { pump() }
    }
}
