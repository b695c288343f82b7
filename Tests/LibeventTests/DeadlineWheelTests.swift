import Libevent
import LoopTesting
import Testing

/// The wheel on a loop.
@Suite(.timeLimit(.minutes(1))) struct DeadlineWheelTests {
    final class Target: DeadlineTarget {
        var reached: () -> Int64? = { nil }
        override func deadlineReached() -> Int64? { reached() }
    }

    @Test func `a deadline never comes before its time`() throws {
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

    @Test func `a target that was active meanwhile sets its deadline again by its answer`() throws {
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

    @Test func `a deadline cancelled while it is reached is not set again, whatever the answer`() throws {
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

    @Test func `a finished loop lets go of the targets of its deadlines`() throws {
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
}
