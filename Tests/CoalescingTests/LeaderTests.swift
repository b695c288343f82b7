import Synchronization
import Testing

@testable import Coalescing

/// Work runs for whoever led, and never for another: a trace goes to its own request.
struct LeaderTests {
    @TaskLocal static var request = "none"

    /// Every queued caller's slot is freed by another's work.
    @Test func `work runs with the task-local values of the caller that led, whoever freed its slot`() async throws {
        let manager = OperationQueueManager<Int>(maxConcurrent: 1)
        try await withThrowingTaskGroup(of: (Int, String).self) { group in
            for number in 0..<200 {
                group.addTask {
                    try await Self.$request.withValue("request \(number)") {
                        (
                            number,
                            try await manager.value(for: number) {
                                await Task.yield()
                                return Self.request
                            }
                        )
                    }
                }
            }
            for try await (number, seen) in group { #expect(seen == "request \(number)") }
        }
        #expect(manager.snapshot.inFlight == 0)
    }

    @Test func `work that is a type of its own, and the tasks that it makes, have the leader's values too`()
        async throws
    {
        let manager = OperationQueueManager<Int>(maxConcurrent: 1)
        try await withThrowingTaskGroup(of: (Int, String).self) { group in
            for number in 0..<200 {
                group.addTask {
                    try await Self.$request.withValue("request \(number)") {
                        (number, try await manager.value(for: number) { Asking() })
                    }
                }
            }
            for try await (number, seen) in group {
                #expect(seen == "request \(number) request \(number)")
            }
        }
    }

    @Test func `work that waited for its slot has the priority of its leader`() async throws {
        let manager = OperationQueueManager<Int>(maxConcurrent: 1)
        let desk = Desk()
        _ = manager.enqueue(0, waiter: nil) { Errand(desk: desk) }
        let task = Task(priority: .low) {
            try await manager.value(for: 1) { Task.basePriority == .low }
        }
        while manager.snapshot.queued == 0 { await Task.yield() }
        desk.take()?.finish(.success(1))
        #expect(try await task.value)
    }

    private struct Asking: Work {
        func begin(_ completion: Completion<String>) {
            let here = LeaderTests.request
            Task { completion.finish(.success("\(here) \(LeaderTests.request)")) }
        }
    }

    /// The callbacks of the one before go out before its slot is free.
    @Test func `a caller that asks one after the other is never refused, with one slot and no queue`() async throws {
        let manager = OperationQueueManager<Int>(maxConcurrent: 1, maxQueued: 0)
        for number in 0..<2_000 {
            #expect(try await manager.value(for: number % 2) { number } == number)
        }
        for number in 0..<20_000 {
            let value = try await manager.value(for: 0) {
                await Task.yield()
                return number
            }
            #expect(value == number)
        }
        #expect(manager.snapshot.refused == 0)
    }

    @Test
    func
        `a caller that asks again from its callback, with one slot and no queue, is let in, and the stack does not grow`()
    {
        let manager = OperationQueueManager<Int>(maxConcurrent: 1, maxQueued: 0)
        let last = Arrivals()
        @Sendable func ask(_ number: Int) {
            let waiter = Waiter<Int>(on: InlineQueue.shared) { _ in
                last.count.store(number, ordering: .relaxed)
                if number < 100_000 { ask(number + 1) }
            }
            _ = manager.enqueue(number, waiter: waiter) { Prompt(value: number) }
        }
        ask(1)
        #expect(last.count.load(ordering: .relaxed) == 100_000)
        #expect(manager.snapshot.inFlight == 0)
    }

    @Test func `callers of one operation on several queues may ask again from their callbacks, too`() {
        let manager = OperationQueueManager<Int>(maxConcurrent: 1, maxQueued: 0)
        let (arrivals, queue) = (Arrivals(), ManualQueue())
        let again = Waiter<Int>(on: InlineQueue.shared) { _ in
            let next = Waiter<Int>(on: InlineQueue.shared) {
                arrivals.count.store((try? $0.get()) ?? 0, ordering: .relaxed)
            }
            _ = manager.enqueue(2, waiter: next) { Prompt(value: 2) }
        }
        let first = manager.enqueue(1, waiter: again) { CoalescibleOperation<Int>() }
        _ = manager.enqueue(1, waiter: Waiter(on: queue) { _ in }) { CoalescibleOperation<Int>() }
        first.operation?.finish(.success(1))
        queue.run()
        #expect(arrivals.count.load(ordering: .relaxed) == 2 && manager.snapshot.refused == 0)
    }

    /// An operation that finishes inside `execute()`.
    private final class Prompt: CoalescibleOperation<Int>, @unchecked Sendable {
        let result: Int

        init(value: Int) {
            result = value
            super.init()
        }

        override func execute() { finish(.success(result)) }
    }

    /// On one actor, the methods of all operations of the process would run one after another.
    @Test func `an async method of a subclass runs on no actor`() async throws {
        #expect(try await OperationQueueManager<Int>().value(for: 1) { Meeting() } == 1)
    }

    private final class Arrivals: Sendable { let count = Atomic(0) }

    private final class Meeting: CoalescibleOperation<Int>, @unchecked Sendable {
        override func execute() { Task { await meet() } }

        func meet() async {
            let actor = #isolation
            finish(.success(actor == nil ? 1 : 0))
        }
    }
}
