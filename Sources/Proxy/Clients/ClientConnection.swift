import Bytes
import HTTPSemantics
import Libevent
import Storage
import Telemetry
import Upstream

/// One client's connection: reads requests, one after another, and writes their responses in the same order (RFC 9112 §9.3).
///
/// Owned by its worker, confined to its loop. A plain hit is answered inside `readable()` (see `HitPath`); anything else
/// becomes a `Transaction`.
///
/// ```
/// reading ─head, hit→ reading                 (or lingering, closed, where the connection is not kept)
///    │    └──→ serving ─response sent, content read→ reading
///    │            ├─upgraded→ tunnelling ─either side ends→ closed
///    │            ├─response sent, connection not kept→ lingering ─peer closes, or time→ closed
///    │            └─peer gone, takes nothing for too long→ closed
///    ├─hit sent in part, bad head, 408→ serving  (without a transaction)
///    └─end of stream, idle too long→ closed
/// ```
final class ClientConnection: Socket {
    enum Phase { case reading, serving, tunnelling, lingering, closed }
    enum Waiting { case request, head, content, send, tunnel, linger }

    let worker: Worker
    let peer: SocketAddress
    /// The peer's address as text, for the log and `X-Forwarded-For`.
    let peerText: ByteSlice

    var phase = Phase.reading
    /// Lent while there is something to read, or what was read is not all used.
    var context: ReadContext?
    var deadline = LazyDeadline<Waiting>()
    /// How many were taken out of the buffer.
    var requests = 0
    /// When the first byte of the current request was seen (nanoseconds of the loop's clock).
    var requestBegan: Int64 = 0

    var transaction: Transaction?
    var delivery: Delivery?
    /// Interim responses that the kernel has not taken yet.
    var interims: ByteBuffer?
    /// Until the request's content is in.
    var content: ContentReader?
    var tunnelRelay: Tunnel?
    /// Whether another request may come behind this one, as far as this one goes.
    var keepsAlive = true
    /// Whether the client has closed its half.
    var inputEnded = false
    /// Whether `serve` is on the stack.
    var isServing = false
    /// Whether `worker.scratch` holds hits of ours that are still to be sent; only while `serve` is at work.
    var holdsHits = false
    /// What was answered without a transaction, for the log.
    var refused: RefusedRequest?
    /// First byte of the response, in nanoseconds of the loop's clock; 0 before.
    var firstByteSent: Int64 = 0

    init(adopting descriptor: consuming Descriptor, peer: SocketAddress, worker: Worker) {
        self.worker = worker
        self.peer = peer
        peerText = peer.hostText
        super.init(adopting: descriptor, on: worker.loop)
        due(.request, worker.timeouts.idle)
        startReading()
    }

    override func cannotWatch(_ error: SystemError) { end() }

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
            // Either disarms when nothing is left to write: a client that takes a body bit by bit stays watched.
            if delivery == nil { flushInterims() } else { pump() }
        case .tunnelling: tunnelRelay?.clientWritable()
        case .reading, .lingering, .closed: disarmWrite()
        }
    }

    func receive() {
        if context == nil { context = content == nil ? worker.lendContext() : worker.lendContentContext() }
        guard let buffer = context?.buffer else { return }
        // A client that sends ahead of its responses is read no further than one buffer.
        guard phase == .reading || content != nil || buffer.count < ReadContexts.bufferSize else { return stopReading() }
        switch read(into: buffer, minimum: ReadContexts.bufferSize / 2) {
        case .bytes(let count):
            worker.metrics.add(.clientBytesIn, UInt64(count))
            if phase == .reading, requestBegan == 0 { requestBegan = loop.now }
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
    func endOfStream() {
        inputEnded = true
        stopReading()
        guard phase == .serving, content == nil, let delivery, delivery.followed == nil else { return end() }
    }

    func proceed() {
        if phase == .serving { readContent() }
        if phase == .reading, let context { serve(context) } else { giveBackContextIfUnused() }
    }

    /// What became of the head at the front of the buffer.
    private enum Step {
        case incomplete
        case answered(headLength: Int)
        /// For a transaction, in the words of whoever joined the worker's crowd last: nothing is read or found out anew.
        case alike(AdmittedHead)
        /// For a transaction; with its route, where that is known and the worker has its key.
        case unanswered(RequestHead, HeadBlock, on: Route?)
    }

    /// Takes requests out of the buffer until it needs more bytes or one must be waited for.
    /// - Parameter context: the connection's own. It stays here meanwhile, also when the connection ends, and goes back when nothing is left in it.
    func serve(_ context: ReadContext) {
        guard !isServing else { return }
        isServing = true
        let buffer = context.buffer
        requests: while phase == .reading, !buffer.isEmpty {
            let step: Step
            do throws(MessageSyntaxError) {
                step = try takeStep(context)
            } catch {
                sendHeldHits()
                guard phase == .reading else { break requests }
                refuse(error)
                break requests
            }
            switch consume step {
            case .incomplete:
                sendHeldHits()
                guard phase == .reading else { break requests }
                due(.head, worker.timeouts.head, onlyIfNot: .head)
                break requests
            case .answered(let length):
                requests += 1
                buffer.consume(length)
            case .alike(let admitted):
                sendHeldHits()
                guard phase == .reading else { break requests }
                requests += 1
                buffer.consume(admitted.head.length)
                beginServing()
                beginTransaction(ClientRequest(admitted, arrived: worker.moment, client: peerText))
            case .unanswered(let head, let fields, let route):
                sendHeldHits()
                // Else the head is read again once what goes before it is sent.
                guard phase == .reading else { break requests }
                requests += 1
                buffer.consume(head.length)
                beginTransaction(head, fields, on: route)
                if phase == .serving { readContent() }
            }
        }
        isServing = false
        switch phase {
        case .reading where inputEnded: end()
        case .reading, .serving, .lingering: if buffer.isEmpty { giveBackContext() }
        case .tunnelling, .closed: giveBackContext()
        }
    }

    @inline(__always)
    private func takeStep(_ context: ReadContext) throws(MessageSyntaxError) -> Step {
        let buffer = context.buffer
        // Not where something learnt about queries since could give the same words another key.
        if let crowd = worker.crowd, let admitted = crowd.latestHead, admitted.isBeginning(of: buffer.span), worker.variations.isEmpty {
            context.parser.use { $0.reset() }
            keepsAlive = admitted.head.keepsAlive && !worker.isDraining && requests + 1 < worker.mostRequests
            return .alike(admitted)
        }
        return try context.parser.use { parser throws(MessageSyntaxError) in
            let progress: HeadProgress
            do throws(MessageSyntaxError) {
                progress = try parser.parse(buffer.span)
            } catch {
                // It may be read once more, behind hits that are still to be sent.
                parser.reset()
                throw error
            }
            guard case .complete(let length) = progress else { return .incomplete }
            defer { parser.reset() }
            keepsAlive = parser.head.keepsAlive && !worker.isDraining && requests + 1 < worker.mostRequests
            let known: Route?
            switch worker.hitPath.answer(parser.head, parser.view(in: buffer.span), to: self) {
            case .answered: return .answered(headLength: length)
            case .nothingFresh(let route): known = route
            case .notPlain: known = nil
            }
            return .unanswered(parser.head, HeadBlock(copying: parser.view(in: buffer.span.extracting(0..<length))), on: known)
        }
    }

    /// - Parameter route: `nil` where it is still to be found.
    func beginTransaction(_ head: RequestHead, _ fields: HeadBlock, on route: Route?) {
        beginServing()
        let request: ClientRequest
        do throws(Worker.Refusal) {
            request = try worker.admit(head, fields, on: route, from: peerText)
        } catch {
            keepsAlive = keepsAlive && head.framing == .none
            worker.metrics.add(.requests(MethodClass(head.method)))
            return respondWithoutTransaction(error.status, error.explanation, extra: error.extra, head: head, fields: fields)
        }
        if request.hasContent { content = ContentReader(head.framing, limit: worker.settings.clients.maxBodySize) }
        beginTransaction(request)
    }

    private func beginServing() {
        phase = .serving
        firstByteSent = 0
        if requestBegan == 0 { requestBegan = loop.now }
        deadline.clear()
    }

    private func beginTransaction(_ request: ClientRequest) {
        let transaction = Transaction(request, client: self, worker: worker)
        self.transaction = transaction
        transaction.start()
    }

    // MARK: Time

    func due(_ waiting: Waiting, _ nanoseconds: Int64, onlyIfNot current: Waiting? = nil) {
        // In a local variable nothing watches its exclusive use at run time.
        var deadline = deadline
        if let current, deadline.waitsFor == current { return }
        deadline.set(waiting, at: loop.now + nanoseconds, for: self, on: worker.deadlines)
        self.deadline = deadline
    }

    override func deadlineReached(_ kind: UInt8) -> Int64? {
        var deadline = deadline
        let reached = deadline.reached(at: loop.now)
        self.deadline = deadline
        switch reached {
        case .nothing: return nil
        case .later(let time): return time
        case .due(.request), .due(.tunnel), .due(.linger): end()
        case .due(.send): end(abruptly: true)
        case .due(.head): timeOut("The request's head took too long.")
        case .due(.content):
            if delivery == nil { timeOut("The request's content took too long.") } else { end() }
        }
        return nil
    }

    func timeOut(_ explanation: StaticString) {
        worker.notices.timeout(peer)
        keepsAlive = false
        phase = .serving
        content = nil
        transaction?.leave()
        transaction = nil
        respondWithoutTransaction(.requestTimeout, explanation, extra: "", head: nil, fields: nil)
    }
}
