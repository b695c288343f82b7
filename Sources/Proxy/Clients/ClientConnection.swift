import Bytes
import HTTPSemantics
import Libevent
import Telemetry

/// One client's connection: reads requests, one after another, and writes their responses in the same order (RFC 9112
/// §9.3).
///
/// Owned by its worker, confined to its loop. A plain hit is answered inside `readable()` (see `HitPath`); anything
/// else becomes a `Transaction`. Here are its states and events; requests, content, sending and the end are in extensions.
///
/// ```
/// reading ─head, hit→ reading                 (or lingering, closed, where the connection is not kept)
///    │    └──→ serving ─response sent, content read→ reading
///    │            ├─upgraded→ tunnelling ─either side ends→ closed
///    │            ├─response sent, connection not kept→ lingering ─peer closes, or time→ closed
///    │            └─peer gone, takes nothing for too long→ closed
///    ├─hit sent in part, bad head, 408→ serving  (without a transaction)
///    └─end of stream, idle too long→ closed
/// serving ─an answer of our own takes the transaction's place→ serving;  any ─end→ closed
/// ```
///
/// What may be set in which phase, beside what is kept throughout:
///
/// | | reading | serving | tunnelling | lingering |
/// | --- | --- | --- | --- | --- |
/// | `context` | while a request is coming | while content or the next request is | | while what comes is dropped |
/// | `transaction` or `answered` | | one of them | | |
/// | `interims`, then `delivery` | | until all of it is out | | |
/// | `content` | | until it is in | | |
/// | `tunnelRelay` | | | always | |
final class ClientConnection: Socket {
    enum Phase {
        case reading, serving, tunnelling, lingering, closed

        fileprivate func leads(to next: Phase) -> Bool {
            switch self {
            case .reading: next == .serving || next == .lingering || next == .closed
            case .serving: true
            case .tunnelling, .lingering: next == .closed
            case .closed: false
            }
        }
    }
    enum Waiting { case request, head, content, send, tunnel, linger }

    let worker: Worker
    let peer: SocketAddress
    /// The peer's address as text, for the log. The path of a Unix socket is any bytes that its owner chose.
    let peerText: ByteSlice
    private let hasIPAddress: Bool
    /// Whether it is a proxy whose word on the client counts.
    let isTrustedProxy: Bool
    /// For origins, without the address of a Unix socket.
    var sender: ClientRequest.Sender {
        ClientRequest.Sender(address: hasIPAddress ? peerText : .empty, isTrustedProxy: isTrustedProxy)
    }

    private(set) var phase = Phase.reading
    /// Lent while there is something to read, or what was read is not all used.
    var context: ReadContext?
    var deadline = LazyDeadline<Waiting>()
    /// How many requests were taken out of the buffer.
    var requestCount = 0
    /// When the first byte of the current request was seen (nanoseconds of the loop's clock).
    var requestBegan: Int64 = 0

    var transaction: Transaction?
    var delivery: Delivery?
    /// Interim responses that the kernel has not taken yet.
    var interims: ByteBuffer?
    /// Until the request's content is in.
    var content: ContentReader?
    var tunnelRelay: Tunnel?
    /// Whether this request allows another one behind it.
    var keepsAlive = true
    /// Whether the client has closed its half.
    var inputEnded = false
    /// Whether `serve` is on the stack.
    var isServing = false
    /// What was answered without a transaction, for the log.
    var answered: AnsweredRequest?
    /// First byte of the response, in nanoseconds of the loop's clock; 0 before.
    var firstByteSent: Int64 = 0

    init(adopting descriptor: consuming Descriptor, peer: SocketAddress, worker: Worker) {
        self.worker = worker
        self.peer = peer
        peerText = peer.hostText
        hasIPAddress = peer.port != nil
        isTrustedProxy = worker.recorder.trustedProxies.include(peer)
        super.init(adopting: descriptor, on: worker.loop)
        due(.request, worker.timeouts.idle)
        startReading()
    }

    override func cannotWatch(_ error: SystemError) { end() }

    /// The only way into a phase.
    func enter(_ next: Phase) {
        assert(phase.leads(to: next), "\(phase) does not lead to \(next)")
        phase = next
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
        guard phase == .reading || content != nil || buffer.count < ReadContexts.bufferSize else {
            return stopReading()
        }
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

    /// The client will send nothing more. A client that only closed its half looks like one that has gone. Like most
    /// servers, we treat it as gone while its response is still to come, and finish sending what is complete here.
    func endOfStream() {
        inputEnded = true
        stopReading()
        guard phase == .serving, content == nil, let delivery, delivery.followed == nil else { return end() }
    }

    func proceed() {
        if phase == .serving { readContent() }
        if phase == .reading, let context { serve(context) } else { giveBackContextIfUnused() }
    }

    // MARK: Time

    func due(_ waiting: Waiting, _ nanoseconds: Int64, onlyIfNot current: Waiting? = nil) {
        if let current, deadline.waitsFor == current { return }
        deadline = deadline.awaiting(waiting, until: loop.now + nanoseconds, for: self, on: worker.deadlines)
    }

    override func deadlineReached() -> Int64? {
        let (reached, left) = deadline.reached(at: loop.now)
        deadline = left
        switch reached {
        case .nothing: return nil
        case .later(let time): return time
        case .due(.request) where loop.postponesEnd():
            // Thousands became idle together. Until its turn comes it stays a connection on which a request is answered.
            due(.request, DeadlineWheel.Settings.tick)
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
        answerInstead(OwnAnswer(.requestTimeout, explanation))
    }
}
