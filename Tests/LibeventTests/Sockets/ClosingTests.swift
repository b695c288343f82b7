import Bytes
import Glibc
import Libevent
import LoopTesting
import Testing

/// Many sockets that are closed at the same time.
@Suite(.timeLimit(.minutes(10))) struct ClosingTests {
    @Test func `the first sockets are closed at once, the rest in the next iterations, in order`() throws {
        try onLoop { loop in
            // Fewer than libevent hears of at a time.
            let pairs = (0..<20).map { _ in socketPair(on: loop) }
            var ended: [Int] = []
            for (index, (left, _)) in pairs.enumerated() {
                left.onReadable = { socket in
                    socket.close()
                    ended.append(index)
                    if ended.count == 20 { loop.stop() }
                }
                left.startReading()
            }
            var atOnce = -1
            loop.atIterationEnd {
                for (_, right) in pairs { right.close() }
                // Their ends are seen by now, or when their turn has come.
                loop.atIterationEnd { atOnce = ended.count }
            }
            loop.run()
            #expect(ended == Array(0..<20))
            #expect((1..<20).contains(atOnce))
            loop.stop()
        }
    }

    @Test func `a request that arrives while many clients leave does not wait for all of them`() throws {
        try onLoop { loop in
            let (asking, answering) = socketPair(on: loop)
            let pairs = (0..<100).map { _ in socketPair(on: loop) }
            var ended = 0
            var endedBefore = -1
            answering.onReadable = { _ in
                endedBefore = ended
                loop.stop()
            }
            answering.startReading()
            for (left, _) in pairs {
                left.onReadable = { socket in
                    socket.close(); ended += 1
                }
                left.startReading()
            }
            loop.atIterationEnd {
                for (_, right) in pairs { right.close() }
                _ = asking.write(ByteSlice("x").span)
            }
            loop.run()
            #expect((0..<100).contains(endedBefore))
            loop.stop()
        }
    }

    @Test func `connections that end by their deadlines are closed at once, however many they are`() throws {
        final class Idle: DeadlineTarget {
            let whenDue: () -> Void
            init(_ whenDue: @escaping () -> Void) { self.whenDue = whenDue }

            override func deadlineReached() -> Int64? {
                whenDue()
                return nil
            }
        }
        try onLoop { loop in
            let pairs = (0..<400).map { _ in socketPair(on: loop) }
            var (ended, seen, mostUnseen) = (0, 0, 0)
            for (left, right) in pairs {
                let idle = Idle {
                    left.close()
                    ended += 1
                    mostUnseen = max(mostUnseen, ended - seen)
                }
                _ = loop.deadlines.arm(idle, after: 0)
                right.onReadable = { socket in
                    socket.stopReading()
                    seen += 1
                    if seen == 400 { loop.stop() }
                }
                right.startReading()
            }
            loop.run()
            // Those of one iteration, and of the one before it.
            #expect(seen == 400 && mostUnseen <= 40)
            loop.stop()
        }
    }

    @Test func `a socket that waits to be closed is closed, however many come and go meanwhile`() throws {
        try onLoop { loop in
            let pairs = (0..<20).map { _ in socketPair(on: loop) }
            var ended = 0
            for (left, _) in pairs {
                left.onReadable = { socket in
                    socket.stopReading()
                    ended += 1
                }
                left.startReading()
            }
            var rounds = 0
            func comeAndGo() {
                for _ in 0..<2 {
                    let (one, other) = socketPair(on: loop)
                    one.close()
                    other.close()
                }
                rounds += 1
                if ended == 20 || rounds == 50 { loop.stop() } else { loop.atIterationEnd { comeAndGo() } }
            }
            loop.atIterationEnd {
                for (_, right) in pairs { right.close() }
                comeAndGo()
            }
            loop.run()
            #expect(ended == 20)
            loop.stop()
        }
    }

    @Test func `connections that come and go use no higher descriptors`() throws {
        try onLoop { loop in
            var rounds = 0
            var numbers: [Int32] = []
            func comeAndGo() {
                let pairs = (0..<50).map { _ in socketPair(on: loop) }
                for (one, other) in pairs {
                    one.close()
                    other.close()
                }
                let free = dup(0)
                numbers.append(free)
                _ = close(free)
                rounds += 1
                if rounds == 50 { loop.stop() } else { loop.atIterationEnd { comeAndGo() } }
            }
            loop.atIterationEnd { comeAndGo() }
            loop.run()
            // The lowest that is free. Other tests open some at the same time, but not thousands.
            #expect(numbers.count == 50 && (numbers.max() ?? .max) < (numbers.first ?? 0) + 1_000)
            loop.stop()
        }
    }

    @Test func `no socket stays open when the loop stops, and the peer of a closed socket sees the end`() throws {
        try onLoop { loop in
            let pairs = (0..<40).map { _ in socketPair(on: loop) }
            loop.atIterationEnd {
                for (_, right) in pairs { right.close() }
                loop.stop()
            }
            loop.run()
            var ends = 0
            for (left, _) in pairs {
                left.onReadable = { socket in
                    socket.close()
                    ends += 1
                    if ends == 40 { loop.stop() }
                }
                left.startReading()
            }
            loop.run()
            #expect(ends == 40)
            loop.stop()
        }
    }
}
