import Bytes
import Libevent
import Telemetry
import Upstream

/// Relays bytes both ways after an upgrade (RFC 9110 §7.8): what is inside is none of our business.
///
/// Owned by the client connection, confined to its loop. Each side is read only while less than `highWater` waits for the other.
///
/// ```
/// open ─one side has sent its end→ half (the other may go on) ─the other's end→ over;   any ─error, silence→ over
/// ```
final class Tunnel: TunnelEnd {
    /// Bytes that may wait for the slower side.
    static let highWater = 256 << 10

    private unowned let client: ClientConnection
    private var upstream: UpstreamConnection?
    private let toClient: ByteBuffer
    private let toUpstream = ByteBuffer(capacity: 4096)
    private var clientHasEnded = false
    private var upstreamHasEnded = false
    private let worker: Worker

    init(client: ClientConnection, upstream: UpstreamConnection, toClient head: ByteBuffer, toUpstream early: ByteSlice?, worker: Worker) {
        self.client = client
        self.upstream = upstream
        self.worker = worker
        toClient = head
        if let early { toUpstream.append(early) }
    }

    func start() {
        guard let upstream else { return }
        upstream.tunnel = self
        upstream.startReading()
        client.startReading()
        flushToClient()
        flushToUpstream()
        awaitBytes()
    }

    /// A byte either way: both sides have the whole time again.
    private func awaitBytes() {
        if client.phase == .tunnelling { client.due(.tunnel, worker.timeouts.tunnel) }
    }

    // MARK: From the client

    func clientReadable() {
        guard toUpstream.count < Self.highWater else { return client.stopReading() }
        switch client.read(into: toUpstream, minimum: 16 << 10) {
        case .bytes(let count):
            worker.metrics.add(.clientBytesIn, UInt64(count))
            flushToUpstream()
        case .wouldBlock:
            break
        case .endOfStream:
            clientHasEnded = true
            client.stopReading()
            flushToUpstream()
        case .failed:
            over()
        }
    }

    func clientWritable() { flushToClient() }

    /// The client connection is gone.
    func clientEnded() {
        let upstream = upstream
        self.upstream = nil
        upstream?.closeTunnel()
    }

    // MARK: From the origin

    func tunnelReadable(_ socket: Socket) {
        guard let upstream, toClient.count < Self.highWater else { return socket.stopReading() }
        switch upstream.read(into: toClient, minimum: 16 << 10) {
        case .bytes(let count):
            worker.metrics.add(.upstreamBytesIn, UInt64(count))
            flushToClient()
        case .wouldBlock:
            break
        case .endOfStream:
            upstreamHasEnded = true
            upstream.stopReading()
            flushToClient()
        case .failed:
            over()
        }
    }

    func tunnelWritable(_ socket: Socket) { flushToUpstream() }

    // MARK: Writing

    private func flushToClient() {
        guard flush(toClient, to: client, counting: .clientBytesOut) else { return over() }
        if toClient.count < Self.highWater / 2, !upstreamHasEnded { upstream?.startReading() }
        if upstreamHasEnded, toClient.isEmpty { endDirection { try? client.shutdownWrite() } }
    }

    private func flushToUpstream() {
        guard let upstream, flush(toUpstream, to: upstream, counting: .upstreamBytesOut) else { return over() }
        if toUpstream.count < Self.highWater / 2, !clientHasEnded { client.startReading() }
        if clientHasEnded, toUpstream.isEmpty { endDirection { try? upstream.shutdownWrite() } }
    }

    /// False when the socket is broken.
    private func flush(_ buffer: ByteBuffer, to socket: Socket, counting counter: Counter) -> Bool {
        while !buffer.isEmpty {
            switch socket.write(buffer.span) {
            case .wrote(let count):
                worker.metrics.add(counter, UInt64(count))
                buffer.consume(count)
                awaitBytes()
            case .wouldBlock:
                socket.armWrite()
                return true
            case .failed:
                return false
            }
        }
        socket.disarmWrite()
        return true
    }

    private func endDirection(_ shutdown: () -> Void) {
        shutdown()
        if clientHasEnded, upstreamHasEnded, toClient.isEmpty, toUpstream.isEmpty { over() }
    }

    private func over() { client.end() }
}
