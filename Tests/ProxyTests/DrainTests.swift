import Bytes
import Libevent
import LoopTesting
import Routing
import Telemetry
import Testing

@testable import Proxy

/// What becomes of connections without a request under way when the program ends.
@Suite(.timeLimit(.minutes(10))) final class DrainTests {
    private let proxy: TestProxy
    private let address: SocketAddress
    private let client: TestSocket
    private var received = ""
    private var hasEnded = false
    private var isEmpty = false

    init() throws {
        proxy = try TestProxy()
        let targets = try ListenTarget.open([.ipv4(.loopback, port: 0)], Listener.Settings(), forLoops: 1)
        address = targets[0].address
        try proxy.worker.clients.listen(at: targets, asLoop: 0, among: 1)
        client = try TestSocket(connectingTo: address, on: proxy.loop)
        client.onConnected = { [unowned client] _ in client.startReading() }
        let input = ByteBuffer(capacity: 4096)
        client.onReadable = { [unowned self] client in
            switch client.read(into: input) {
            case .bytes:
                received += String(input.copied())
                input.removeAll()
            case .wouldBlock: break
            case .endOfStream, .failed:
                hasEnded = true
                client.close()
            }
        }
        // What the worker does by itself is noticed too.
        proxy.loop.schedule(every: millisecond) { [unowned loop = proxy.loop] in loop.stop() }
        proxy.run { proxy.counted(.clientConnectionsOpened) == 1 }
    }

    private func drain() { proxy.worker.drain { [unowned self] in isEmpty = true } }

    private func send(_ text: String) {
        let bytes = ByteSlice(text)
        _ = client.write(bytes.span)
    }

    /// How many requests ended by themselves since draining began.
    private var endedCount: Int {
        proxy.worker.reportCutOff()
        return proxy.worker.context.shared.drained.withLock { $0.ended }
    }

    @Test func `the first request of a connection accepted just before the end gets a response`() throws {
        drain()
        #expect(!isEmpty)
        send("GET /x HTTP/1.1\r\nHost: a.example\r\n\r\n")
        proxy.run { proxy.origin.requestCount == 1 }
        proxy.origin.answer("one")
        proxy.run { isEmpty }
        #expect(received.hasPrefix("HTTP/1.1 200 ") && received.hasSuffix("one") && hasEnded)
        #expect(received.contains("Connection: close"))
        #expect(endedCount == 1)
    }

    @Test func `a connection that has carried a request is closed at once`() throws {
        send("GET /x HTTP/1.1\r\nHost: a.example\r\n\r\n")
        proxy.run { proxy.origin.requestCount == 1 }
        proxy.origin.answer("one")
        proxy.run { received.hasSuffix("one") }
        #expect(!hasEnded)
        drain()
        #expect(isEmpty)
        #expect(endedCount == 0)
    }

    /// An empty line is no part of a head (RFC 9112 §2.2).
    @Test(arguments: ["", "\r\n"])
    func `a silent connection delays the end for half a second at most`(_ text: String) throws {
        send(text)
        proxy.run { proxy.counted(.clientBytesIn) == text.utf8.count }
        let began = proxy.loop.now
        drain()
        #expect(!isEmpty)
        proxy.run { isEmpty }
        #expect(proxy.loop.now - began >= proxy.worker.clients.timeouts.firstRequest)
        #expect(endedCount == 0)
    }

    @Test func `a connection cut off before its first request is not counted as a request`() throws {
        drain()
        #expect(endedCount == 0)
        proxy.worker.cut()
        #expect(isEmpty)
    }
}
