import Testing

@testable import Coalescing

/// The same for callers that `await`.
struct AsyncCallerTests {
    let manager = OperationQueueManager<String>()

    /// Waits until `count` wait for the operation under "a", which executes, without sleeping: the tasks get there by themselves.
    private func waiters(_ count: Int) async -> ManualOperation {
        while true {
            if let operation = manager.operation(for: "a", as: ManualOperation.self), operation.waiterCount == count,
                operation.calls.entries.contains("execute")
            {
                return operation
            }
            await Task.yield()
        }
    }

    @Test func `many tasks await one execution`() async throws {
        let tasks = (0..<10).map { _ in Task { try await manager.value(for: "a") { ManualOperation() } } }
        let operation = await waiters(10)
        operation.finish(.success(7))
        for task in tasks { #expect(try await task.value == 7) }
        #expect(operation.calls.entries == ["execute"])
    }

    @Test func `a cancelled task leaves, and the others get the value`() async throws {
        let staying = Task { try await manager.value(for: "a") { ManualOperation() } }
        let leaving = Task { try await manager.value(for: "a") { ManualOperation() } }
        let operation = await waiters(2)
        leaving.cancel()
        await #expect(throws: CancellationError.self) { try await leaving.value }
        #expect(operation.waiterCount == 1)
        operation.finish(.success(7))
        #expect(try await staying.value == 7)
    }

    @Test(arguments: [LastLeavePolicy.goOn, .cancel])
    func `when the only task is cancelled, the policy decides whether the operation goes on`(policy: LastLeavePolicy)
        async
    {
        let task = Task {
            try await manager.value(for: "a") {
                let operation = ManualOperation()
                operation.lastLeavePolicy = policy
                return operation
            }
        }
        let operation = await waiters(1)
        task.cancel()
        await #expect(throws: CancellationError.self) { try await task.value }
        #expect(operation.hasEnded == (policy == .cancel))
        operation.finish(.success(7))
        #expect(manager.snapshot.inFlight == 0)
    }

    @Test func `a task cancelled beforehand starts no operation`() async {
        let task = Task {
            while !Task.isCancelled { await Task.yield() }
            return try await manager.value(for: "a") { ManualOperation() }
        }
        task.cancel()
        await #expect(throws: CancellationError.self) { try await task.value }
        #expect(manager.snapshot.started == 0)
    }

    @Test func `an error of the work is thrown as it is, and cancellation as a CancellationError`() async {
        let failing = Task { try await manager.value(for: "a") { ManualOperation() } }
        await waiters(1).finish(.failure(Broken()))
        await #expect(throws: Broken.self) { try await failing.value }
        let cancelled = Task { try await manager.value(for: "a") { ManualOperation() } }
        await waiters(1).cancel()
        await #expect(throws: CancellationError.self) { try await cancelled.value }
        await #expect(throws: Broken.self) { try await manager.value(for: "a") { () -> Int in throw Broken() } }
    }

    @Test func `a kept result is found, and nothing starts`() async throws {
        #expect(try await manager.value(for: "a", unless: { 5 }, work: { 6 }) == 5)
        #expect(try await manager.value(for: "a", unless: { nil }, work: { 6 }) == 6)
        #expect(manager.snapshot.found == 1 && manager.snapshot.started == 1)
    }

    @Test func `a refusal is thrown to the task`() async {
        let operation = ManualOperation()
        operation.waiterLimit = 0
        _ = manager.enqueue("a", waiter: nil) { operation }
        await #expect(throws: Refusal.full) { try await manager.value(for: "a") { ManualOperation() } }
        operation.cancel()
    }

    @Test func `work given as a closure runs once, and is cancelled when the last task leaves`() async throws {
        let began = Log<Int>()
        let stopped = Log<Bool>()
        let tasks = (0..<3).map { _ in
            Task {
                try await manager.value(for: "a") { () -> Int in
                    began.append(1)
                    while !Task.isCancelled { await Task.yield() }
                    stopped.append(true)
                    throw CancellationError()
                }
            }
        }
        while manager.operation(for: "a", as: WorkOperation<TaskWork<Int>>.self)?.waiterCount != 3 {
            await Task.yield()
        }
        while began.entries.isEmpty { await Task.yield() }
        for task in tasks { task.cancel() }
        for task in tasks { await #expect(throws: CancellationError.self) { try await task.value } }
        while stopped.entries.isEmpty { await Task.yield() }
        #expect(began.entries == [1])
        #expect(manager.snapshot.cancelled == 1)
    }
}
