import Bytes
import Libevent
import LoopTesting
import Routing
import Telemetry
import Testing

@testable import Proxy

/// A tunnel reads a side only while what waits for the other leaves room.
@Suite(.timeLimit(.minutes(10))) struct TunnelTests {
    /// One end of the tunnel, outside: counts what comes, while it reads.
    private final class End {
        let socket: TestSocket
        private(set) var received = 0
        private(set) var last = ""
        private let input = ByteBuffer(capacity: 256 << 10)
        private let output = ByteBuffer(capacity: 4096)
        private var endsThen = false

        init(_ socket: TestSocket) {
            self.socket = socket
            let input = input
            socket.onReadable = { [unowned self] socket in
                guard case .bytes(let count) = socket.read(into: input) else { return socket.stopReading() }
                let bytes = input.span
                received += count
                last = String((last + String(bytes.extracting(last: 4))).suffix(4))
                input.removeAll()
            }
            socket.onWritable = { [unowned self] _ in flush() }
        }

        /// - Parameters:
        ///   - count: zeros before it.
        ///   - isLast: nothing follows.
        func send(_ text: String, after count: Int = 0, isLast: Bool = false) {
            let (zeros, bytes) = ([UInt8](repeating: 0, count: count), ByteSlice(text))
            output.append(zeros.span)
            output.append(bytes.span)
            endsThen = isLast
            flush()
        }

        private func flush() {
            if case .done = socket.flush(output), endsThen { try? socket.shutdownWrite() }
        }
    }

    private let proxy: TestProxy
    private let client: End
    private let origin: End

    init() throws {
        let proxy = try TestProxy()
        let targets = try ListenTarget.open([.ipv4(.loopback, port: 0)], Listener.Settings(), forLoops: 1)
        try proxy.worker.clients.listen(at: targets, asLoop: 0, among: 1)
        let address = targets[0].address
        let client = End(try TestSocket(connectingTo: address, on: proxy.loop))
        proxy.loop.schedule(every: millisecond) { [unowned loop = proxy.loop] in loop.stop() }
        proxy.run { proxy.counted(.clientConnectionsOpened) == 1 }
        client.send("GET /x HTTP/1.1\r\nHost: a.example\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n")
        proxy.run { proxy.origin.requestCount == 1 }
        client.socket.startReading()
        origin = End(proxy.origin.switchProtocols())
        proxy.run { client.last == "\r\n\r\n" }
        (self.proxy, self.client) = (proxy, client)
    }

    /// More than the kernel takes of it on all four sockets.
    private static let much = 32 << 20

    @Test(arguments: [true, false])
    func `bytes for a stuck side wait at their sender, and the other direction stays open`(
        _ isFromOrigin: Bool
    ) {
        let (sender, receiver) = isFromOrigin ? (origin, client) : (client, origin)
        let (came, went): (Counter, Counter) =
            isFromOrigin ? (.upstreamBytesIn, .clientBytesOut) : (.clientBytesIn, .upstreamBytesOut)
        func difference() -> Int { Int(proxy.counted(came)) - Int(proxy.counted(went)) }
        // Of the heads.
        let (before, receivedBefore) = (difference(), receiver.received)
        func held() -> Int { difference() - before }

        receiver.socket.stopReading()
        sender.send("last", after: Self.much)
        proxy.run { held() > Tunnel.highWater / 2 }
        sender.socket.startReading()
        for round in 0..<8 {
            let seen = sender.received
            receiver.send("back\(round)")
            proxy.run { sender.received == seen + 5 }
            #expect(held() <= Tunnel.highWater)
        }
        #expect(proxy.counted(came) < Self.much, "the rest is not read")

        receiver.socket.startReading()
        proxy.run { receiver.received == receivedBefore + Self.much + 4 }
        #expect(receiver.last == "last" && held() == 0)
    }

    @Test(arguments: [true, false])
    func `an end is passed on behind the bytes that wait, and the other direction stays open`(_ isFromOrigin: Bool) {
        let (sender, receiver) = isFromOrigin ? (origin, client) : (client, origin)
        let before = receiver.received
        receiver.socket.stopReading()
        sender.send("last", after: 1 << 20, isLast: true)
        sender.socket.startReading()
        receiver.send("back")
        proxy.run { sender.last == "back" }
        receiver.socket.startReading()
        proxy.run { receiver.received == before + 4 + 1 << 20 }
        #expect(receiver.last == "last")
        receiver.send("more", isLast: true)
        proxy.run { sender.last == "more" }
        proxy.run { proxy.counted(.clientConnectionsClosed) == 1 }
    }
}
