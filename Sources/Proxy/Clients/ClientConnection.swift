import Bytes
import HTTPSemantics
import Libevent
import Telemetry
import Upstream

/// One client's connection: reads requests, one after another, and writes their responses in the same order (RFC 9112
/// §9.3).
///
/// Owned by its worker, confined to its loop. Requests read in phase `reading` are served in a batch together with
/// those of other clients (`SocketBatch`). A plain hit is answered at once (`HitPath`); anything else becomes a
/// `Transaction`.
///
/// ```
/// reading ─head, hit→ reading                 (or lingering, closed, where the connection is not kept)
///    │    └──→ serving ─response sent, content read→ reading
///    │            ├─upgraded→ tunnelling ─either side ends→ closed
///    │            ├─response sent, connection not kept→ lingering ─peer closes, or time→ closed
///    │            └─peer gone, or takes no byte for too long→ closed
///    ├─hit sent in part, bad head, 408→ serving  (without a transaction)
///    └─end of stream, idle too long→ closed
/// serving ─a response made by this proxy replaces the transaction's→ serving;  any ─end→ closed
/// ```
///
/// The owner of each part of the state is the only one that writes it. This table shows in which phases each part is
/// set:
///
/// | | | reading | serving | tunnelling | lingering |
/// | --- | --- | --- | --- | --- | --- |
/// | here | `phase`, `deadline` | always | always | always | always |
/// | here | `transaction` | | one of them | | |
/// | `ResponseOutput` | `answered` | | one of them | | |
/// | `ResponseOutput` | `interims`, then `delivery` | | until sent completely | | |
/// | `RequestInput` | `context` | reading a head | reading content or the next head | | dropping bytes |
/// | `RequestInput` | `content` | | until it is in | | |
/// | `SocketBatch` | a place, with pending hits | from reading to its batch's end | | | |
/// | here | `tunnelRelay` | | | always | |
/// | here | `ownConnections`, if any | always | always | always | always |
///
/// This file has the events and the closing. The extensions have the steps: requests (`Requests`), their content
/// (`Content`), and responses (`Sending`).
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
    enum Waiting {
        case request, head, content, send, tunnel, linger
        /// Bytes to send to a client that has shut its sending side.
        case response
    }

    let worker: Worker
    let peer: SocketAddress
    /// The peer's address as text, for the log. The path of a Unix socket may be any bytes.
    let peerText: ByteSlice
    private let hasIPAddress: Bool
    /// Whether the peer is a trusted proxy, whose `X-Forwarded-For` and `X-Forwarded-Proto` are used.
    let isTrustedProxy: Bool
    /// The arrival of a request whose head is complete now.
    var arrival: Arrival {
        Arrival(
            time: worker.moment, clientAddress: hasIPAddress ? peerText : .empty, isFromTrustedProxy: isTrustedProxy)
    }

    private(set) var phase = Phase.reading
    /// Whether the loop does not watch the socket yet. A connection whose first request arrives with it is watched only
    /// after the response: if it closes then, two system calls are saved.
    private var isUnwatched = true
    private(set) var deadline = LazyDeadline<Waiting>()
    /// Only the methods of these two structs write their fields.
    var input = RequestInput()
    var output = ResponseOutput()
    private(set) var transaction: Transaction?
    private(set) var tunnelRelay: Tunnel?
    /// The upstream connections reserved for this client, from its first request with connection-based authentication
    /// on.
    private var ownConnections: BoundConnections?

    init(adopting descriptor: consuming Descriptor, peer: SocketAddress, worker: Worker) {
        self.worker = worker
        self.peer = peer
        peerText = peer.hostText
        hasIPAddress = peer.port != nil
        isTrustedProxy = worker.recorder.trustedProxies.include(peer)
        super.init(adopting: descriptor, on: worker.loop)
        due(.request, worker.timeouts.idle)
    }

    /// Reads the bytes that have already arrived, then waits for more. Called once, after the worker has registered the
    /// connection.
    func begin() {
        if receive() { worker.batch.add(self) } else { watch() }
    }

    /// Makes the loop report when the socket is readable. Later calls have no effect.
    func watch() {
        guard isUnwatched, phase != .closed else { return }
        isUnwatched = false
        startReading()
    }

    override func cannotWatch(_ error: SystemError) { end() }

    // MARK: Connections to origins of its own

    /// Whether its requests go over upstream connections that no other client uses.
    var isBound: Bool { ownConnections != nil }

    var boundConnections: BoundConnections {
        let connections = ownConnections ?? BoundConnections()
        ownConnections = connections
        return connections
    }

    // MARK: Phases

    /// The only way into a phase.
    func enter(_ next: Phase) {
        assert(phase.leads(to: next), "\(phase) does not lead to \(next)")
        phase = next
    }

    /// Sets the transaction that answers the current request.
    func begin(_ transaction: Transaction) { self.transaction = transaction }

    /// Detaches from the transaction: its response is sent, or another response replaces it.
    func endTransaction() { transaction.take()?.leave() }

    func begin(_ relay: Tunnel) { tunnelRelay = relay }

    // MARK: Reading

    override func readable() {
        switch phase {
        case .reading: if receive() { worker.batch.add(self) }
        case .serving: if receive() { proceed() }
        case .tunnelling: tunnelRelay?.clientReadable()
        case .lingering: discard()
        case .closed: stopReading()
        }
    }

    override func writable() {
        switch phase {
        case .serving:
            // Both calls disarm the write event when no bytes are left to write; while a body is partly sent, the event
            // stays armed.
            if output.delivery == nil { flushInterims() } else { pump() }
        case .tunnelling: tunnelRelay?.clientWritable()
        case .reading, .lingering, .closed: disarmWrite()
        }
    }

    /// - Returns: whether bytes were read into the buffer.
    private func receive() -> Bool {
        if input.context == nil {
            let takesMuch = input.content != nil && transaction?.takesLargePieces ?? true
            input.borrow(takesMuch ? worker.lendContentContext() : worker.lendContext())
        }
        guard let buffer = input.context?.buffer else { return false }
        // At most one buffer is read of a client that pipelines requests.
        guard phase == .reading || input.content != nil || buffer.count < ReadContexts.bufferSize else {
            stopReading()
            return false
        }
        switch read(into: buffer, minimum: ReadContexts.bufferSize / 2) {
        case .bytes(let count):
            worker.metrics.add(.clientBytesIn, UInt64(count))
            if phase == .reading { input.begins(at: loop.now) }
            return true
        case .wouldBlock:
            giveBackContextIfUnused()
        case .endOfStream:
            endOfStream()
        case .failed:
            end()
        }
        return false
    }

    override func batchCame() {
        guard phase == .reading, let context = input.context else { return }
        serve(context, waits: worker.batch.isShared)
    }

    override func batchEnded() { watch() }

    override func batchEnded(_ result: WriteResult, of share: Range<Int>) {
        noteWritten(result, of: share)
        watch()
    }

    /// The client will send no more bytes. A request that is complete is answered as long as writing works: perhaps the
    /// client has only shut its sending side (RFC 9112 §9.6 has servers do so; clients may as well). A closed
    /// connection looks the same until bytes are written to it; then the peer answers with a reset.
    private func endOfStream() {
        input.ended()
        stopReading()
        guard phase == .serving, input.content == nil, !hasLostPeer else { return end() }
        // A response in progress is written until the client takes no byte for `send-timeout`.
        if deadline.waitsFor != .send { awaitResponse() }
    }

    /// Limits the wait for the response if the client has shut its sending side, and watches for its reset meanwhile.
    func awaitResponse() {
        guard input.hasEnded else { return }
        due(.response, worker.timeouts.halfClosed)
        watchForDeparture()
    }

    override func peerHasGone() { end() }

    private func proceed() {
        if phase == .serving { readContent() }
        if phase == .reading, let context = input.context { serve(context) } else { giveBackContextIfUnused() }
    }

    func giveBackContextIfUnused() {
        if input.isEmpty { giveBackContext() }
    }

    /// Has no effect inside `serve`, which returns the context itself.
    func giveBackContext() {
        if let unused = input.giveUpContext() { worker.takeBack(unused) }
    }

    // MARK: Time

    /// Sets the deadline: the client must do `waiting` within so many nanoseconds.
    /// - Parameter current: if the deadline is already for this, it is left unchanged.
    func due(_ waiting: Waiting, _ nanoseconds: Int64, onlyIfNot current: Waiting? = nil) {
        if let current, deadline.waitsFor == current { return }
        deadline = deadline.awaiting(waiting, until: loop.now + nanoseconds, for: self, on: worker.deadlines)
    }

    /// Clears the deadline.
    /// - Parameter waiting: clear the deadline only if it is for this; `nil`: clear any.
    func notDue(_ waiting: Waiting? = nil) {
        if waiting == nil || deadline.waitsFor == waiting { deadline.clear() }
    }

    override func deadlineReached() -> Int64? {
        let (reached, left) = deadline.reached(at: loop.now)
        deadline = left
        switch reached {
        case .nothing: return nil
        case .later(let time): return time
        case .due(.request), .due(.tunnel), .due(.linger), .due(.response): end()
        case .due(.send): takingIsDue()
        case .due(.head): timeOut("The request's head took too long.")
        case .due(.content):
            if output.delivery == nil { timeOut("The request's content took too long.") } else { end() }
        }
        return nil
    }

    private func timeOut(_ explanation: StaticString) {
        worker.notices.timeout(peer)
        answerInstead(OwnAnswer(.requestTimeout, explanation))
    }

    // MARK: The end

    /// Shuts the sending side, and closes once the peer has read the sent bytes and closes, or after a bounded time
    /// (RFC 9112 §9.6).
    func linger() {
        enter(.lingering)
        try? shutdownWrite()
        if input.hasEnded { return end() }
        due(.linger, worker.timeouts.linger)
        startReading()
    }

    private func discard() {
        let context = input.context ?? worker.lendContext()
        input.borrow(context)
        context.buffer.removeAll()
        switch read(into: context.buffer, minimum: 4096) {
        case .bytes, .wouldBlock: giveBackContext()
        case .endOfStream, .failed: end()
        }
    }

    /// Closes now, in any phase.
    func end(abruptly: Bool = false) {
        guard phase != .closed else { return }
        if phase == .serving { record(bodyBytes: output.delivery?.bodyBytesSent ?? 0, isAborted: true) }
        // Where the close marks the end of a body or a tunnel, a plain close would look like a complete one.
        var abruptly = abruptly || output.delivery?.framing == .untilClose
        // Also true if the idle deadline was just reached, so that the connection has no deadline.
        let wasIdle = phase == .reading && deadline.waitsFor != .head
        enter(.closed)
        endTransaction()
        ownConnections?.close()
        output.endDelivery()?.detach()
        if let tunnel = tunnelRelay.take(), !tunnel.clientEnded() { abruptly = true }
        deadline = deadline.cancelled(on: worker.deadlines)
        giveBackContext()
        if abruptly { abort() } else { close() }
        worker.ended(self, wasIdle: wasIdle)
    }

    /// The program ends: the connection takes no request after the current one. A connection without a request waits
    /// only shortly for its first.
    func drain() {
        output.beLast()
        // Requests that have arrived already are answered: left unread, they would turn the close into a reset.
        if phase == .reading, receive() { proceed() }
        // A partly received head still has `head-timeout` to become complete.
        guard phase == .reading, !input.hasBegunHead else { return }
        // A client that has had a response knows that a persistent connection may close at any time, and retries its
        // request on another one (RFC 9112 §9.3.1).
        if input.requestCount > 0 { return end() }
        let until = min(deadline.time, loop.now + worker.timeouts.firstRequest)
        deadline = deadline.awaiting(.request, until: until, for: self, on: worker.deadlines)
    }

    /// The program ends now: a request whose response has not begun gets an error response; all other connections are
    /// closed. If request content is still unread, the close becomes a reset, which may overtake that error response.
    func cut() {
        if phase == .serving, output.delivery == nil {
            output.beLast()
            transaction?.programEnds()
        }
        end()
    }

    /// The end of the idle timeout; `nil` while a request has begun.
    var idleUntil: Int64? { phase == .reading && deadline.waitsFor == .request ? deadline.time : nil }

    /// Makes room for another client, if this one is idle: closes, unless a request has arrived in the meantime, which
    /// is answered now, without waiting for a batch.
    /// - Returns: whether the connection is closed.
    func giveWay() -> Bool {
        guard idleUntil != nil else { return phase == .closed }
        let before = input.requestCount
        if receive() { proceed() }
        if idleUntil != nil, input.requestCount == before { end() }
        return phase == .closed
    }
}
