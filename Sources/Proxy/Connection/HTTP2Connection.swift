import Bytes
import HTTP2
import Libevent
import Routing
import TLS
import Telemetry
import Upstream

/// HTTP/2 on one client's connection (RFC 9113): many requests at a time, each an `HTTP2Exchange`.
///
/// The phase is `serving` while a stream is open, otherwise `reading`. Frames are written at the end of the iteration in
/// which they became ready: those of all streams in one write. While the kernel has not taken them, no more are made,
/// and nothing is read: a client that sends but does not read is held back by TCP. Of the requests that one read has
/// brought, those that need a fetch begin a few at a time; the loop serves its other connections in between.
///
/// ```
/// reading ─a request→ serving ─its last stream is closed→ reading
/// either ─the session is over, all its frames are sent→ lingering
/// ```
///
/// The end of the program, or of the requests that the connection may have, takes two steps, so that no request on its
/// way is lost (RFC 9113 §6.8):
///
/// ```
/// open ─beginGoAway: GOAWAY without a last stream, PING→ announced ─the PING's answer, or time→ last GOAWAY ─→ over
/// ```
final class HTTP2Connection: ClientTransport, TurnTaker {
    private enum Ending { case open, announced, last }

    /// The session of one connection.
    private final class Session: ServerSession {
        /// Has the session, and alone calls it.
        private unowned let connection: HTTP2Connection

        init?(of connection: HTTP2Connection) {
            self.connection = connection
            let clients = connection.clients
            super.init(
                clients.sessionLimits, isSecure: connection.isSecure, clients.sessionMemory, at: connection.loop.now)
        }

        override func makeStream(_ id: Int32) -> ServerStream? { connection.makeExchange(id) }
        override func tooOften(_ event: PeerEvent) { connection.excess = event }
        override func streamWasReset(_ code: UInt32, byPeer: Bool) { connection.streamWasReset(code, byPeer) }
        override func connectionFailed(_ code: UInt32, byPeer: Bool) { connection.failed(code, byPeer) }
        override func pingWasAnswered() { connection.pingWasAnswered() }
        override var takesMore: Bool { connection.begunTransactions < Turns.turn / 2 }
    }

    /// The first bytes of a client (RFC 9113 §3.4).
    static let preface = ByteSlice("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")

    private(set) var session: ServerSession?
    /// Frames that the kernel has not taken.
    private var waiting: FrameOutput?
    /// The open streams, in no order; each knows its position.
    private var exchanges: [HTTP2Exchange] = []
    private var ending = Ending.open
    /// Whether a stream was open since the end was announced.
    private var hasServedAtEnd = false
    /// Whether bytes of the client were no HTTP/2.
    private var isBroken = false
    /// Whether a PING asks the client for a sign of life.
    private var hasPinged = false
    private var isQueueBounded = false
    /// The transactions that the current call of the session has begun.
    var begunTransactions = 0
    /// Whether the rest of the bytes that were read waits for a turn; no others are read meanwhile.
    private var awaitsTurn = false
    /// The event that the client has caused too often.
    private var excess: PeerEvent?
    private var ownConnections: BoundConnections?
    /// Bytes of small hits that are recorded as sent, and are not in frames yet.
    private var promised = 0
    /// The hits among the open streams that are not in frames yet.
    var unfinishedHits = 0
    /// The bytes of frames that one round makes.
    private static let mostOfRound = 64 << 10
    /// The most rounds in one turn of the loop: other connections wait meanwhile.
    private static let mostRounds = 16

    override init(
        adopting descriptor: consuming Descriptor, through stream: TLSStream? = nil, _ security: ClientSecurity? = nil,
        peer: SocketAddress, clients: ClientConnections
    ) {
        super.init(adopting: descriptor, through: stream, security, peer: peer, clients: clients)
        session = Session(of: self)
    }

    // MARK: In

    override var receivesContent: Bool { true }

    override func bytesCame() { takeBytes() }

    override func batchIsReady(isShared: Bool) { takeBytes() }

    func turnCame() {
        awaitsTurn = false
        // Its bytes may have been taken meanwhile, with others (`takeArrivedBytes`).
        if isEmpty { flushSoon() } else { takeBytes() }
    }

    private func takeBytes() {
        guard phase == .reading || phase == .serving, let session, let input else { return }
        isTaking = true
        requestBegan = loop.now
        hasPinged = false
        begunTransactions = 0
        let buffer = input.buffer
        let taken = session.receive(buffer.span, at: loop.now)
        if let taken { buffer.consume(taken) } else { buffer.removeAll() }
        isTaking = false
        if buffer.isEmpty || phase == .closed { giveBackContext() }
        guard phase != .closed else { return }
        watch()
        isBroken = taken == nil
        if isBroken || !isEmpty { stopReading() }
        if !isEmpty, !awaitsTurn {
            awaitsTurn = true
            context.turns.putAlone(self)
        }
        flushSoon()
    }

    private func makeExchange(_ id: Int32) -> HTTP2Exchange? {
        guard ending != .last, phase == .reading || phase == .serving else { return nil }
        let made = HTTP2Exchange(id, on: self, at: exchanges.count)
        exchanges.append(made)
        requestCount += 1
        hasServedAtEnd = ending != .open
        context.metrics.add(.http2Streams)
        if phase == .reading { enter(.serving) }
        if !clients.keepsConnections || requestCount >= clients.mostRequests { beginGoAway() }
        return made
    }

    /// The stream of an exchange is closed.
    func ended(_ exchange: HTTP2Exchange) {
        let last = exchanges.removeLast()
        if last !== exchange {
            exchanges[exchange.position] = last
            last.position = exchange.position
        }
        guard exchanges.isEmpty, phase == .serving else { return }
        enter(.reading)
        due(.request, clients.timeouts.idle)
    }

    // MARK: Out

    /// Sends the frames that are ready, at the end of this iteration.
    func flushSoon() { callAtIterationEnd() }

    override func iterationEnds() { flush() }

    override func sendMore() { flush() }

    /// Has the session do `body`, and sends the frames that it made.
    func tell(_ body: (ServerSession) -> Void) {
        guard let session, phase != .closed else { return }
        body(session)
        flushSoon()
    }

    /// Whether the kernel does not take bytes at the moment.
    var isBlocked: Bool { waiting != nil }

    private func flush() {
        guard let session, !isTaking, phase == .reading || phase == .serving else { return }
        let output = waiting ?? clients.sessionMemory.lendOutput()
        var rounds = 0
        while true {
            if output.isEmpty {
                guard rounds < Self.mostRounds else { return blocked(with: output, progressed: true) }
                rounds += 1
                guard session.write(to: output, most: Self.mostOfRound) else { return end(abruptly: true) }
                guard !output.isEmpty else { break }
            }
            switch write(output) {
            case .wrote(let count):
                context.metrics.add(.clientBytesOut, UInt64(count))
                output.consume(count)
                if !output.isEmpty { return blocked(with: output, progressed: true) }
            case .wouldBlock: return blocked(with: output, progressed: false)
            case .failed: return end()
            }
        }
        waiting = nil
        clients.sessionMemory.takeBack(output)
        disarmWrite()
        promised = 0
        // Other streams have used up the windows.
        if unfinishedHits > 0 { for exchange in exchanges { exchange.deliverHit() } }
        if session.isOver || isBroken {
            // A client that was told before, and had nothing to get since, has read all.
            guard ending != .last || hasServedAtEnd || phase != .reading else { return end() }
            abandonStreams()
            return linger()
        }
        if !awaitsTurn { startReading() }
        settleDeadline(session)
    }

    private func write(_ output: FrameOutput) -> WriteResult {
        let last = output.last
        guard !output.pieces.isEmpty else { return write(last.span) }
        let list = context.gatherList
        list.removeAll()
        defer { list.removeAll() }
        for piece in output.pieces.prefix(GatherList.capacity - 1) { list.append(piece) }
        if list.count == output.pieces.count { list.append(last.copied()) }
        return write(list)
    }

    private func blocked(with output: FrameOutput, progressed: Bool) {
        waiting = output
        stopReading()
        armWrite()
        if progressed || deadline.waitsFor != .send { due(.send, clients.timeouts.send) }
    }

    /// Whether the client's windows let a small hit pass at once, which is then promised.
    func promises(_ count: Int, to stream: Int32) -> Bool {
        guard let session, session.hasRoom(for: count, of: stream, besides: promised) else { return false }
        promised += count
        return true
    }

    /// Bounds the kernel's queue, once, for a large body.
    func boundQueue() {
        guard !isQueueBounded else { return }
        isQueueBounded = true
        boundSendQueue()
    }

    // MARK: Time

    private func settleDeadline(_ session: ServerSession) {
        if ending == .announced {
            due(.ping, clients.timeouts.firstRequest, onlyIfNot: .ping)
        } else if awaitsTurn {
            // The client has nothing to do.
            due(.ping, clients.timeouts.ping, onlyIfNot: .ping)
        } else if session.receivesSection {
            // It holds up all other streams (RFC 9113 §4.3).
            due(.head, clients.timeouts.head, onlyIfNot: .head)
        } else if phase == .reading {
            due(.request, clients.timeouts.idle, onlyIfNot: .request)
        } else if !hasPinged {
            due(.ping, clients.timeouts.ping)
        }
    }

    override func isLate(with waiting: Waiting) {
        switch waiting {
        case .send: end(abruptly: true)
        case .head:
            context.notices.http2(peer, "a field section took too long", byPeer: false)
            tell { $0.terminate(HTTP2Error.Code.enhanceYourCalm.number) }
        case .ping where ending == .announced: sayLastGoAway()
        case .ping where awaitsTurn: due(.ping, clients.timeouts.ping)
        case .ping where hasPinged:
            context.notices.http2(peer, "no answer to a PING", byPeer: false)
            end(abruptly: true)
        case .ping:
            hasPinged = true
            tell { $0.ping() }
            due(.ping, clients.timeouts.pingAnswer)
        case .request, .response, .content, .tunnel, .linger: break
        }
    }

    private func pingWasAnswered() {
        if ending == .announced { sayLastGoAway() }
    }

    override func endIdle() {
        guard phase == .reading else { return end() }
        ending = .last
        session?.goAway()
        flush()
    }

    // MARK: Errors

    private func streamWasReset(_ code: UInt32, _ byPeer: Bool) {
        context.metrics.add(.http2Resets(HTTP2Error(code, byClient: byPeer)))
        guard !byPeer, code == HTTP2Error.Code.protocolError.number else { return }
        context.metrics.add(.malformedRequests)
        context.notices.malformedHTTP2(from: peer)
    }

    private func failed(_ code: UInt32, _ byPeer: Bool) {
        let error = HTTP2Error(code, byClient: byPeer)
        context.metrics.add(.http2Failures(error))
        context.notices.http2(
            peer, excess.map { "\(error.code.name): too many \($0.text)" } ?? "\(error.code.name)", byPeer: byPeer)
    }

    // MARK: The end

    /// The connection takes the requests that are on their way, and no others.
    private func beginGoAway() {
        guard ending == .open, let session else { return }
        ending = .announced
        hasServedAtEnd = phase == .serving
        session.announceGoAway()
        session.ping()
        due(.ping, clients.timeouts.firstRequest)
        flushSoon()
    }

    private func sayLastGoAway() {
        ending = .last
        notDue(.ping)
        tell { $0.goAway() }
    }

    override func drain() {
        guard phase == .reading || phase == .serving else { return }
        takeArrivedBytes()
        beginGoAway()
    }

    override func cut() {
        guard phase == .serving else { return end() }
        for exchange in exchanges { exchange.programEnds() }
        session?.goAway()
        flush()
        end()
    }

    /// No stream gets or sends anything any more.
    private func abandonStreams() {
        session?.abandon()
        let open = exchanges
        exchanges = []
        for exchange in open { exchange.connectionEnded() }
        session = nil
        waiting = nil
    }

    override func ended(wasServing: Bool) -> Bool {
        abandonStreams()
        ownConnections?.close()
        return false
    }

    // MARK: Connections to origins

    /// Whether its requests go over upstream connections that no other client uses.
    var isBound: Bool { ownConnections != nil || security?.subject != nil }

    var boundConnections: BoundConnections {
        let connections = ownConnections ?? BoundConnections()
        ownConnections = connections
        return connections
    }
}
