import Bytes
import Libevent
import Routing
import TLS

/// A connection to a listener with `proxy-protocol`, until its PROXY header has arrived. Then the same connection becomes
/// that of the client which the header names.
///
/// Owned by `clients`, confined to its loop.
///
/// ```
/// reading ─header complete→ the client's
///    ├─malformed→ turned away, in words
///    └─end of stream, late, the program ends→ closed
/// ```
final class ProxiedConnection: Socket {
    private unowned let clients: ClientConnections
    let peer: SocketAddress
    /// What follows the header.
    let offer: ListenerOffer
    private let input = ByteBuffer(capacity: 512)
    private var deadline = Deadline.none

    init(
        adopting descriptor: consuming Descriptor, peer: SocketAddress, _ offer: ListenerOffer,
        clients: ClientConnections
    ) {
        self.clients = clients
        self.peer = peer
        self.offer = offer
        super.init(adopting: descriptor, on: clients.context.loop)
        deadline = loop.deadlines.arm(self, after: clients.timeouts.head)
    }

    /// Reads the bytes that have already arrived, then waits for more. Called once, after `clients` has registered the
    /// connection.
    func begin() {
        readable()
        if !isClosed { startReading() }
    }

    override func readable() {
        let input = input
        switch read(into: input) {
        case .bytes: takeHeader()
        case .wouldBlock: break
        case .endOfStream, .failed: end()
        }
    }

    private func takeHeader() {
        let input = input
        do throws(ProxyHeader.SyntaxError) {
            guard case .complete(let length, let source) = try ProxyHeader.parse(input.span) else { return }
            input.consume(length)
            guard let connection = finish() else { return }
            clients.take(self, connection, from: source, early: input)
        } catch {
            guard let connection = finish() else { return }
            clients.refuse(self, connection, because: error)
        }
    }

    private func finish() -> Descriptor? {
        loop.deadlines.cancel(deadline)
        deadline = .none
        return handOver()
    }

    /// Closes the connection.
    func end() {
        guard !isClosed else { return }
        loop.deadlines.cancel(deadline)
        deadline = .none
        close()
        clients.ended(self)
    }

    override func cannotWatch(_ error: SystemError) { end() }

    override func deadlineReached() -> Int64? {
        deadline = .none
        end()
        return nil
    }
}
