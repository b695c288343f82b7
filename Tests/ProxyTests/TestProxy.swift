import Bytes
import HTTPSemantics
import Libevent
import Logging
import LoopTesting
import RouteTesting
import Routing
import Storage
import Telemetry
import Testing
import Upstream

@testable import Proxy

/// A worker on a loop of the test's own, with an origin that answers when the test says so. Requests come from clients
/// without sockets.
final class TestProxy {
    let loop: EventLoop
    let worker: Worker
    let origins: [TestOrigin]
    /// The first server.
    var origin: TestOrigin { origins[0] }
    private let metrics = LoopMetrics()

    /// - Parameters:
    ///   - index: of its worker.
    ///   - servers: how many its upstream has.
    init(worker index: Int = 0, servers: Int = 1, _ change: (inout ProxySettings) -> Void = { _ in }) throws {
        let loop = try EventLoop()
        self.loop = loop
        origins = try (0..<servers).map { _ in try TestOrigin(on: loop) }
        var upstream = UpstreamSettings.named("one")
        upstream.servers = origins.map { UpstreamServer(host: "127.0.0.1", port: $0.port) }
        var settings = ProxySettings()
        change(&settings)
        let log = Logger(label: "tests") { _ in SwiftLogNoOpLogHandler() }
        worker = Worker(
            index: index,
            LoopContext(
                ofWorker: index, on: loop, shared: SharedState(StorageSettings(), log: log),
                settings: LoopSettings(settings, upstreams: [upstream]), metrics: metrics, feed: nil))
        worker.context.shared.changeOrigins { worker.context.loopSettings.origins }
    }

    deinit {
        worker.cut()
        loop.finish()
    }

    /// Loads other settings, with the same upstream.
    func reload(_ change: (inout ProxySettings) -> Void) {
        let former = worker.context.loopSettings
        var settings = former.settings
        change(&settings)
        worker.context.apply(LoopSettings(settings, upstreams: former.origins.map(\.settings), previous: former))
    }

    /// The request of a client, as it is admitted by the settings of now.
    func admit(_ text: String = "GET /x") throws -> ClientRequest {
        let parsed = try ParsedHead(text)
        return try worker.context.admit(
            parsed.head, parsed.fields, on: nil, from: .ipv4(.loopback, port: 1), isFromTrustedProxy: false,
            over: nil, isBound: false)
    }

    /// A client asks. What can be sent at once is sent when this returns.
    func ask(_ text: String = "GET /x") throws -> TestClient {
        let client = TestClient(of: worker)
        client.ask(try admit(text))
        return client
    }

    /// Several ask for the same, one after another, before the loop does anything else.
    func ask(times count: Int) throws -> [TestClient] { try (0..<count).map { _ in try ask() } }

    /// Runs the loop until something that clients or the origin notice makes `condition` true.
    func run(until condition: () -> Bool) {
        var isLate = false
        let limit = loop.schedule(after: 10 * second) { [unowned loop] in
            isLate = true
            loop.stop()
        }
        while !condition(), !isLate { loop.run() }
        limit.cancel()
        #expect(!isLate, "what was awaited did not happen")
    }

    func counted(_ counter: Counter) -> UInt64 { metrics.read()[counter] }
}

/// Accepts connections, collects requests without content, and answers them in their order when it is told to.
final class TestOrigin {
    private var listener: Listener?
    /// A request that is not answered.
    struct Asking {
        let socket: TestSocket
        let head: String
        /// The origin's `version` when the request came.
        let version: Int
    }

    private var asking: [Asking] = []
    /// Of what it has to say.
    var version = 0
    private var connections: [TestSocket] = []
    /// The one whose response has begun.
    private var answering: TestSocket?
    /// How many requests have come.
    private(set) var requestCount = 0
    /// The head of the last one.
    private(set) var lastRequest = ""

    init(on loop: EventLoop) throws {
        listener = try Listener(.ipv4(.loopback, port: 0), on: loop) { [unowned self] descriptor, _ in
            let connection = TestSocket(adopting: descriptor, on: loop)
            connections.append(connection)
            let input = ByteBuffer(capacity: 4096)
            connection.onReadable = { [unowned self, unowned loop] connection in
                guard case .bytes = connection.read(into: input) else { return connection.close() }
                let head = String(input.copied())
                guard head.hasSuffix("\r\n\r\n") else { return }
                lastRequest = head
                input.removeAll()
                requestCount += 1
                asking.append(Asking(socket: connection, head: head, version: version))
                loop.stop()
            }
            connection.startReading()
        }
    }

    var port: UInt16 { listener?.localAddress.port ?? 0 }

    /// Answers the request that has waited longest.
    func answer(_ body: String, _ fields: String = "Cache-Control: max-age=60") {
        begin(body, of: body.utf8.count, fields)
        answering = nil
    }

    /// The same with 304, or another status without content.
    func answer(status: String, _ fields: String) {
        answering = take().socket
        goOn("HTTP/1.1 \(status)\r\n\(fields)\r\n\r\n")
        answering = nil
    }

    /// The same with a first part of a body of `length` bytes.
    func begin(_ part: String, of length: Int, _ fields: String = "Cache-Control: max-age=60") {
        answering = take().socket
        goOn("HTTP/1.1 200 OK\r\nContent-Length: \(length)\r\n\(fields)\r\n\r\n\(part)")
    }

    /// Answers the request that has waited longest with a part of a representation of 10 bytes.
    func answer(part: String, from first: Int, _ fields: String) {
        let (length, last) = (part.utf8.count, first + part.utf8.count - 1)
        answering = take().socket
        goOn(
            "HTTP/1.1 206 Partial Content\r\nContent-Length: \(length)\r\nContent-Range: bytes \(first)-\(last)/10\r\n"
                + "Cache-Control: max-age=60\r\n\(fields)\r\n\r\n\(part)")
        answering = nil
    }

    /// Begins to answer with a part of a representation of 10 bytes.
    /// - Parameter last: the last byte of that part; only `part` is sent now.
    func begin(part: String, from first: Int, to last: Int, _ fields: String) {
        answering = take().socket
        goOn(
            "HTTP/1.1 206 Partial Content\r\nContent-Length: \(last - first + 1)\r\n"
                + "Content-Range: bytes \(first)-\(last)/10\r\n\(fields)\r\n\r\n\(part)")
    }

    /// Sends another part of the body that it began.
    func goOn(_ part: String) {
        let bytes = ByteSlice(part)
        _ = answering?.write(bytes.span)
    }

    /// Sends something before it answers.
    func tell(_ text: String) {
        let bytes = ByteSlice(text)
        _ = asking.first?.socket.write(bytes.span)
    }

    /// Turns the connection of the request that has waited longest into a tunnel, whose end it gives.
    func switchProtocols() -> TestSocket {
        let socket = take().socket
        let head = ByteSlice("HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n")
        _ = socket.write(head.span)
        return socket
    }

    func answerLast(_ body: String, _ fields: String) {
        let one = asking.removeLast().socket
        let bytes = ByteSlice("HTTP/1.1 200 OK\r\nContent-Length: \(body.utf8.count)\r\n\(fields)\r\n\r\n\(body)")
        _ = one.write(bytes.span)
    }
    var askingCount: Int { asking.count }
    func skip() { if asking.count > 1 { asking.removeFirst() } }
    /// Closes its connection instead.
    func hangUp() { take().socket.close() }
    /// The request that has waited longest, to be answered by the test.
    func take() -> Asking { asking.removeFirst() }
}

/// A client that takes whatever it is sent.
final class TestClient: TransactionClient, TurnTaker {
    private let worker: Worker
    private(set) var transaction: Transaction?
    private var delivery: Delivery?
    let boundConnections = BoundConnections()
    private let list = GatherList()
    private var received = ""
    /// One after another.
    private(set) var interims = ""
    /// In which iterations of the loop something was sent to it, by their times.
    private(set) var iterations: [Int64] = []

    init(of worker: Worker) { self.worker = worker }

    func ask(_ request: ClientRequest) {
        let transaction = Transaction(
            request, .at(worker.context.moment, after: worker.context.tags.generation), client: self,
            in: worker.context,
            latestGroup: worker.clients.latestGroup)
        self.transaction = transaction
        transaction.look()
    }

    /// Status and content of the response, as `200 content`; empty while there is none.
    var answer: String {
        guard let end = received.firstRange(of: "\r\n\r\n") else { return "" }
        return received.prefix(12).suffix(3) + " " + received[end.upperBound...]
    }
    /// The head of the response; empty while there is none.
    var head: String { received.firstRange(of: "\r\n\r\n").map { String(received[..<$0.lowerBound]) } ?? "" }
    /// Whether its response is out, or it has left.
    var hasEnded: Bool { transaction == nil }
    var isWaiting: Bool { transaction?.state == .waiting }
    /// With whom it waits.
    var group: WaiterGroup? { transaction?.group }

    /// Its connection ends.
    func leave() {
        transaction.take()?.leave()
        delivery.take()?.detach()
        worker.context.loop.stop()
    }

    // MARK: What its transaction asks of it

    func send(
        _ head: ByteBuffer, _ sources: consuming Delivery.Sources, _ framing: Delivery.Framing, passesTrailers: Bool
    ) {
        iterations.append(worker.context.now)
        let response = Delivery(head: head, sources, framing: framing, passesTrailers: passesTrailers)
        delivery = response
        pump()
        // The head was lent.
        response.keepHead()
    }

    func send(interim: ByteSlice) {
        #expect(received.isEmpty, "an interim response behind the final one")
        interims += String(interim)
        iterations.append(worker.context.now)
        worker.context.loop.stop()
    }
    func resumeContent() {}
    func tunnel(to upstream: UpstreamConnection, head: ByteBuffer) { upstream.closeTunnel() }
    func settlePersistence() -> Bool { true }

    func turnCame() { pump() }

    private func pump() {
        guard let delivery else { return }
        var sent = 0
        let outcome = delivery.pump(list, sent: &sent) { control in
            let offered = ByteBuffer(capacity: 4096)
            if let control { offered.append(control.span) }
            list.copy(to: offered)
            received += String(offered.span)
            return .wrote(offered.count)
        }
        if outcome == .starved, let body = delivery.followed {
            worker.clients.starvedClients.wait(self, for: body)
            worker.context.loop.stop()
        } else {
            leave()
        }
    }
}
