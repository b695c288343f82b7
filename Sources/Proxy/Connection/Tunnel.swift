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
    private final class Direction {
        enum State { case open, ended, shut }

        unowned let source: Socket
        unowned let sink: Socket
        let buffer = ByteBuffer(capacity: 4096)
        let bytesIn: Counter
        let bytesOut: Counter
        var state = State.open

        init(from source: Socket, to sink: Socket, counting bytesIn: Counter, _ bytesOut: Counter) {
            self.source = source
            self.sink = sink
            self.bytesIn = bytesIn
            self.bytesOut = bytesOut
        }
    }

    private unowned let client: ClientTransport
    /// `nil` once the tunnel is over.
    private var upstream: UpstreamConnection?
    private let fromClient: Direction
    private let fromUpstream: Direction
    private let metrics: LoopMetrics

    init(
        client: ClientTransport, upstream: UpstreamConnection, toClient head: ByteBuffer, toUpstream early: ByteSlice?,
        metrics: LoopMetrics
    ) {
        self.client = client
        self.upstream = upstream
        self.metrics = metrics
        fromClient = Direction(from: client, to: upstream, counting: .clientBytesIn, .upstreamBytesOut)
        fromUpstream = Direction(from: upstream, to: client, counting: .upstreamBytesIn, .clientBytesOut)
        // Copied, since these buffers grow by doubling up to `highWater` and no further.
        fromUpstream.buffer.append(head.span)
        if let early { fromClient.buffer.append(early) }
    }

    func start() {
        upstream?.tunnel = self
        upstream?.startReading()
        client.startReading()
        flush(fromUpstream)
        flush(fromClient)
        client.awaitTunnel()
    }

    // MARK: Calls of the two sockets

    func clientReadable() { relay(fromClient) }
    func clientWritable() { flush(fromUpstream) }
    func tunnelReadable(_ socket: Socket) { relay(fromUpstream) }
    func tunnelWritable(_ socket: Socket) { flush(fromClient) }

    /// The client connection ends.
    /// - Returns: whether both directions were shut.
    func clientEnded() -> Bool {
        upstream.take()?.closeTunnel(abruptly: !isWhole)
        return isWhole
    }

    private var isWhole: Bool { fromClient.state == .shut && fromUpstream.state == .shut }

    // MARK: Reading and writing

    private func relay(_ direction: Direction) {
        guard upstream != nil, direction.buffer.count <= Self.highWater - Self.leastRead else {
            return direction.source.stopReading()
        }
        switch direction.source.read(into: direction.buffer, minimum: Self.leastRead) {
        case .bytes(let count):
            metrics.add(direction.bytesIn, UInt64(count))
            flush(direction)
        case .wouldBlock:
            break
        case .endOfStream:
            direction.state = .ended
            direction.source.stopReading()
            flush(direction)
        case .failed:
            client.end()
        }
    }

    private func flush(_ direction: Direction) {
        guard upstream != nil else { return }
        let result = direction.sink.flush(direction.buffer) { count in
            metrics.add(direction.bytesOut, UInt64(count))
            client.awaitTunnel()
        }
        if case .failed = result { return client.end() }
        switch direction.state {
        case .open: if direction.buffer.count < Self.highWater / 2 { direction.source.startReading() }
        case .ended where direction.buffer.isEmpty:
            direction.state = .shut
            try? direction.sink.shutdownWrite()
            if isWhole { client.end() }
        case .ended, .shut: break
        }
    }
}
