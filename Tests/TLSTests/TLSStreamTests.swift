import Bytes
import Libevent
import LoopTesting
import TLS
import Testing

/// Bytes through TLS, over sockets.
@Suite(.timeLimit(.minutes(10)))
struct TLSStreamTests {
    /// Text in which each place differs from its neighbours.
    private static func text(_ count: Int) -> [UInt8] {
        (0..<count).map { UInt8(truncatingIfNeeded: $0 &* 31 ^ $0 >> 8) }
    }

    /// Sends `bytes` from the server in pieces of all sizes, as the kernel takes them, and gives what the client read.
    private func received(_ bytes: [UInt8], isNarrow: Bool, leastRead: Int = 4096) throws -> [UInt8] {
        var result: [UInt8] = []
        // Kept until the loop has ended.
        var kept: SecurePair?
        try onLoop { loop in
            let pair = try SecurePair(on: loop, isNarrow: isNarrow)
            kept = pair
            let whole = ByteSlice(copying: bytes.span)
            var sent = 0
            let list = GatherList()
            let send: (TestSocket) -> Void = { socket in
                while sent < bytes.count {
                    // A head, and pieces of several sizes behind it.
                    var start = min(bytes.count, sent + 1 + sent % 700)
                    let head = whole[sent..<start]
                    for size in [3, 17_000, 5_000, 40_000, 1] where start < bytes.count {
                        list.append(whole[start..<min(bytes.count, start + size)])
                        start = min(bytes.count, start + size)
                    }
                    let result = socket.write(head.span, list)
                    list.removeAll()
                    switch result {
                    case .wrote(let count): sent += count
                    case .wouldBlock: return socket.armWrite()
                    case .failed(let error):
                        Issue.record("\(error)")
                        return loop.stop()
                    }
                }
                do throws(SystemError) { try socket.shutdownWrite() } catch { Issue.record("\(error)") }
            }
            let input = ByteBuffer(capacity: leastRead)
            pair.server.onWritable = send
            pair.client.onReadable = { socket in
                switch socket.read(into: input, minimum: leastRead) {
                case .bytes:
                    unsafe input.span.withUnsafeBytes { result += unsafe Array($0) }
                    input.removeAll()
                case .wouldBlock: break
                case .endOfStream: loop.stop()
                case .failed(let error):
                    Issue.record("\(error)")
                    loop.stop()
                }
            }
            pair.client.startReading()
            pair.server.armWrite()
        }
        withExtendedLifetime(kept) {}
        return result
    }

    @Test(arguments: [true, false])
    func `the peer reads what was written, whatever the kernel takes at once`(isNarrow: Bool) throws {
        let bytes = Self.text(700_000)
        #expect(try received(bytes, isNarrow: isNarrow) == bytes)
    }

    @Test func `bytes that wait in the layer are reported though the kernel has none`() throws {
        let bytes = Self.text(100_000)
        // Each read takes less than a record has.
        #expect(try received(bytes, isNarrow: false, leastRead: 64) == bytes)
    }

    @Test func `a connection that ends without the peer's word is a failure`() throws {
        var kept: SecurePair?
        try onLoop { loop in
            let pair = try SecurePair(on: loop)
            kept = pair
            let input = ByteBuffer(capacity: 4096)
            pair.client.onReadable = { socket in
                #expect(socket.read(into: input) == .failed(.cut))
                loop.stop()
            }
            pair.client.startReading()
            // As if the network ended it.
            _ = pair.server.handOver()
        }
        withExtendedLifetime(kept) {}
    }

    @Test func `after the end of its stream a peer still reads`() throws {
        var kept: SecurePair?
        try onLoop { loop in
            let pair = try SecurePair(on: loop)
            kept = pair
            let input = ByteBuffer(capacity: 4096)
            pair.client.onReadable = { socket in
                #expect(socket.read(into: input) == .endOfStream)
                socket.stopReading()
                #expect(socket.write(ByteSlice("answer").span) == .wrote(6))
            }
            pair.server.onReadable = { socket in
                #expect(socket.read(into: input) == .bytes(6))
                loop.stop()
            }
            pair.client.startReading()
            pair.server.startReading()
            try pair.server.shutdownWrite()
        }
        withExtendedLifetime(kept) {}
    }

    @Test func `a session ticket is no byte of the stream`() throws {
        try onLoop { loop in
            let pair = try SecurePair(on: loop)
            #expect(pair.client.isSilent)
            _ = pair.server.write(ByteSlice("x").span)
            #expect(!pair.client.isSilent)
            loop.stop()
        }
    }
}
