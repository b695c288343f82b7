import Glibc
import LoopTesting
import Testing

@testable import Libevent

/// The wheel on a loop.
@Suite(.timeLimit(.minutes(10))) struct DeadlineWheelTests {
    final class Target: DeadlineTarget {
        var reached: () -> Int64? = { nil }
        override func deadlineReached() -> Int64? { reached() }
    }

    @Test func `a deadline never fires before its time`() throws {
        try onLoop { loop in
            let target = Target()
            let time = loop.now + 120 * millisecond
            _ = loop.deadlines.arm(target, at: time)
            target.reached = {
                #expect(loop.now >= time)
                loop.stop()
                return nil
            }
            loop.run()
            #expect(loop.deadlines.count == 0)
            loop.stop()
        }
    }

    @Test func `a target that was active meanwhile renews its deadline by its return value`() throws {
        try onLoop { loop in
            let target = Target()
            var times: [Int64] = []
            let deadline = loop.deadlines.arm(target, at: loop.now)
            target.reached = {
                times.append(loop.now)
                if times.count == 3 { loop.stop() }
                return loop.now + 1
            }
            loop.run()
            #expect(times.count == 3)
            #expect(loop.deadlines.count == 1)
            loop.deadlines.cancel(deadline)
            #expect(loop.deadlines.count == 0)
            loop.stop()
        }
    }

    @Test func `a deadline cancelled while firing is not renewed, whatever the return value`() throws {
        try onLoop { loop in
            let target = Target()
            let deadline = loop.deadlines.arm(target, after: 0)
            target.reached = {
                loop.deadlines.cancel(deadline)
                loop.stop()
                return loop.now + second
            }
            loop.run()
            #expect(loop.deadlines.count == 0)
            loop.stop()
        }
    }

    /// Targets whose deadlines come together, and what is to happen as each is reached.
    private func targets(
        _ count: Int, on loop: EventLoop, _ reached: @escaping (_ number: Int) -> Void
    ) -> [(target: Target, deadline: Deadline)] {
        (0..<count).map { number in
            let target = Target()
            target.reached = {
                reached(number)
                return nil
            }
            return (target, loop.deadlines.arm(target, at: loop.now))
        }
    }

    @Test func `a share of simultaneous deadlines fires in each iteration, each once and in order`() throws {
        let count = 3 * DeadlineWheel.Settings.share + 1
        var order: [Int] = []
        var iterations: [Int64] = []
        try onLoop { loop in
            _ = targets(count, on: loop) { number in
                order.append(number)
                iterations.append(loop.now)
                // Later ones come while these are not all reached: behind them.
                if number < 2 { _ = targets(1, on: loop) { _ in order.append(count + number) } }
            }
            let last = Target()
            last.reached = {
                if order.count == count + 2 { loop.stop() }
                return loop.now
            }
            _ = loop.deadlines.arm(last, at: loop.now)
        }
        #expect(order == Array(0..<count + 2))
        let shares = Dictionary(grouping: iterations) { $0 }.values.map(\.count)
        #expect(shares.allSatisfy { $0 <= DeadlineWheel.Settings.share }, "\(shares)")
    }

    @Test func `a deadline that is due can be cancelled or moved until it fires`() throws {
        let share = DeadlineWheel.Settings.share
        var order: [Int] = []
        try onLoop { loop in
            var all: [(target: Target, deadline: Deadline)] = []
            all = targets(share + 3, on: loop) { number in
                order.append(number)
                if number == share - 1 {
                    loop.deadlines.cancel(all[share].deadline)
                    loop.deadlines.move(all[share + 1].deadline, to: loop.now)
                }
                if number == share + 1 { loop.stop() }
            }
        }
        #expect(order == Array(0..<share) + [share + 2, share + 1])
    }

    @Test func `a loop that ends fires no more of the due deadlines`() throws {
        let share = DeadlineWheel.Settings.share
        var reached = 0
        weak var gone: Target?
        try onLoop { loop in
            gone =
                targets(2 * share, on: loop) { _ in
                    reached += 1
                    loop.stop()
                }.last?.target
        }
        #expect(reached == share)
        #expect(gone == nil)
    }

    @Test func `a finished loop releases the targets of its deadlines`() throws {
        weak var gone: TestSocket?
        try onLoop { loop in
            let (left, right) = socketPair(on: loop)
            gone = left
            _ = loop.deadlines.arm(left, after: 3600 * second)
            right.close()
            loop.stop()
        }
        #expect(gone == nil)
    }

    // MARK: Jumps of the clock

    /// More sockets than one wait tells of.
    private static let crowd = 200

    /// Sockets that all have something to read when the loop has been held up, for longer than `EventLoop.Jump.least`.
    private func heldUp(_ loop: EventLoop, _ read: @escaping (_ index: Int) -> Void) -> [TestSocket] {
        let pairs = (0..<Self.crowd).map { _ in socketPair(on: loop) }
        for (index, (near, _)) in pairs.enumerated() {
            near.onReadable = { socket in
                socket.stopReading()
                read(index)
            }
            near.startReading()
        }
        let byte: [UInt8] = [1]
        loop.atIterationEnd {
            for (_, far) in pairs { _ = far.write(byte.span) }
            usleep(1_000_000)
        }
        return pairs.flatMap { [$0.0, $0.1] }
    }

    @Test func `after a jump of the clock, sockets are read before a deadline fires`() throws {
        try onLoop { loop in
            var (read, reached) = (0, 0)
            let targets = targets(Self.crowd, on: loop) { _ in reached += 1 }
            let sockets = heldUp(loop) { index in
                loop.deadlines.cancel(targets[index].deadline)
                read += 1
                if read == Self.crowd { loop.stop() }
            }
            loop.run()
            #expect(read == Self.crowd && reached == 0)
            for socket in sockets { socket.close() }
            loop.stop()
        }
    }

    @Test func `after a jump of the clock, sockets are read before a timer fires`() throws {
        try onLoop { loop in
            var (read, readBefore) = (0, -1)
            let sockets = heldUp(loop) { _ in read += 1 }
            loop.schedule(after: millisecond) {
                readBefore = read
                loop.stop()
            }
            loop.run()
            #expect(readBefore == Self.crowd)
            for socket in sockets { socket.close() }
            loop.stop()
        }
    }

    @Test func `a loop that is always delayed fires its deadlines all the same`() throws {
        try onLoop { loop in
            var iterations = 0
            let target = Target()
            target.reached = {
                loop.stop()
                return nil
            }
            _ = loop.deadlines.arm(target, after: 100 * millisecond)
            func holdUp() {
                iterations += 1
                usleep(600_000)
                loop.atIterationEnd(holdUp)
            }
            loop.atIterationEnd(holdUp)
            loop.run()
            #expect(iterations <= 4)
            loop.stop()
        }
    }
}
