import Bytes
import Glibc
import Libevent
import LoopTesting
import Testing

/// How long the iterations of a loop took.
@Suite(.timeLimit(.minutes(10))) struct IterationTimeTests {
    private static func monotonic() -> Int64 {
        var time = timespec()
        unsafe clock_gettime(CLOCK_MONOTONIC, &time)
        return Int64(time.tv_sec) * second + Int64(time.tv_nsec)
    }

    private static func work(for nanoseconds: Int64) {
        let end = monotonic() + nanoseconds
        while monotonic() < end {}
    }

    /// How many took longer than 25 ms.
    private static func long(_ times: DurationCounts) -> UInt64 {
        times.count - (times.upToBounds[DurationCounts.bounds.firstIndex(of: 25_000_000) ?? 0])
    }

    @Test(arguments: ["timer", "job", "socket"])
    func `the time of an iteration includes its work`(by means: String) throws {
        var times = DurationCounts()
        var sockets: [TestSocket] = []
        try onLoop { loop in
            func work() {
                Self.work(for: 30 * millisecond)
                loop.schedule(after: millisecond) {
                    times = loop.iterationTimes
                    loop.stop()
                }
            }
            switch means {
            case "timer": loop.schedule(after: 0, work)
            case "job":
                let bound = LoopBound(work, on: loop)
                loop.handle.post { bound.value() }
            default:
                let (one, other) = socketPair(on: loop)
                sockets = [one, other]
                one.onReadable = {
                    $0.stopReading()
                    work()
                }
                one.startReading()
                _ = other.write([1].span)
            }
        }
        withExtendedLifetime(sockets) {}
        #expect(Self.long(times) == 1 && times.sum >= UInt64(30 * millisecond))
    }

    @Test func `the time of an iteration does not include the wait before it`() throws {
        let began = Self.monotonic()
        var times = DurationCounts()
        try onLoop { loop in
            loop.schedule(after: 0) {
                loop.schedule(after: 100 * millisecond) {
                    loop.schedule(after: 0) {
                        times = loop.iterationTimes
                        loop.stop()
                    }
                }
            }
        }
        let elapsed = Self.monotonic() - began
        // The timer's clock is up to 4 ms off, and others may take the processor from the loop.
        #expect(times.count >= 2 && elapsed - Int64(times.sum) >= 50 * millisecond)
    }

    @Test func `the wall clock follows the monotonic clock, also between its readings`() throws {
        try onLoop { loop in
            func difference() -> Int64 {
                var time = timespec()
                unsafe clock_gettime(CLOCK_REALTIME, &time)
                let now = Int64(time.tv_sec) * 1000 + Int64(time.tv_nsec) / millisecond
                return now - loop.wallClockMilliseconds
            }
            var left = 30
            func look() {
                // The loop's is that of the beginning of the iteration; a machine may be busy elsewhere in between.
                #expect((-1...1000).contains(difference()))
                #expect(loop.wallClockSeconds == loop.wallClockMilliseconds / 1000)
                left -= 1
                if left == 0 { loop.stop() } else { loop.schedule(after: millisecond, look) }
            }
            look()
        }
    }
}
