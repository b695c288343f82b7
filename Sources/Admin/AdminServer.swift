import Bytes
import HTTPSemantics
public import Libevent
public import Proxy

/// The admin listener: health, metrics, status and purges, on the control loop and away from the clients.
///
/// Owned by whoever started it, confined to its loop. A connection is answered once and closed.
public final class AdminServer {
    /// Connections at a time; the next ones are closed at once. A scrape and a few people.
    static let maxConnections = 64
    /// A request that is not complete by then is given up, in nanoseconds.
    static let requestTimeout: Int64 = 10_000_000_000

    private let pages: AdminPages
    private let loop: EventLoop
    private var listener: Listener?
    private var connections: [ObjectIdentifier: AdminConnection] = [:]

    /// Where it listens, with the port that was chosen.
    public let address: SocketAddress

    public init(at address: SocketAddress, _ settings: AdminSettings, of server: ProxyServer, on loop: EventLoop) throws(ListenError) {
        self.loop = loop
        pages = AdminPages(server)
        var listening = Listener.Settings()
        listening.pathMode = settings.socketMode
        let accepting = Accepting()
        let listener = try Listener(
            address, on: loop, settings: listening, onFailure: { _ in },
            accept: { descriptor, _ in accepting.server?.accept(descriptor) })
        self.listener = listener
        self.address = listener.localAddress
        accepting.server = self
    }

    /// The listener is made before the server can be named in its closure.
    private final class Accepting {
        weak var server: AdminServer?
    }

    /// Accepts no more and ends what is open.
    public func close() {
        listener = nil
        for connection in Array(connections.values) { connection.end() }
    }

    private func accept(_ descriptor: consuming Descriptor) {
        guard connections.count < Self.maxConnections else { return }
        let connection = AdminConnection(adopting: descriptor, on: loop, pages: pages) { [unowned self] ended in
            connections[ObjectIdentifier(ended)] = nil
        }
        connections[ObjectIdentifier(connection)] = connection
    }
}

/// One request to the admin listener and its answer.
///
/// ```
/// reading ─request complete→ waiting ─page→ sending ─all out→ closed;   any ─error, time→ closed
/// ```
final class AdminConnection: Socket {
    /// A head, and a URL to purge.
    private static let limits = HeadLimits(maxHeadBytes: 16 << 10, maxFieldLines: 64, maxTargetLength: 8 << 10)
    private static let maxContent = 64 << 10

    private let pages: AdminPages
    private let ended: (AdminConnection) -> Void
    private let input = ByteBuffer(capacity: 2048)
    private let output = ByteBuffer(capacity: 4096)
    private var parser = RequestHeadParser(limits: AdminConnection.limits)
    private var decoder: BodyDecoder?
    private let content = ByteBuffer(capacity: 256)
    private var path = ""
    private var deadline = Deadline.none

    init(
        adopting descriptor: consuming Descriptor, on loop: EventLoop, pages: AdminPages, ended: @escaping (AdminConnection) -> Void
    ) {
        self.pages = pages
        self.ended = ended
        super.init(adopting: descriptor, on: loop)
        deadline = loop.deadlines.arm(self, after: AdminServer.requestTimeout)
        startReading()
    }

    func end() {
        guard !isClosed else { return }
        loop.deadlines.cancel(&deadline)
        close()
        ended(self)
    }

    override func cannotWatch(_ error: SystemError) { end() }

    override func deadlineReached(_ kind: UInt8) -> Int64? {
        deadline = .none
        end()
        return nil
    }

    override func readable() {
        let input = input
        switch read(into: input) {
        case .bytes:
            do throws(MessageSyntaxError) {
                try take(input)
            } catch {
                answer(AdminPage(status: error.status, text: "\(error.explanation)\n"))
            }
        case .wouldBlock: break
        case .endOfStream, .failed: end()
        }
    }

    private func take(_ input: ByteBuffer) throws(MessageSyntaxError) {
        if decoder == nil {
            guard case .complete(let length) = try parser.parse(input.span) else { return }
            let target = parser.head.target
            path = String(input.span.extracting(target.path.range))
            decoder = BodyDecoder(parser.head.framing)
            input.consume(length)
        }
        while let step = try decoder?.decode(input.span) {
            if case .data(let range) = step.action { content.append(input.span.extracting(range)) }
            input.consume(step.consumed)
            switch step.action {
            case .needMore: return
            case .end: return ask()
            case .data:
                guard content.count <= Self.maxContent else {
                    return answer(AdminPage(status: .contentTooLarge, text: "The request is too large.\n"))
                }
            }
        }
    }

    private func ask() {
        stopReading()
        let content = content
        pages.page(for: parser.head.method, path, content: String(content.span)) { [weak self] page in self?.answer(page) }
    }

    private func answer(_ page: AdminPage) {
        stopReading()
        guard !isClosed, output.isEmpty else { return }
        output.appendStatusLine(page.status)
        output.append("Content-Type: ")
        output.append(string: page.contentType)
        output.append("\r\n")
        output.appendField("Content-Length", UInt64(page.content.count))
        output.append("Cache-Control: no-store\r\nConnection: close\r\n")
        if page.status == .methodNotAllowed { output.append("Allow: GET, HEAD, POST\r\n") }
        output.appendLineEnd()
        if parser.head.method != .head { output.append(page.content.span) }
        writable()
    }

    override func writable() {
        let output = output
        while !output.isEmpty {
            switch write(output.span) {
            case .wrote(let count): output.consume(count)
            case .wouldBlock: return armWrite()
            case .failed: return end()
            }
        }
        end()
    }
}
