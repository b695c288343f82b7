import Testing

@testable import Coalescing

/// One action for a burst.
struct CoalescingExecutorTests {
    let clock = ManualClock()
    let acted = Log<[Int]>()
    let executor: CoalescingExecutor<[Int]>

    init() {
        executor = CoalescingExecutor(
            coalesceWait: .milliseconds(10), maxWait: .milliseconds(35), timers: clock, on: InlineQueue.shared,
            combine: { $0 += $1 }, act: { [acted] in acted.append($0) })
    }

    @Test func `the action runs after a quiet period, on all elements together`() {
        for number in 1...3 { executor.add([number]) }
        clock.advance(by: .milliseconds(9))
        #expect(acted.entries.isEmpty)
        clock.advance(by: .milliseconds(1))
        #expect(acted.entries == [[1, 2, 3]])
    }

    @Test func `each element restarts the quiet period`() {
        executor.add([1])
        clock.advance(by: .milliseconds(8))
        executor.add([2])
        clock.advance(by: .milliseconds(9))
        #expect(acted.entries.isEmpty)
        clock.advance(by: .milliseconds(1))
        #expect(acted.entries == [[1, 2]])
    }

    @Test func `the action runs after the longest wait, however many elements come`() {
        for number in 0..<50 {
            executor.add([number])
            clock.advance(by: .milliseconds(1))
        }
        #expect(acted.entries == [Array(0..<35)])
        clock.advance(by: .milliseconds(20))
        #expect(acted.entries == [Array(0..<35), Array(35..<50)])
    }

    @Test func `a late timer does not delay the action further`() {
        let stopped = StoppedTimers()
        let executor = CoalescingExecutor<[Int]>(
            coalesceWait: .milliseconds(10), maxWait: .milliseconds(35), timers: stopped, on: InlineQueue.shared,
            combine: { $0 += $1 }, act: { [acted] in acted.append($0) })
        executor.add([1])
        stopped.advance(by: .milliseconds(35))
        executor.add([2])
        #expect(acted.entries == [[1, 2]])
    }

    @Test func `a burst sets one timer for each wait, not for each element`() {
        for number in 0..<1000 { executor.add([number]) }
        clock.advance(by: .milliseconds(10))
        #expect(clock.scheduled == 1)
        #expect(acted.entries.count == 1)
    }

    @Test func `a flush runs the action at once, and the timer of the flushed elements does nothing`() {
        executor.add([1])
        executor.flush()
        executor.flush()
        #expect(acted.entries == [[1]])
        clock.advance(by: .milliseconds(5))
        executor.add([2])
        clock.advance(by: .milliseconds(5))
        #expect(acted.entries == [[1]])
        clock.advance(by: .milliseconds(5))
        #expect(acted.entries == [[1], [2]])
    }

    @Test func `cancelling drops the gathered elements and nothing else`() {
        executor.add([1])
        #expect(executor.cancel() == [1])
        #expect(executor.cancel() == nil)
        clock.advance(by: .seconds(1))
        executor.add([2])
        clock.advance(by: .seconds(1))
        #expect(acted.entries == [[2]])
    }

    @Test func `the action runs on the given queue`() {
        let queue = ManualQueue()
        let executor = CoalescingExecutor<Int>(
            coalesceWait: .zero, maxWait: .zero, timers: clock, on: queue, combine: { $0 += $1 },
            act: { [acted] in acted.append([$0]) })
        executor.add(1)
        executor.add(2)
        clock.advance(by: .zero)
        #expect(acted.entries.isEmpty)
        queue.run()
        #expect(acted.entries == [[3]])
    }

    @Test func `elements gathered when the executor is released are acted on`() {
        do {
            let executor = CoalescingExecutor<[Int]>(
                coalesceWait: .seconds(1), maxWait: .seconds(1), timers: clock, on: InlineQueue.shared,
                combine: { $0 += $1 }, act: { [acted] in acted.append($0) })
            executor.add([1])
        }
        #expect(acted.entries == [[1]])
    }
}

/// Time passes, but no timer ever fires.
private final class StoppedTimers: TimerSource {
    private let time = Protected(Duration.zero)
    var now: Duration { time.withLock { $0 } }
    func schedule(after delay: Duration, _ fire: @escaping @Sendable () -> Void) {}
    func advance(by step: Duration) { time.withLock { $0 += step } }
}
