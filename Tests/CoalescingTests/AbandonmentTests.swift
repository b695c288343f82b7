import Testing

@testable import Coalescing

/// Nobody hangs because somebody forgot.
struct AbandonmentTests {
    let log = Log<Outcome>()

    @Test func `dropping an operation fails its waiters`() {
        do {
            let operation = ManualOperation()
            _ = operation.join(.logging(to: log))
            operation.start()
        }
        #expect(log.entries == [.failure("abandoned")])
    }

    @Test func `dropping an operation fails its dependents`() {
        let dependent = ManualOperation()
        do {
            let dependency = ManualOperation()
            dependent.addDependency(dependency)
        }
        dependent.start()
        #expect(dependent.error?.name.description == "dependency")
    }

    @Test func `dropping an operation fails the waiters of operations coalesced into another`() {
        let inner = ManualOperation()
        _ = inner.join(.logging(to: log))
        do {
            let outer = ManualOperation()
            outer.start()
            #expect(outer.coalesce(operation: inner))
        }
        #expect(log.entries == [.failure("abandoned")])
    }

    @Test func `dropping the completion fails the waiters although the manager keeps the operation`() {
        let manager = OperationQueueManager<String>()
        let enqueued = manager.enqueue("a", waiter: .logging(to: log)) {
            ManualOperation { operation in _ = Completion(operation) }
        }
        #expect(log.entries == [.failure("abandoned")])
        #expect(enqueued.operation?.hasEnded == true)
        #expect(manager.snapshot.inFlight == 0)
    }

    @Test func `a completion that has finished does nothing when dropped`() {
        let operation = ManualOperation()
        _ = operation.join(.logging(to: log))
        operation.start()
        Completion(operation).finish(.success(4))
        #expect(log.entries == [.value(4)])
    }

    @Test func `a manager releases operations that have ended`() {
        weak var forgotten: ManualOperation?
        let manager = OperationQueueManager<String>()
        do {
            let operation = ManualOperation()
            forgotten = operation
            _ = manager.enqueue("a", waiter: .logging(to: log)) { operation }
            manager.addAlias(operation, for: "b")
            operation.finish(.success(1))
        }
        #expect(forgotten == nil)
    }
}
