import Testing

@testable import Coalescing

/// Work without a subclass.
struct WorkTests {
    let manager = OperationQueueManager<String>()
    let log = Log<Outcome>()
    let desk = Desk()

    private func enqueue(_ identifier: String = "a") -> Enqueued<WorkOperation<Errand>, Never> {
        manager.enqueue(identifier, waiter: .logging(to: log)) { Errand(desk: desk) }
    }

    /// Work that keeps its completion, as for a delegate.
    private final class Keeping: Work {
        let completion = Protected<Completion<Int>?>(nil)

        func begin(_ completion: Completion<Int>) { self.completion.withLock { $0 = completion } }
    }

    @Test func `work that keeps its completion is released when it has ended`() {
        weak var finished: Keeping?
        weak var cancelled: Keeping?
        do {
            let (first, second) = (Keeping(), Keeping())
            (finished, cancelled) = (first, second)
            _ = manager.enqueue("a", waiter: .logging(to: log)) { first }
            first.completion.withLock { $0 }?.finish(.success(1))
            manager.enqueue("b", waiter: .logging(to: log)) { second }.operation?.cancel()
        }
        #expect(log.entries.count == 2)
        #expect(finished == nil && cancelled == nil)
    }

    @Test func `a task that is cancelled before its first wait is cancelled`() async {
        let (manager, wasCancelled) = (manager, Log<Bool>())
        await #expect(throws: CancellationError.self) {
            try await manager.value(for: "a") {
                manager.cancelAll()
                await Task.yield()
                wasCancelled.append(Task.isCancelled)
            }
        }
        while wasCancelled.entries.isEmpty { await Task.yield() }
        #expect(wasCancelled.entries == [true])
    }

    @Test func `callers of one identifier and one type of work share it`() {
        let (first, second) = (enqueue(), enqueue())
        #expect(first.isStarted && second.isJoined && first.operation === second.operation)
        #expect(manager.enqueue("a", waiter: .logging(to: log)) { Forgotten() }.isStarted)
        desk.completion?.finish(.success(7))
        #expect(log.entries == [.failure("abandoned"), .value(7), .value(7)])
        #expect(desk.calls.entries == ["begin"])
        #expect(manager.operations.isEmpty)
    }

    @Test func `work is stopped when its last caller leaves`() throws {
        let (first, second) = (enqueue(), enqueue())
        #expect(try first.operation?.leave(#require(first.token)) == true)
        #expect(desk.calls.entries == ["begin"])
        #expect(try second.operation?.leave(#require(second.token)) == true)
        #expect(desk.calls.entries == ["begin", "stop"])
        #expect(desk.completion?.hasEnded == true && desk.completion?.finish(.success(1)) == false)
        #expect(log.entries.isEmpty)
    }

    /// The defect of a permit that cannot be copied: neither closure could consume it.
    @Test func `a completion is finished where the work ends, in an escaping closure or in a task`() async {
        _ = enqueue()
        let completion = desk.take()
        let later: @Sendable () -> Void = { [completion] in _ = completion?.finish(.success(1)) }
        later()
        _ = enqueue()
        let inTask = desk.take()
        await Task { _ = inTask?.finish(.success(2)) }.value
        #expect(log.entries == [.value(1), .value(2)])
    }

    @Test func `work whose completion is dropped is abandoned`() {
        #expect(manager.enqueue("a", waiter: .logging(to: log)) { Forgotten() }.isStarted)
        #expect(log.entries == [.failure("abandoned")])
        #expect(manager.operations.isEmpty)
    }

    @Test func `a value that grows is delivered, and ends later`() {
        _ = enqueue()
        desk.completion?.deliver(5)
        #expect(enqueue().isLate)
        #expect(log.entries == [.value(5), .value(5)])
        #expect(desk.completion?.finish() == true)
        #expect(manager.operations.isEmpty)
    }

    @Test func `work that waits for a slot begins when it has one, and not when it was cancelled before`() async {
        manager.maxConcurrent = 1
        _ = enqueue("a")
        let first = desk.take()
        let (cancelled, waiting) = (enqueue("b"), enqueue("c"))
        #expect(cancelled.operation?.phase == .ready)
        cancelled.operation?.cancel()
        #expect(desk.calls.entries == ["begin"])
        first?.finish(.success(1))
        while desk.completion == nil { await Task.yield() }
        #expect(desk.calls.entries == ["begin", "begin"] && waiting.operation?.phase == .executing)
        desk.take()?.finish(.success(2))
        #expect(log.entries == [.failure("cancelled"), .value(1), .value(2)])
        #expect(manager.snapshot.inFlight == 0)
    }

    /// The task of a leader must not wait for ever for a slot that never comes.
    @Test func `cancelled work that waited for its slot is released`() async {
        manager.maxConcurrent = 0
        weak var forgotten: WorkOperation<Errand>?
        do {
            let operation = enqueue("b").operation
            forgotten = operation
            operation?.cancel()
        }
        while forgotten != nil { await Task.yield() }
        #expect(desk.calls.entries.isEmpty)
    }
}

/// Work whose end is the test.
struct Errand: Work {
    let desk: Desk

    func begin(_ completion: Completion<Int>) {
        desk.calls.append("begin")
        desk.keep(completion)
    }

    func stop() { desk.calls.append("stop") }
}

/// Work that loses its completion.
struct Forgotten: Work {
    func begin(_ completion: Completion<Int>) {}
}

/// Where `Errand` leaves its completion.
final class Desk: Sendable {
    let calls = Log<String>()
    private let kept = Protected<Completion<Int>?>(nil)

    var completion: Completion<Int>? { kept.withLock { $0 } }

    func keep(_ completion: Completion<Int>) { kept.withLock { $0 = completion } }
    func take() -> Completion<Int>? { kept.withLock { $0.take() } }
}
