import Bytes
import Libevent
import Routing
import TLS
import Telemetry

/// A client's connection as a way for bytes: reads into a lent buffer, waits no longer than the timeouts, and closes so
/// that the client gets everything. Its bytes pass only the methods `read` and `write` of its `Socket`.
///
/// The protocol of the bytes is a subclass, and is known when the object is made. One object for both keeps an idle
/// connection small, and a request passes between them without a reference that is counted.
///
/// Owned by `clients`, confined to its loop.
///
/// ```
/// reading ─a request begins to be answered→ serving ─its response is sent, its content read→ reading
///    │                                         ├─upgraded→ tunnelling ─either side ends→ closed
///    │                                         └─the connection is not kept→ lingering ─peer closes, or time→ closed
///    ├─a hit is sent, the connection is not kept→ lingering
///    └─end of stream, idle too long→ closed
/// serving ─peer gone, or takes no byte for too long→ closed;  serving ─another response replaces the first→ serving
/// any ─end→ closed
/// ```
///
/// | | reading | serving | tunnelling | lingering |
/// | --- | --- | --- | --- | --- |
/// | `deadline` | always | always | always | always |
/// | `input` | between a read and its batch; a part of a head | reading content or the next head | | dropping bytes |
/// | a place in the `SocketBatch`, with its bytes | from reading to the batch's end | | | |
/// | `tunnel` | | | always | |
class ClientTransport: Socket {
    /// Without payloads: an object in a payload would be retained and released each time the phase is examined. Objects
    /// that belong to a phase are optionals beside it (see the table above).
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
        /// The answer to a PING of HTTP/2, or a sign of life that makes one unnecessary.
        case ping
        /// Bytes to send to a client that has shut its sending side.
        case response
    }

    final let context: LoopContext
    /// The objects and settings that the client connections of the loop share.
    final let clients: ClientConnections
    final let peer: SocketAddress
    /// The peer's address as text, for the log. The path of a Unix socket may be any bytes.
    final let peerText: ByteSlice
    /// Whether the peer is a trusted proxy, whose `X-Forwarded-For` and `X-Forwarded-Proto` are used.
    final let isTrustedProxy: Bool

    /// The result of the handshake; `nil` in the clear.
    final let security: ClientSecurity?
    /// Whether the client speaks TLS.
    final var isSecure: Bool { security != nil }
    final private(set) var phase = Phase.reading
    /// Whether the loop does not watch the socket yet. A connection whose first request arrives with it is watched only
    /// after the response: if it closes then, two system calls are saved.
    private var isUnwatched = true
    /// Whether `ClientCounts` counts the connection.
    final var isCounted = false
    /// Whether the client has shut its sending side.
    final private(set) var hasEnded = false
    /// Whether the protocol takes requests from the buffer, which must not be returned meanwhile.
    final var isTaking = false
    /// Whether the first request may be the preface of HTTP/2.
    final var mayBecomeHTTP2 = true
    /// How many requests have been taken from the buffer.
    final var requestCount = 0
    final private(set) var deadline = LazyDeadline<Waiting>()
    /// Lent by `clients` while there are bytes to read, or read bytes that are not yet used.
    final private(set) var input: ReadContext?
    /// When the first byte of the current request was read (nanoseconds of the loop's clock); 0 before, and if it was
    /// read in this iteration together with an earlier request.
    final var requestBegan: Int64 = 0
    /// The tunnel that the connection has become.
    final var tunnel: Tunnel?

    /// - Parameters:
    ///   - stream: through which the bytes pass; `nil`: in the clear.
    ///   - security: the result of the handshake of `stream`.
    init(
        adopting descriptor: consuming Descriptor, through stream: TLSStream? = nil, _ security: ClientSecurity? = nil,
        peer: SocketAddress, clients: ClientConnections
    ) {
        self.security = security
        context = clients.context
        self.clients = clients
        self.peer = peer
        peerText = peer.hostText
        isTrustedProxy = context.recorder.trustedProxies.include(peer)
        super.init(adopting: descriptor, through: stream, on: context.loop)
        due(.request, clients.timeouts.idle)
    }

    // MARK: For the protocol

    /// Whether the content of a request is being received.
    var receivesContent: Bool { false }
    /// Whether that content is to be read in large pieces.
    var takesLargePieces: Bool { false }
    /// Bytes were read, outside of a batch; or the next request may be in the buffer.
    func bytesCame() {}
    /// The client takes bytes again, in phase `serving`.
    func sendMore() {}
    /// The client has not sent a head or content, or has not taken bytes, in time.
    func isLate(with waiting: Waiting) {}
    /// The connection has ended.
    /// - Parameter wasServing: whether a response was due.
    /// - Returns: whether a plain close would look like a complete response.
    func ended(wasServing: Bool) -> Bool { false }
    /// The connection was idle for too long, or another client takes its place: ends it.
    func endIdle() { end() }
    /// The program ends: the connection takes no request after the current one.
    func drain() {}
    /// The program ends now: ends the connection.
    func cut() {}

    // MARK: Phases

    /// The only way into a phase.
    final func enter(_ next: Phase) {
        assert(phase.leads(to: next), "\(phase) does not lead to \(next)")
        phase = next
    }

    final func noteBegan() { if requestBegan == 0 { requestBegan = loop.now } }

    // MARK: Reading

    /// Reads the bytes that have already arrived, then waits for more. Called once, after `clients` has registered the
    /// connection.
    /// - Parameter early: bytes that were read before, if there are any.
    final func begin(with early: ByteBuffer?) {
        if let early, !early.isEmpty {
            borrowContext().buffer.append(early.span)
            context.metrics.add(.clientBytesIn, UInt64(early.count))
            noteBegan()
            clients.serve(self)
        } else if receive() {
            clients.serve(self)
        } else {
            watch()
        }
    }

    /// Makes the loop report when the socket is readable. Later calls have no effect.
    final func watch() {
        guard isUnwatched, phase != .closed else { return }
        isUnwatched = false
        startReading()
    }

    override final func cannotWatch(_ error: SystemError) { end() }

    override final func readable() {
        switch phase {
        case .reading: if receive() { clients.serve(self) }
        case .serving: if receive() { bytesCame() }
        case .tunnelling: tunnel?.clientReadable()
        case .lingering: discard()
        case .closed: stopReading()
        }
    }

    override final func writable() {
        switch phase {
        case .serving, .reading: sendMore()
        case .tunnelling: tunnel?.clientWritable()
        case .lingering, .closed: disarmWrite()
        }
    }

    /// - Returns: whether bytes were read into the buffer.
    private func receive() -> Bool {
        if input == nil {
            input = phase == .serving && takesLargePieces ? clients.lendContentContext() : clients.lendContext()
        }
        guard let buffer = input?.buffer else { return false }
        // At most one buffer is read of a client that sends requests ahead.
        guard phase == .reading || receivesContent || buffer.count < ReadContexts.bufferSize else {
            stopReading()
            return false
        }
        switch read(into: buffer, minimum: ReadContexts.bufferSize / 2) {
        case .bytes(let count):
            context.metrics.add(.clientBytesIn, UInt64(count))
            if phase == .reading { noteBegan() }
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

    /// The client will send no more bytes. A request that is complete is answered as long as writing works: perhaps the
    /// client has only shut its sending side (RFC 9112 §9.6 has servers do so; clients may as well). A closed
    /// connection looks the same until bytes are written to it; then the peer answers with a reset.
    private func endOfStream() {
        hasEnded = true
        stopReading()
        guard phase == .serving, !receivesContent, !hasLostPeer else { return end() }
        // A response in progress is written until the client takes no byte for `send-timeout`.
        if deadline.waitsFor != .send { awaitResponse() }
    }

    /// Limits the wait for the response if the client has shut its sending side, and watches for its reset meanwhile.
    final func awaitResponse() {
        guard hasEnded else { return }
        due(.response, clients.timeouts.halfClosed)
        watchForDeparture()
    }

    override final func peerHasGone() { end() }

    // MARK: The buffer

    /// The buffer, lent now if there is none.
    final func borrowContext() -> ReadContext {
        let lent = input ?? clients.lendContext()
        input = lent
        return lent
    }

    /// Moves the bytes of a large buffer to another one: other connections need it.
    final func moveFromLargeBuffer() {
        guard let former = input, former.isForContent, !former.buffer.isEmpty else { return }
        let other = clients.lendContext()
        other.buffer.append(former.buffer.copied())
        giveBackContext()
        input = other
    }

    /// Whether the buffer holds no bytes.
    final var isEmpty: Bool { input?.buffer.isEmpty ?? true }

    final func giveBackContextIfUnused() {
        if isEmpty { giveBackContext() }
    }

    /// Has no effect while requests are taken from the buffer.
    final func giveBackContext() {
        guard !isTaking, let unused = input.take() else { return }
        clients.takeBack(unused)
    }

    // MARK: Time

    /// Sets the deadline: the client must do `waiting` within so many nanoseconds.
    /// - Parameter current: if the deadline is already for this, it is left unchanged.
    final func due(_ waiting: Waiting, _ nanoseconds: Int64, onlyIfNot current: Waiting? = nil) {
        if let current, deadline.waitsFor == current { return }
        due(waiting, at: loop.now + nanoseconds)
    }

    private func due(_ waiting: Waiting, at time: Int64) {
        deadline = deadline.awaiting(waiting, until: time, for: self, on: context.deadlines)
    }

    /// Restarts the timeout of the tunnel: a byte was relayed in either direction.
    final func awaitTunnel() {
        if phase == .tunnelling { due(.tunnel, clients.timeouts.tunnel) }
    }

    /// Clears the deadline.
    /// - Parameter waiting: clear the deadline only if it is for this; `nil`: clear any.
    final func notDue(_ waiting: Waiting? = nil) {
        if waiting == nil || deadline.waitsFor == waiting { deadline.clear() }
    }

    override final func deadlineReached() -> Int64? {
        let (reached, left) = deadline.reached(at: loop.now)
        deadline = left
        switch reached {
        case .nothing: return nil
        case .later(let time): return time
        case .due(.request): endIdle()
        case .due(.tunnel), .due(.linger), .due(.response): end()
        case .due(let waiting): isLate(with: waiting)
        }
        return nil
    }

    // MARK: Idle connections

    /// The end of the idle timeout; `nil` while a request has begun.
    final var idleUntil: Int64? { phase == .reading && deadline.waitsFor == .request ? deadline.time : nil }

    /// Makes room for another client, if this one is idle: closes, unless a request has arrived in the meantime, which
    /// is answered now, without waiting for a batch.
    /// - Returns: whether the connection is closed.
    final func closeIfIdle() -> Bool {
        guard idleUntil != nil else { return phase == .closed }
        let before = requestCount
        takeArrivedBytes()
        if idleUntil != nil, requestCount == before {
            endIdle()
            end()
        }
        return phase == .closed
    }

    /// Answers requests that have arrived already: left unread, they would turn a close into a reset.
    final func takeArrivedBytes() {
        if phase == .reading, receive() { bytesCame() }
    }

    /// A connection without a request waits only shortly for its first.
    final func awaitFirstRequest() { due(.request, at: min(deadline.time, loop.now + clients.timeouts.firstRequest)) }

    // MARK: The end

    /// Shuts the sending side, and closes once the peer has read the sent bytes and closes, or after a bounded time
    /// (RFC 9112 §9.6).
    final func linger() {
        enter(.lingering)
        try? shutdownWrite()
        if hasEnded, !isEndPending { return end() }
        due(.linger, clients.timeouts.linger)
        if !hasEnded { startReading() }
    }

    override final func endWasSent() {
        if phase == .lingering, hasEnded { end() }
    }

    private func discard() {
        let buffer = borrowContext().buffer
        buffer.removeAll()
        switch read(into: buffer, minimum: 4096) {
        case .bytes, .wouldBlock: giveBackContext()
        case .endOfStream where isEndPending:
            hasEnded = true
            stopReading()
            giveBackContext()
        case .endOfStream, .failed: end()
        }
    }

    /// Gives the connection up for another object, as which it goes on.
    final func giveUp() -> Descriptor? {
        isTaking = false
        enter(.closed)
        deadline = deadline.cancelled(on: context.deadlines)
        giveBackContext()
        return handOver()
    }

    /// Closes now, in any phase.
    final func end(abruptly: Bool = false) {
        guard phase != .closed else { return }
        // Also true if the idle deadline was just reached, so that the connection has no deadline.
        let wasIdle = phase == .reading && deadline.waitsFor != .head
        let wasServing = phase == .serving
        enter(.closed)
        // Where the close marks the end of a body or a tunnel, a plain close would look like a complete one.
        var isAbrupt = abruptly
        if ended(wasServing: wasServing) { isAbrupt = true }
        if let tunnel = tunnel.take(), !tunnel.clientEnded() { isAbrupt = true }
        deadline = deadline.cancelled(on: context.deadlines)
        giveBackContext()
        if isAbrupt { abort() } else { close() }
        clients.ended(self, wasIdle: wasIdle)
    }
}
