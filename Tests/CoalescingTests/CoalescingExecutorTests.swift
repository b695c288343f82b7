import Repeatable
import Testing

@testable import Coalescing
@testable import CoalescingPlaces

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

/// The first element at once, the later ones together.
struct FirstAtOnceTests {
    let clock = ManualClock()
    let acted = Log<[Int]>()
    let executor: CoalescingExecutor<[Int]>

    init() {
        executor = CoalescingExecutor(
            coalesceWait: .milliseconds(10), maxWait: .milliseconds(35), firstAtOnce: true, timers: clock,
            on: InlineQueue.shared, combine: { $0 += $1 }, act: { [acted] in acted.append($0) })
    }

    @Test func `the action runs at once on the first element, and after a quiet period on the later ones`() {
        executor.add([1])
        #expect(acted.entries == [[1]])
        executor.add([2])
        clock.advance(by: .milliseconds(9))
        executor.add([3])
        clock.advance(by: .milliseconds(9))
        #expect(acted.entries == [[1]])
        clock.advance(by: .milliseconds(1))
        #expect(acted.entries == [[1], [2, 3]])
    }

    @Test func `an element alone costs no timer`() {
        for number in 0..<3 {
            executor.add([number])
            clock.advance(by: .milliseconds(10))
        }
        #expect(acted.entries == [[0], [1], [2]] && clock.scheduled == 0)
    }

    @Test func `an element soon after the last action belongs to the burst`() {
        executor.add([1])
        executor.add([2])
        clock.advance(by: .milliseconds(10))
        #expect(acted.entries == [[1], [2]])
        clock.advance(by: .milliseconds(9))
        executor.add([3])
        #expect(acted.entries.count == 2)
        clock.advance(by: .milliseconds(10))
        #expect(acted.entries == [[1], [2], [3]])
    }

    @Test func `in an endless burst the longest wait lies between two actions`() {
        for number in 0..<100 {
            executor.add([number])
            clock.advance(by: .milliseconds(1))
        }
        #expect(acted.entries == [[0], Array(1..<35), Array(35..<70)])
    }

    @Test func `the pause begins when the action has ended`() {
        let executor = CoalescingExecutor<Int>(
            coalesceWait: .milliseconds(10), maxWait: .milliseconds(35), firstAtOnce: true, timers: clock,
            on: InlineQueue.shared, combine: { $0 += $1 },
            act: { [acted, clock] in
                acted.append([$0])
                clock.advance(by: .milliseconds(50))
            })
        executor.add(1)
        executor.add(2)
        #expect(acted.entries == [[1]], "it came while the first action ran, as far as the executor can tell")
        clock.advance(by: .milliseconds(10))
        #expect(acted.entries == [[1], [2]])
    }

    @Test func `elements that come while the action waits in its queue are gathered`() {
        let queue = ManualQueue()
        let executor = CoalescingExecutor<[Int]>(
            coalesceWait: .milliseconds(10), maxWait: .milliseconds(35), firstAtOnce: true, timers: clock, on: queue,
            combine: { $0 += $1 }, act: { [acted] in acted.append($0) })
        for number in 1...3 { executor.add([number]) }
        queue.run()
        #expect(acted.entries == [[1]])
        clock.advance(by: .milliseconds(10))
        queue.run()
        #expect(acted.entries == [[1], [2, 3]])
    }

    @Test func `a flush and a cancellation are for the gathered elements`() {
        executor.add([1])
        executor.add([2])
        executor.flush()
        #expect(acted.entries == [[1], [2]])
        executor.add([3])
        #expect(executor.cancel() == [3])
        clock.advance(by: .seconds(1))
        #expect(acted.entries == [[1], [2]])
        executor.add([4])
        #expect(acted.entries == [[1], [2], [4]])
    }

    @Test func `elements gathered when the executor is released are acted on`() {
        do {
            let executor = CoalescingExecutor<[Int]>(
                coalesceWait: .seconds(1), maxWait: .seconds(1), firstAtOnce: true, timers: clock,
                on: InlineQueue.shared, combine: { $0 += $1 }, act: { [acted] in acted.append($0) })
            executor.add([1])
            executor.add([2])
        }
        #expect(acted.entries == [[1], [2]])
    }
}

/// Random events, against a list of rules that looks at every millisecond.
struct ExecutorModelTests {
    private struct Model {
        let (wait, most): (Int, Int)
        let firstAtOnce: Bool
        var now = 0
        var gathered: [Int] = []
        var first = 0
        var latest = 0
        var lastAction: Int?
        var actions: [Action] = []

        /// What was acted on, and when, in milliseconds.
        struct Action: Equatable {
            let time: Int
            let elements: [Int]
        }

        mutating func advance(by milliseconds: Int) {
            for _ in 0..<milliseconds {
                now += 1
                actIfDue()
            }
        }

        private mutating func actIfDue() {
            let begin = firstAtOnce ? lastAction ?? first : first
            if !gathered.isEmpty, now >= latest + wait || now >= begin + most { act() }
        }

        mutating func add(_ element: Int) {
            let isFirst = gathered.isEmpty
            gathered.append(element)
            latest = now
            if isFirst { first = now }
            let pause = min(wait, most)
            if firstAtOnce, isFirst, lastAction.map({ now >= $0 + pause }) ?? true { act() }
        }

        mutating func act() {
            guard !gathered.isEmpty else { return }
            actions.append(Action(time: now, elements: gathered))
            cancel()
        }

        mutating func cancel() {
            guard !gathered.isEmpty else { return }
            gathered = []
            lastAction = now
        }
    }

    @Test(arguments: Rounds.seeds(300)) func `any order of events`(seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        let (wait, most) = (Int.random(in: 1...12, using: &random), Int.random(in: 1...40, using: &random))
        var model = Model(wait: wait, most: most, firstAtOnce: seed % 2 == 0)
        let clock = ManualClock()
        let acted = Log<Model.Action>()
        let executor = CoalescingExecutor<[Int]>(
            coalesceWait: .milliseconds(wait), maxWait: .milliseconds(most), firstAtOnce: seed % 2 == 0, timers: clock,
            on: InlineQueue.shared, combine: { $0 += $1 },
            act: { acted.append(Model.Action(time: Int(clock.now / .milliseconds(1)), elements: $0)) })
        for number in 0..<200 {
            switch Int.random(in: 0..<20, using: &random) {
            case 0:
                executor.flush()
                model.act()
            case 1:
                #expect(executor.cancel() ?? [] == model.gathered)
                model.cancel()
            case 2..<12:
                executor.add([number])
                model.add(number)
            default:
                let step = Int.random(in: 1...Int.random(in: 1...20, using: &random), using: &random)
                clock.advance(by: .milliseconds(step))
                model.advance(by: step)
            }
        }
        #expect(acted.entries == model.actions)
        #expect(acted.entries.count > 5)
    }
}

/// Time passes, but no timer ever fires.
private final class StoppedTimers: TimerSource {
    private let time = Protected(Duration.zero)
    var now: Duration { time.withLock { $0 } }
    func schedule(after delay: Duration, _ fire: @escaping @Sendable () -> Void) {}
    func advance(by step: Duration) { time.withLock { $0 += step } }
}
