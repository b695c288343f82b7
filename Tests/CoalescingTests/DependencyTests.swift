import Testing

@testable import Coalescing

/// Operations that wait for others.
struct DependencyTests {
    let log = Log<Outcome>()

    @Test func `an operation begins when all its dependencies have succeeded`() {
        let (first, second, last) = (ManualOperation("1"), ManualOperation("2"), ManualOperation("3"))
        last.addDependency(first)
        last.addDependency(second)
        for operation in [last, first, second] { operation.start() }
        first.finish(.success(1))
        #expect(last.phase == .pending)
        second.finish(.success(2))
        #expect(last.phase == .executing)
        #expect(first.value == 1)
    }

    @Test func `a finished dependency does not delay an operation`() {
        let (first, last) = (ManualOperation("1"), ManualOperation("2"))
        first.start()
        first.finish(.success(1))
        #expect(last.addDependency(first))
        last.start()
        #expect(last.phase == .executing)
    }

    @Test(arguments: [true, false])
    func `failure and cancellation of a dependency fail its dependents`(isCancelled: Bool) {
        let operations = ["1", "2", "3"].map { ManualOperation($0) }
        operations[1].addDependency(operations[0])
        operations[2].addDependency(operations[1])
        _ = operations[2].join(.logging(to: log))
        for operation in operations { operation.start() }
        if isCancelled { operations[0].cancel() } else { operations[0].finish(.failure(Broken())) }
        #expect(log.entries == [.failure("dependency")])
        #expect(operations[2].calls.entries.isEmpty)
        guard case .dependency(.dependency(let cause)) = operations[2].error else { Issue.record("no cause"); return }
        #expect(cause.name.description == (isCancelled ? "cancelled" : "failed"))
    }

    @Test func `a dependency on the end alone permits a failure`() {
        let (first, last) = (ManualOperation("1"), ManualOperation("2"))
        last.addDependency(first, rule: .end)
        last.start()
        first.start()
        first.finish(.failure(Broken()))
        #expect(last.phase == .executing)
    }

    @Test func `a cycle of dependencies is refused`() {
        let operations = ["1", "2", "3"].map { ManualOperation($0) }
        #expect(operations[1].addDependency(operations[0]))
        #expect(operations[2].addDependency(operations[1]))
        #expect(!operations[0].addDependency(operations[2]))
        #expect(!operations[0].addDependency(operations[0]))
    }

    @Test func `a started operation takes no dependency`() {
        let operation = ManualOperation()
        operation.start()
        #expect(!operation.addDependency(ManualOperation()))
    }

    @Test func `dependencies hold across managers, and an operation that waits for one takes no slot`() {
        let (resolvers, fetchers) = (
            OperationQueueManager<String>(maxConcurrent: 1), OperationQueueManager<String>(maxConcurrent: 1)
        )
        let resolve = resolvers.enqueue("host", waiter: nil) { ManualOperation("host") }.operation
        let fetch = ManualOperation("page")
        if let resolve { fetch.addDependency(resolve) }
        _ = fetchers.enqueue("page", waiter: .logging(to: log)) { fetch }
        let other = fetchers.enqueue("other", waiter: nil) { ManualOperation("other") }.operation
        #expect(fetch.phase == .pending)
        #expect(other?.phase == .executing)
        resolve?.finish(.success(1))
        #expect(fetch.phase == .ready)
        other?.finish(.success(1))
        #expect(fetch.phase == .executing)
        fetch.finish(.success(9))
        #expect(log.entries == [.value(9)])
    }

    @Test func `cancelling a dependent leaves its dependency alone`() {
        let manager = OperationQueueManager<String>()
        let (first, last) = (ManualOperation("1"), ManualOperation("2"))
        last.addDependency(first)
        _ = manager.enqueue("2", waiter: .logging(to: log)) { last }
        last.cancel()
        first.start()
        first.finish(.success(1))
        #expect(log.entries == [.failure("cancelled")])
        #expect(manager.snapshot.inFlight == 0)
    }
}
