import Coalescing
import CoalescingPlaces
import Testing

/// The manual clock, and timers from any clock.
struct ClockTests {
    private let clock = ManualClock()
    private let rung = Log<String>()

    private func ring(_ name: String, after delay: Duration) {
        clock.timers.schedule(after: delay) { [rung, clock] in rung.append("\(name) at \(clock.timers.now)") }
    }

    @Test func `a manual clock's timers fire in the order of their times, each at its own`() {
        ring("c", after: .seconds(3))
        ring("a", after: .seconds(1))
        ring("b", after: .seconds(1))
        clock.advance(by: .milliseconds(999))
        #expect(rung.entries.isEmpty)
        clock.advance(by: .seconds(5))
        #expect(rung.entries == ["a at 1.0 seconds", "b at 1.0 seconds", "c at 3.0 seconds"])
        #expect(clock.timers.now == .milliseconds(5999))
        #expect(clock.waiting == 0)
    }

    @Test func `a timer that another one schedules fires in the same advance, if it is due`() {
        clock.timers.schedule(after: .seconds(1)) {
            ring("soon", after: .seconds(1))
            ring("later", after: .seconds(2))
        }
        clock.advance(by: .seconds(2))
        #expect(rung.entries == ["soon at 2.0 seconds"])
    }

    @Test func `a task sleeps until the clock has come to its time`() async throws {
        async let slept: Void = clock.sleep(for: .seconds(2))
        await sleepers(1)
        clock.advance(by: .seconds(1))
        #expect(clock.waiting == 1)
        clock.advance(by: .seconds(1))
        try await slept
        // That time is past.
        try await clock.sleep(until: clock.now)
    }

    @Test func `a cancelled task sleeps no longer`() async throws {
        let sleeping = Task { try await clock.sleep(for: .seconds(2)) }
        await sleepers(1)
        sleeping.cancel()
        await #expect(throws: CancellationError.self) { try await sleeping.value }
        #expect(clock.waiting == 0)
        let late = Task {
            while !Task.isCancelled { await Task.yield() }
            try await clock.sleep(for: .seconds(2))
        }
        late.cancel()
        await #expect(throws: CancellationError.self) { try await late.value }
    }

    @Test func `a burst ends by the timers of any clock`() async {
        let (bursts, act) = AsyncStream<[Int]>.makeStream()
        let executor = CoalescingExecutor(
            coalesceWait: .seconds(1), maxWait: .seconds(5), timers: ClockTimers(clock), on: InlineQueue.shared,
            combine: { $0 += $1 }, act: { act.yield($0) })
        executor.add([1])
        executor.add([2])
        await sleepers(1)
        clock.advance(by: .seconds(1))
        #expect(await bursts.first { _ in true } == [1, 2])
    }

    @Test func `the timers of a real clock fire not before their time`() async {
        let timers = ClockTimers(SuspendingClock())
        let (fired, fire) = AsyncStream<Duration>.makeStream()
        let began = timers.now
        timers.schedule(after: .milliseconds(2)) { fire.yield(timers.now) }
        let time = await fired.first { _ in true }
        #expect(time.map { $0 - began >= .milliseconds(2) } == true)
    }

    private func sleepers(_ count: Int) async {
        while clock.waiting != count { await Task.yield() }
    }
}
