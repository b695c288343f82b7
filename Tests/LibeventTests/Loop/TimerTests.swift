import Glibc
import Libevent
import LoopTesting
import Testing

@Suite(.timeLimit(.minutes(10))) struct TimerTests {
    @Test func `timers run once, in the order of their delays`() throws {
        try onLoop { loop in
            var order: [Int] = []
            // From one callback: all three count from the same moment.
            loop.schedule(after: 0) {
                loop.schedule(after: 30 * millisecond) {
                    order.append(3); loop.stop()
                }
                loop.schedule(after: 10 * millisecond) { order.append(1) }
                loop.schedule(after: 20 * millisecond) { order.append(2) }
            }
            loop.run()
            #expect(order == [1, 2, 3])
            loop.stop()
        }
    }

    @Test func `a cancelled timer does not run and releases its action`() throws {
        try onLoop { loop in
            var held: Canary? = Canary()
            weak let canary = held
            let timer = loop.schedule(after: 1 * millisecond) { [held] in
                _ = held
                Issue.record("a cancelled timer ran")
            }
            held = nil
            timer.cancel()
            timer.cancel()
            #expect(canary == nil)
            loop.schedule(after: 20 * millisecond) { loop.stop() }
        }
    }

    @Test func `a repeating timer runs until its action cancels it`() throws {
        try onLoop { loop in
            var count = 0
            var timer: Timer?
            timer = loop.schedule(every: 2 * millisecond) {
                count += 1
                if count == 5 { timer?.cancel(); loop.schedule(after: 10 * millisecond) { loop.stop() } }
            }
            loop.run()
            #expect(count == 5)
            loop.stop()
        }
    }

    @Test func `a pending timer is released with its loop`() throws {
        weak var canary: Canary?
        do {
            let loop = try EventLoop()
            let held = Canary()
            canary = held
            loop.schedule(after: second) { _ = held }
            #expect(canary != nil)
        }
        #expect(canary == nil)
    }

    final class Canary {}
}
