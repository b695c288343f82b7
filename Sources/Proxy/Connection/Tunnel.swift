import Bytes
import Libevent
import Telemetry
import Upstream

/// Relays bytes both ways after an upgrade (RFC 9110 §7.8) without looking at them.
///
/// Owned by the client connection, confined to its loop. Each side is read only while the buffer to the other side has
/// room for a read. The tunnel ends when both directions are shut, at an error, or after `tunnel-timeout` without a
/// byte.
final class Tunnel: TunnelEnd {
    /// Most bytes that wait for the slower side. They are in no budget, even with thousands of tunnels open: the
    /// sockets' own buffers hold as many.
    static let highWater = 64 << 10
    /// The least room for a read, in bytes.
    private static let leastRead = 16 << 10

    /// One direction of the tunnel.
    ///
    /// ```
    /// open ─end of stream read→ ended ─its buffer is sent→ shut
    /// ```
    private enum Direction { case open, ended, shut }

    private unowned let client: ClientTransport
    private var upstream: UpstreamConnection?
    private let toClient = ByteBuffer(capacity: 4096)
    private let toUpstream = ByteBuffer(capacity: 4096)
    private var fromClient = Direction.open
    private var fromUpstream = Direction.open
    private let metrics: LoopMetrics

    init(
        client: ClientTransport, upstream: UpstreamConnection, toClient head: ByteBuffer, toUpstream early: ByteSlice?,
        metrics: LoopMetrics
    ) {
        self.client = client
        self.upstream = upstream
        self.metrics = metrics
        // Copied, since these buffers grow by doubling up to `highWater` and no further.
        toClient.append(head.span)
        if let early { toUpstream.append(early) }
    }

    func start() {
        guard let upstream else { return }
        upstream.tunnel = self
        upstream.startReading()
        client.startReading()
        flushToClient()
        flushToUpstream()
        client.awaitTunnel()
    }

    // MARK: From the client

    func clientReadable() {
        guard toUpstream.count <= Self.highWater - Self.leastRead else { return client.stopReading() }
        switch client.read(into: toUpstream, minimum: Self.leastRead) {
        case .bytes(let count):
            metrics.add(.clientBytesIn, UInt64(count))
            flushToUpstream()
        case .wouldBlock:
            break
        case .endOfStream:
            fromClient = .ended
            client.stopReading()
            flushToUpstream()
        case .failed:
            over()
        }
    }

    func clientWritable() { flushToClient() }

    /// The client connection ends.
    /// - Returns: whether both directions were shut.
    func clientEnded() -> Bool {
        let isWhole = fromClient == .shut && fromUpstream == .shut
        upstream.take()?.closeTunnel(abruptly: !isWhole)
        return isWhole
    }

    // MARK: From the origin

    func tunnelReadable(_ socket: Socket) {
        guard let upstream, toClient.count <= Self.highWater - Self.leastRead else { return socket.stopReading() }
        switch upstream.read(into: toClient, minimum: Self.leastRead) {
        case .bytes(let count):
            metrics.add(.upstreamBytesIn, UInt64(count))
            flushToClient()
        case .wouldBlock:
            break
        case .endOfStream:
            fromUpstream = .ended
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
        switch fromUpstream {
        case .open: if toClient.count < Self.highWater / 2 { upstream?.startReading() }
        case .ended where toClient.isEmpty:
            fromUpstream = .shut
            endWriting(to: client)
        case .ended, .shut: break
        }
    }

    private func flushToUpstream() {
        guard let upstream, flush(toUpstream, to: upstream, counting: .upstreamBytesOut) else { return over() }
        switch fromClient {
        case .open: if toUpstream.count < Self.highWater / 2 { client.startReading() }
        case .ended where toUpstream.isEmpty:
            fromClient = .shut
            endWriting(to: upstream)
        case .ended, .shut: break
        }
    }

    /// - Returns: false if the socket has failed.
    private func flush(_ buffer: ByteBuffer, to socket: Socket, counting counter: Counter) -> Bool {
        let result = socket.flush(buffer) { count in
            metrics.add(counter, UInt64(count))
            client.awaitTunnel()
        }
        switch result {
        case .done, .blocked: return true
        case .failed: return false
        }
    }

    private func endWriting(to receiver: Socket) {
        try? receiver.shutdownWrite()
        if fromClient == .shut, fromUpstream == .shut { over() }
    }

    private func over() { client.end() }
}
