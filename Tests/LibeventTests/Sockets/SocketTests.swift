import Bytes
import Glibc
import Libevent
import LoopTesting
import Testing

@Suite(.timeLimit(.minutes(10))) struct SocketTests {
    @Test func `written bytes arrive, and the end after them`() throws {
        try onLoop { loop in
            let (left, right) = socketPair(on: loop)
            let text = ByteSlice("hello, ")
            let name = ByteSlice("world")
            let written = left.write(text.span, name.span)
            #expect(written == .wrote(12))
            try left.shutdownWrite()
            let received = ByteBuffer(capacity: 16)
            var results: [ReadResult] = []
            right.onReadable = { socket in
                results.append(socket.read(into: received, minimum: 16))
                if results.last == .endOfStream { socket.close(); loop.stop() }
            }
            right.startReading()
            loop.run()
            #expect(results == [.bytes(12), .endOfStream])
            #expect(String(received.copied()) == "hello, world")
            loop.stop()
        }
    }

    @Test func `a peer that has shut its sending side is distinguished from one that has gone`() throws {
        try onLoop { loop in
            let (near, far) = socketPair(on: loop)
            var told = 0
            near.onReadable = { socket in
                let end = socket.read(into: ByteBuffer(capacity: 16), minimum: 16)
                #expect(end == .endOfStream)
                socket.stopReading()
                #expect(!socket.hasLostPeer)
                socket.watchForDeparture()
                // The end that stays to be read is told of in between.
                loop.schedule(after: 20 * millisecond) {
                    #expect(told == 0)
                    far.close()
                }
            }
            near.onGone = {
                told += 1
                #expect(near.hasLostPeer)
                near.close()
                loop.stop()
            }
            near.startReading()
            try far.shutdownWrite()
            loop.run()
            #expect(told == 1)
            loop.stop()
        }
    }

    @Test func `a socket that waits to write watches for no other event`() throws {
        try onLoop { loop in
            let (near, far) = socketPair(on: loop, isNarrow: true)
            try far.shutdownWrite()
            near.watchForDeparture()
            let more = [UInt8](repeating: 0, count: 1 << 20)
            _ = near.write(more.span)
            near.onGone = { Issue.record("it is told as a writer") }
            near.onWritable = { socket in
                guard case .failed = socket.write(more.span) else { return }
                socket.close()
                loop.stop()
            }
            near.armWrite()
            near.watchForDeparture()
            loop.schedule(after: millisecond) { far.close() }
            loop.run()
            loop.stop()
        }
    }

    @Test func `the end of an iteration comes after all ready sockets were read, and is not delayed`() throws {
        try onLoop { loop in
            let pairs = [socketPair(on: loop), socketPair(on: loop)]
            let text = ByteSlice("x")
            var events: [String] = []
            for (left, right) in pairs {
                _ = left.write(text.span)
                right.onReadable = { socket in
                    socket.stopReading()
                    events.append("read")
                    socket.callAtIterationEnd()
                }
                right.onIterationEnd = { socket in
                    events.append("end")
                    // From inside: at the end of the next iteration, although nothing becomes ready in it.
                    socket.onIterationEnd = { _ in
                        events.append("next end")
                        if events.count == 6 { loop.stop() }
                    }
                    socket.callAtIterationEnd()
                }
                right.startReading()
            }
            loop.run()
            #expect(events == ["read", "read", "end", "end", "next end", "next end"])
            loop.stop()
        }
    }

    @Test func `a gathered body larger than the kernel takes arrives whole by partial writes`() throws {
        try onLoop { loop in
            let (left, right) = socketPair(on: loop)
            // A head and 64 pieces of 64 KiB, each of its own letter.
            let head = ByteSlice("head")
            let pieces = (0..<64).map { number in
                ByteSlice(copying: [UInt8](repeating: UInt8(number), count: 65536).span)
            }
            let total = 4 + 64 * 65536
            let list = GatherList()
            for piece in pieces { list.append(piece) }
            #expect(list.isFull)
            #expect(list.byteCount == total - 4)

            var partialWrites = 0
            guard case .wrote(let first) = left.write(head.span, list), first >= 4, first < total else {
                Issue.record("the kernel should have taken a part")
                return loop.stop()
            }
            var queue = unwritten(pieces, after: first - 4)
            list.removeAll()
            left.onWritable = { socket in
                for piece in queue.prefix(GatherList.capacity) { list.append(piece) }
                switch socket.write(list) {
                case .wrote(let count):
                    partialWrites += 1
                    queue = unwritten(queue, after: count)
                case .wouldBlock: break
                case .failed(let error): Issue.record(error)
                }
                list.removeAll()
                if queue.isEmpty { socket.close() }
            }
            left.armWrite()

            let received = ByteBuffer(capacity: total)
            right.onReadable = { socket in
                switch socket.read(into: received) {
                case .bytes, .wouldBlock: break
                case .endOfStream: loop.stop()
                case .failed(let error): Issue.record(error); loop.stop()
                }
            }
            right.startReading()
            loop.run()
            #expect(partialWrites > 1)
            #expect(received.count == total)
            let got = received.copied()
            #expect(got[0..<4] == head)
            for (number, piece) in pieces.enumerated() {
                let from = 4 + number * 65536
                #expect(got[from..<from + 65536] == piece)
            }
            loop.stop()
        }
    }

    @Test func `a full socket would block`() throws {
        try onLoop { loop in
            let (left, right) = socketPair(on: loop)
            let piece = ByteSlice(copying: [UInt8](repeating: 1, count: 65536).span)
            var result = WriteResult.wrote(0)
            while case .wrote = result { result = left.write(piece.span) }
            #expect(result == .wouldBlock)
            #expect(!right.isClosed)
            loop.stop()
        }
    }

    @Test func `the kernel buffers little of a limited socket's unread bytes on the loopback`() throws {
        try onLoop { loop in
            var server: TestSocket?
            let listener = try Listener(anyPort, on: loop) { connection, _ in
                server = TestSocket(adopting: connection, on: loop)
                loop.stop()
            }
            let client = try TestSocket(connectingTo: listener.localAddress, on: loop)
            loop.run()
            let piece = ByteSlice(copying: [UInt8](repeating: 1, count: 65536).span)
            server?.boundSendQueue()
            var taken = 0
            while case .wrote(let count)? = server?.write(piece.span) { taken += count }
            #expect(taken >= 128 << 10 && taken < 1 << 20)
            #expect(!client.isClosed)
            loop.stop()
        }
    }

    @Test func `writing to a peer that has gone is a result, not a signal`() throws {
        try onLoop { loop in
            let (left, right) = socketPair(on: loop)
            right.close()
            let text = ByteSlice("x")
            let list = GatherList()
            list.append(text)
            guard case .failed(let single) = left.write(text.span), case .failed(let gathered) = left.write(list) else {
                Issue.record("the write should have failed")
                return loop.stop()
            }
            #expect(single.code == EPIPE)
            #expect(gathered == single)
            loop.stop()
        }
    }

    @Test func `after a close inside a callback no further callback comes`() throws {
        try onLoop { loop in
            let (left, right) = socketPair(on: loop)
            let text = ByteSlice("x")
            _ = right.write(text.span)
            var calls = 0
            // Both are due in the same iteration, and whichever comes first closes.
            left.onReadable = {
                calls += 1; $0.close(); $0.close()
            }
            left.onWritable = {
                calls += 1; $0.close()
            }
            left.startReading()
            left.armWrite()
            loop.schedule(after: 20 * millisecond) { loop.stop() }
            loop.run()
            #expect(calls == 1)
            #expect(left.isClosed)
            #expect(!left.isReading)
            left.startReading()
            #expect(!left.isReading)
            loop.stop()
        }
    }

    @Test func `a socket released inside its callback lives until the callback returns, and then closes`() throws {
        try onLoop { loop in
            var events: [String] = []
            var (left, right) = socketPair(on: loop) as (TestSocket?, TestSocket)
            let text = ByteSlice("x")
            _ = right.write(text.span)
            left?.onDeinit = { events.append("gone") }
            left?.onReadable = { _ in
                left = nil
                events.append("returning")
            }
            left?.startReading()
            right.onReadable = { _ in
                events.append("the peer sees it")
                loop.stop()
            }
            right.startReading()
            loop.run()
            #expect(events == ["returning", "gone", "the peer sees it"])
            loop.stop()
        }
    }

    @Test func `a reset is reported as a failure, and a close as an end`() throws {
        try onLoop { loop in
            var server: [TestSocket] = []
            let listener = try Listener(anyPort, on: loop) { connection, _ in
                let socket = TestSocket(adopting: connection, on: loop)
                server.append(socket)
                // Not before the client has seen that it is connected.
                socket.onReadable = { [isFirst = server.count == 1] socket in
                    let buffer = ByteBuffer(capacity: 16)
                    _ = socket.read(into: buffer, minimum: 16)
                    if isFirst { socket.close() } else { socket.abort() }
                }
                socket.startReading()
            }
            var results: [ReadResult] = []
            var clients: [TestSocket] = []
            func connect() throws(SystemError) {
                let client = try TestSocket(connectingTo: listener.localAddress, on: loop)
                client.onConnected = { error in
                    #expect(error == nil)
                    let text = ByteSlice("x")
                    _ = client.write(text.span)
                    client.startReading()
                }
                client.onReadable = { socket in
                    let buffer = ByteBuffer(capacity: 16)
                    results.append(socket.read(into: buffer, minimum: 16))
                    socket.close()
                    if results.count == 2 { return loop.stop() }
                    do { try connect() } catch { Issue.record(error) }
                }
                clients.append(client)
            }
            try connect()
            loop.run()
            #expect(results == [.endOfStream, .failed(SystemError(.receive, code: ECONNRESET))])
            for client in clients { client.onConnected = { _ in } }
            loop.stop()
        }
    }

    @Test func `connecting to a port without a listener is refused`() throws {
        try onLoop { loop in
            // A port that was free a moment ago.
            let listener = try Listener(anyPort, on: loop) { _, _ in }
            let address = listener.localAddress
            listener.close()
            let client = try TestSocket(connectingTo: address, on: loop)
            var outcome: SystemError?
            client.onConnected = {
                outcome = $0; loop.stop()
            }
            loop.run()
            #expect(outcome == SystemError(.connect, code: ECONNREFUSED))
            #expect(outcome?.description == "connect: Connection refused")
            loop.stop()
        }
    }

    @Test func `connecting to a missing path fails at once`() throws {
        let loop = try EventLoop()
        #expect(throws: SystemError(.connect, code: ENOENT)) {
            try TestSocket(connectingTo: .unix(path: temporaryPath("nowhere")), on: loop)
        }
    }
}

/// `pieces` less their first `written` bytes.
private func unwritten(_ pieces: [ByteSlice], after written: Int) -> [ByteSlice] {
    var skipped = written
    return pieces.compactMap { piece in
        let part = min(skipped, piece.count)
        skipped -= part
        return part == piece.count ? nil : piece[part..<piece.count]
    }
}
