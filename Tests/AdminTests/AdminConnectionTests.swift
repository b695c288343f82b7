import Bytes
import Libevent
import Logging
import LoopTesting
import Proxy
import Routing
import Storage
import Telemetry
import Testing
import Upstream

@testable import Admin

/// One question to the admin listener. The proxy's control loop is another one than the listener's, and runs only when a
/// test says so: until then a purge does not end.
@Suite(.timeLimit(.minutes(10))) final class AdminConnectionTests {
    private let loop: EventLoop
    private let control: EventLoop
    private let server: AdminServer
    private let client: TestSocket
    private var received = ""
    private var hasEnded = false
    /// How often it was told that all places are taken.
    private let crowds: Counter

    private final class Counter {
        var value = 0
    }

    init() throws {
        let (loop, control) = (try EventLoop(), try EventLoop())
        (self.loop, self.control) = (loop, control)
        let crowds = Counter()
        self.crowds = crowds
        let upstream = UpstreamSettings(name: "one", servers: [UpstreamServer(host: "127.0.0.1")])
        let proxy = ProxyServer(
            ProxySettings(), upstreams: [upstream], storage: StorageSettings(), accessLog: AccessLogSettings(),
            on: control, log: Logger(label: "tests") { _ in SwiftLogNoOpLogHandler() })
        server = try AdminServer(
            at: .ipv4(.loopback, port: 0), AdminSettings(), TLSSettings(), from: InheritedSockets(), of: proxy,
            version: "0", on: loop,
            onRefusal: { _ in }, onConnectionLimit: { crowds.value += 1 })
        proxy.purgeDesk.report = { [unowned control] _ in control.stop() }
        server.resume()
        client = try TestSocket(connectingTo: server.address, on: loop)
        client.onConnected = { [unowned client] _ in client.startReading() }
        let input = ByteBuffer(capacity: 4096)
        client.onReadable = { [unowned self] client in
            guard case .bytes = client.read(into: input) else {
                hasEnded = true
                return client.stopReading()
            }
            received += String(input.copied())
            input.removeAll()
        }
        loop.schedule(every: millisecond) { [unowned loop] in loop.stop() }
    }

    deinit {
        server.close()
        client.close()
        loop.finish()
        control.finish()
    }

    private func run(until condition: () -> Bool) { while !condition() { loop.run() } }

    private func send(_ text: String) {
        let bytes = ByteSlice(text)
        _ = client.write(bytes.span)
    }

    @Test func `a response to a complete request ends the connection`() {
        send("GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
        run { hasEnded }
        #expect(received.hasPrefix("HTTP/1.1 200 OK\r\n"))
        #expect(loop.deadlines.count == 0)
    }

    @Test(arguments: [
        ("GET\r\n\r\n", "400"), ("POST /purge HTTP/1.1\r\nHost: localhost\r\nContent-Length: 900000\r\n\r\n", "413"),
        ("POST /purge HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nx", "400"),
    ])
    func `after the response to an incomplete request, input is discarded until the client closes`(
        _ head: String, _ status: String
    ) {
        send(head)
        // More than is taken of a content that is announced.
        send(String(repeating: "x", count: 100_000))
        run { hasEnded }
        #expect(received.hasPrefix("HTTP/1.1 \(status) "))
        #expect(loop.deadlines.count == 1, "it lingers")
        client.close()
        run { loop.deadlines.count == 0 }
    }

    /// RFC 9110 §10.1.1
    @Test func `a client that expects 100 gets 100 before its content is read, and then the page`() {
        let goOn = "HTTP/1.1 100 Continue\r\n\r\n"
        send("POST /purge HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\n")
        run { received == goOn }
        send("a")
        send("ll")
        run { loop.deadlines.count == 0 }
        #expect(received == goOn, "one 100 is enough")
        control.run()
        run { hasEnded }
        #expect(received.hasPrefix("\(goOn)HTTP/1.1 200 OK\r\n") && received.contains("purged 0 stored responses"))
    }

    @Test(arguments: [
        ("Host: localhost\r\nContent-Length: 900000\r\n\r\n", "413"),
        ("Host: other.example\r\nContent-Length: 3\r\n\r\n", "403"),
    ])
    func `a refused request that expects 100 gets its final status at once`(_ fields: String, _ status: String) {
        send("POST /purge HTTP/1.1\r\nExpect: 100-continue\r\n\(fields)")
        run { hasEnded }
        #expect(received.hasPrefix("HTTP/1.1 \(status) "))
    }

    @Test(arguments: ["\r\n", "Content-Length: 0\r\n\r\n", "Content-Length: 1\r\n\r\nx"])
    func `a request that expects 100 gets none once its content has arrived`(_ rest: String) {
        send("GET /healthz HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\n\(rest)")
        run { hasEnded }
        #expect(received.hasPrefix("HTTP/1.1 200 OK\r\n"))
    }

    @Test func `a client that waits for a purge has no deadline, and gets the response when the purge ends`() {
        run { loop.deadlines.count == 1 }
        let content = "prefix http://a/"
        let request = ByteSlice(
            "POST /purge HTTP/1.1\r\nHost: localhost\r\nContent-Length: \(content.utf8.count)\r\n\r\n\(content)")
        _ = client.write(request.span)
        run { loop.deadlines.count == 0 }
        #expect(!hasEnded && received.isEmpty, "it waits")
        control.run()
        run { hasEnded }
        #expect(received.hasPrefix("HTTP/1.1 200 OK\r\n") && received.contains("purged 0 stored responses"))
        #expect(loop.deadlines.count == 0)
    }

    @Test func `a client that waits for a purge is told when the program ends`() {
        run { loop.deadlines.count == 1 }
        send("POST /purge HTTP/1.1\r\nHost: localhost\r\nContent-Length: 3\r\n\r\nall")
        run { loop.deadlines.count == 0 }
        #expect(!hasEnded && received.isEmpty, "it waits")
        server.close()
        run { hasEnded }
        #expect(received.hasPrefix("HTTP/1.1 503 ") && received.hasSuffix("The program is ending.\n"))
        #expect(loop.deadlines.count == 0)
    }

    /// So many more that say nothing, each with a deadline once it has been accepted.
    private func connectSilently(_ count: Int) throws -> [TestSocket] {
        let before = loop.deadlines.count
        let sockets = try (0..<count).map { _ in try TestSocket(connectingTo: server.address, on: loop) }
        run { loop.deadlines.count == before + count }
        return sockets
    }

    @Test func `at the connection limit, the oldest silent connection is closed for a new client`() throws {
        run { loop.deadlines.count == 1 }
        let others = try connectSilently(AdminServer.maxConnections - 1)
        #expect(!hasEnded && crowds.value == 0)
        let asking = try (0..<2).map { _ in try TestSocket(connectingTo: server.address, on: loop) }
        var answers = ["", ""]
        let input = ByteBuffer(capacity: 4096)
        for (index, socket) in asking.enumerated() {
            socket.onConnected = { [unowned socket] _ in
                let request = ByteSlice("GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
                _ = socket.write(request.span)
                socket.startReading()
            }
            socket.onReadable = { socket in
                guard case .bytes = socket.read(into: input) else { return socket.stopReading() }
                answers[index] += String(input.copied())
                input.removeAll()
            }
        }
        run { hasEnded && answers.allSatisfy { $0.hasSuffix("ok\n") } }
        #expect(received.isEmpty, "the first that came is the first to go")
        #expect(crowds.value == 1, "it is told once")
        for socket in others + asking { socket.close() }
    }

    @Test func `at the connection limit, a connection whose request is complete is not closed`() throws {
        run { loop.deadlines.count == 1 }
        send("POST /purge HTTP/1.1\r\nHost: localhost\r\nContent-Length: 3\r\n\r\nall")
        run { loop.deadlines.count == 0 }
        let others = try connectSilently(AdminServer.maxConnections - 1)
        let another = try TestSocket(connectingTo: server.address, on: loop)
        run { crowds.value == 1 }
        #expect(!hasEnded && loop.deadlines.count == AdminServer.maxConnections - 1)
        control.run()
        run { hasEnded }
        #expect(received.contains("purged 0 stored responses"))
        for socket in others + [another] { socket.close() }
    }
}
