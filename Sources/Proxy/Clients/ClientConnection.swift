import Bytes
import HTTPSemantics
import Libevent
import Telemetry
import Upstream

/// One client's connection: reads requests, one after another, and writes their responses in the same order (RFC 9112
/// §9.3).
///
/// Owned by its worker, confined to its loop. What it reads between requests is served in a round with what others have
/// sent (`ServingRound`). A plain hit is answered at once (`HitPath`); anything else becomes a `Transaction`.
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
/// Who owns which part of its state, and writes it. What is set in which phase, beside what is kept throughout:
///
/// | | | reading | serving | tunnelling | lingering |
/// | --- | --- | --- | --- | --- | --- |
/// | here | `phase`, `deadline` | always | always | always | always |
/// | here | `transaction` | | one of them | | |
/// | `ResponseOutput` | `answered` | | one of them | | |
/// | `ResponseOutput` | `interims`, then `delivery` | | until all of it is out | | |
/// | `RequestInput` | `context` | while a request is coming | while content or the next request is | | while what comes is dropped |
/// | `RequestInput` | `content` | | until it is in | | |
/// | `ServingRound` | a place | from reading to its round | | | |
/// | `ResponseOutput` | `heldHits` | while requests are taken, and to its round's end | | | |
/// | here | `tunnelRelay` | | | always | |
/// | here | `ownConnections`, if any | always | always | always | always |
///
/// Here are the events, and how it ends. The extensions only say what follows from what: requests (`Requests`), their
/// content (`Content`), and responses (`Sending`).
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
        /// Something to be sent to a client that has shut its sending side.
        case response
    }

    let worker: Worker
    let peer: SocketAddress
    /// The peer's address as text, for the log. The path of a Unix socket is any bytes that its owner chose.
    let peerText: ByteSlice
    private let hasIPAddress: Bool
    /// Whether it is a proxy whose word on the client counts.
    let isTrustedProxy: Bool
    /// The client as origins are told of it, without the address of a Unix socket.
    var sender: ClientRequest.Sender {
        ClientRequest.Sender(
            address: hasIPAddress ? peerText : .empty, isTrustedProxy: isTrustedProxy, isBound: isBound)
    }

    private(set) var phase = Phase.reading
    /// Whether the loop still is to watch it. Not before its first request is answered, if that has come with it: one
    /// that ends there is never watched, which spares two system calls.
    private var isUnwatched = true
    /// Whether its requests are being taken in its turn of a round that has others, until whose end its hits may wait.
    private(set) var isInRound = false
    private(set) var deadline = LazyDeadline<Waiting>()
    /// Fields of these two are written by their own methods alone.
    var input = RequestInput()
    var output = ResponseOutput()
    private(set) var transaction: Transaction?
    private(set) var tunnelRelay: Tunnel?
    /// The connections to origins that are its own, from the first request on that has credentials for its connection.
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

    /// Reads what has come already, and waits for the rest. Once, when its worker knows the connection.
    func begin() {
        if receive() { worker.serveInRound(self) } else { watch() }
    }

    /// From now on the loop says when there is something to read. Only the first call does anything.
    func watch() {
        guard isUnwatched, phase != .closed else { return }
        isUnwatched = false
        startReading()
    }

    override func cannotWatch(_ error: SystemError) { end() }

    // MARK: Connections to origins of its own

    /// Whether its requests go over connections that nobody else's do.
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

    /// What answers the request under way, from now on.
    func begin(_ transaction: Transaction) { self.transaction = transaction }

    /// The request under way is answered, or will be answered otherwise.
    func endTransaction() { transaction.take()?.leave() }

    func begin(_ relay: Tunnel) { tunnelRelay = relay }

    // MARK: Reading

    override func readable() {
        switch phase {
        case .reading: if receive() { worker.serveInRound(self) }
        case .serving: if receive() { proceed() }
        case .tunnelling: tunnelRelay?.clientReadable()
        case .lingering: discard()
        case .closed: stopReading()
        }
    }

    override func writable() {
        switch phase {
        case .serving:
            // Either disarms when nothing is left to write: a client that takes a body bit by bit stays watched.
            if output.delivery == nil { flushInterims() } else { pump() }
        case .tunnelling: tunnelRelay?.clientWritable()
        case .reading, .lingering, .closed: disarmWrite()
        }
    }

    /// - Returns: whether something came, which is in the buffer.
    private func receive() -> Bool {
        if input.context == nil {
            let takesMuch = input.content != nil && transaction?.takesLargePieces ?? true
            input.borrow(takesMuch ? worker.lendContentContext() : worker.lendContext())
        }
        guard let buffer = input.context?.buffer else { return false }
        // A client that sends ahead of its responses is read no further than one buffer.
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

    override func roundCame() {
        guard phase == .reading, let context = input.context else { return }
        isInRound = worker.sharesRound
        serve(context)
        isInRound = false
    }

    override func roundEnds() {
        worker.sendHits(of: self)
        watch()
    }

    /// The client will send nothing more. A request that is complete is answered as long as writing works: perhaps the
    /// client has only shut its sending side (RFC 9112 §9.6 has servers do so; clients may as well). One that has closed
    /// looks the same until something is written to it, and then it answers by a reset.
    private func endOfStream() {
        input.ended()
        stopReading()
        guard phase == .serving, input.content == nil, !hasLostPeer else { return end() }
        // A response under way is written until the client takes nothing for `send-timeout`.
        if deadline.waitsFor != .send { awaitResponse() }
    }

    /// Nothing goes out at the moment to a client that has shut its sending side, if this one has.
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

    /// Not inside `serve`, which gives it back itself.
    func giveBackContext() {
        if let unused = input.giveUpContext() { worker.takeBack(unused) }
    }

    // MARK: Time

    /// From now on the client is waited for, for this, no longer than so many nanoseconds.
    /// - Parameter current: if that is what it is waited for already, nothing changes.
    func due(_ waiting: Waiting, _ nanoseconds: Int64, onlyIfNot current: Waiting? = nil) {
        if let current, deadline.waitsFor == current { return }
        deadline = deadline.awaiting(waiting, until: loop.now + nanoseconds, for: self, on: worker.deadlines)
    }

    /// The client has done what it was waited for.
    /// - Parameter waiting: what that was; `nil`: whatever it was.
    func notDue(_ waiting: Waiting? = nil) {
        if waiting == nil || deadline.waitsFor == waiting { deadline.clear() }
    }

    override func deadlineReached() -> Int64? {
        let (reached, left) = deadline.reached(at: loop.now)
        deadline = left
        switch reached {
        case .nothing: return nil
        case .later(let time): return time
        case .due(.request) where worker.keepsConnections && loop.postponesEnd():
            // Thousands became idle together. Until its turn comes it stays a connection on which a request is answered.
            due(.request, DeadlineWheel.Settings.tick)
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

    /// Closes once the peer has read what is on its way, or after a bounded time (RFC 9112 §9.6).
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

    /// Closes now, whatever is under way.
    func end(abruptly: Bool = false) {
        guard phase != .closed else { return }
        if phase == .serving { record(bodyBytes: output.delivery?.bodyBytesSent ?? 0, isAborted: true) }
        // Where the close marks the end of a body or a tunnel, a plain close would look like a complete one.
        var abruptly = abruptly || output.delivery?.framing == .untilClose
        // Also if its idle time is over, and nothing is waited for any more.
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

    /// The program ends: no request after the one under way, and none at all unless it comes soon.
    func drain() {
        output.beLast()
        // Requests that have come already are answered: left unread, they would turn the close into a reset.
        if phase == .reading, receive() { proceed() }
        // A head that has begun still has its time to become complete (`head-timeout`).
        guard phase == .reading, !input.hasBegunHead else { return }
        // Who has had an answer knows that the connection may end, and sends its request again on another one.
        if input.requestCount > 0 { return end() }
        let until = min(deadline.time, loop.now + worker.timeouts.firstRequest)
        deadline = deadline.awaiting(.request, until: until, for: self, on: worker.deadlines)
    }

    /// The program ends now: who waits for a response is told so, all others are cut off. Where content of the client's
    /// is still unread, the close becomes a reset, which may come before what it is told.
    func cut() {
        if phase == .serving, output.delivery == nil {
            output.beLast()
            transaction?.programEnds()
        }
        end()
    }

    /// When its idle time ends; `nil` while a request has begun.
    var idleUntil: Int64? { phase == .reading && deadline.waitsFor == .request ? deadline.time : nil }

    /// Makes room for another client, if this one is idle: ends, unless a request has come in the meantime, which is
    /// answered. Nobody waits for the turn of a round.
    /// - Returns: whether it has ended.
    func giveWay() -> Bool {
        guard idleUntil != nil else { return phase == .closed }
        let before = input.requestCount
        if receive() { proceed() }
        if idleUntil != nil, input.requestCount == before { end() }
        return phase == .closed
    }
}
