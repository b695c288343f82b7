import Bytes
import Libevent
import Routing
import TLS

/// A client's connection to a TLS listener, until its handshake is done. Then the same connection is read as HTTP.
///
/// Owned by `clients`, confined to its loop. A step of a handshake takes up to about a millisecond, so `Handshakes`
/// spreads the steps over the iterations of the loop. OpenSSL has no memory for the connection before its first byte.
///
/// ```
/// silent ─the hello's first bytes→ shaking ─done→ the client's
///    │                              ├─needs bytes, or room→ shaking
///    │                              └─refused, broken, late→ closed
///    ├─a request in the clear→ turned away, in words
///    └─end of stream, late, the program ends→ closed
/// ```
final class HandshakingConnection: Socket {
    private unowned let clients: ClientConnections
    /// The certificates when the connection was accepted, for the case that a reload leaves none.
    private let tls: TLSServer?
    let peer: SocketAddress
    let certificates: ClientCertificates
    private let offersHTTP2: Bool
    /// Whether the connection is counted for its client's address.
    let isCounted: Bool
    /// Bytes that were read before, behind a PROXY header; `nil` once the stream has them.
    private var early: ByteBuffer?
    /// `nil` while silent.
    private var stream: TLSStream?
    private var deadline = Deadline.none
    /// When the connection was accepted, in nanoseconds of the loop's clock.
    let accepted: Int64
    /// Whether the connection waits for its turn.
    var isQueued = false
    /// Whether the first byte has arrived.
    var hasBegun: Bool { stream != nil }

    init(
        adopting descriptor: consuming Descriptor, peer: SocketAddress, _ offer: ListenerOffer,
        _ certificates: ClientCertificates,
        early: ByteBuffer?, isCounted: Bool, clients: ClientConnections
    ) {
        self.clients = clients
        tls = clients.tls
        self.peer = peer
        self.certificates = certificates
        offersHTTP2 = offer.speaksHTTP2
        self.isCounted = isCounted
        accepted = clients.context.loop.now
        self.early = early?.isEmpty == false ? early : nil
        super.init(adopting: descriptor, on: clients.context.loop)
        deadline = loop.deadlines.arm(self, after: clients.timeouts.head)
    }

    /// Reads the bytes that have already arrived, then waits for more. Called once, after `clients` has registered the
    /// connection.
    func begin() {
        startReading()
        if early != nil { clients.handshakes.wants(self) }
    }

    override func readable() { clients.handshakes.wants(self) }

    override func writable() { clients.handshakes.wants(self) }

    /// Goes on with the handshake. Called by `Handshakes`, in a turn.
    func step() {
        guard !isClosed else { return }
        guard let stream = stream ?? makeStream() else { return }
        startReading()
        switch stream.advance() {
        case .needsBytes: disarmWrite()
        case .needsRoom: armWrite()
        case .done:
            guard let connection = finish() else { return }
            clients.take(self, connection, through: stream)
        case .failed(let failure):
            close(abruptly: false)
            clients.failed(self, failure)
        }
    }

    /// - Returns: `nil` if there is no handshake: the connection is turned away, or ended, or still silent.
    private func makeStream() -> TLSStream? {
        switch early.map({ FirstByte.byte($0.span[0]) }) ?? firstByte {
        case .nothing: return nil
        case .ended:
            close(abruptly: false)
            clients.ended(self)
            return nil
        // Methods are in capitals; a record of a handshake begins with 22.
        case .byte(UInt8(ascii: "A")...UInt8(ascii: "Z")):
            guard let connection = finish() else { return nil }
            clients.refuseInTheClear(self, connection)
            return nil
        case .byte:
            guard let tls = clients.tls ?? tls,
                let made = tls.accept(
                    onDescriptor: descriptorNumber, certificates, offersFirst: offersHTTP2, early: early.take())
            else {
                close(abruptly: true)
                clients.failed(self, TLSFailure(.shortage, "memory is short"))
                return nil
            }
            stream = made
            clients.handshakes.began(self)
            return made
        }
    }

    private func close(abruptly: Bool) {
        disarm()
        if abruptly { abort() } else { close() }
    }

    /// The program ends: a client that has said nothing has only a short time left.
    func drain() {
        guard !hasBegun else { return }
        disarm()
        deadline = loop.deadlines.arm(self, after: clients.timeouts.firstRequest)
    }

    private func disarm() {
        loop.deadlines.cancel(deadline)
        deadline = .none
    }

    private func finish() -> Descriptor? {
        disarm()
        return handOver()
    }

    /// Closes the connection.
    /// - Parameter reason: why the handshake is given up.
    func end(_ reason: String) {
        guard !isClosed else { return }
        close(abruptly: true)
        if hasBegun { clients.failed(self, TLSFailure(.cut, reason)) } else { clients.ended(self) }
    }

    override func cannotWatch(_ error: SystemError) { end(error.message) }

    override func deadlineReached() -> Int64? {
        deadline = .none
        end("the handshake took longer than head-timeout")
        return nil
    }
}
