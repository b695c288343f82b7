import Testing

@testable import Coalescing

/// Those who want to know.
struct ObserverTests {
    let notices = Log<String>()

    private var note: @Sendable (OperationObserver.Notice) -> Void {
        { [notices] in notices.append("\($0.phase)" + ($0.error.map { " \($0.name)" } ?? "")) }
    }

    @Test func `an observer is called for each phase`() {
        let operation = ManualOperation()
        operation.add(OperationObserver(notify: note))
        operation.start()
        operation.finish(.success(1))
        #expect(notices.entries == ["ready", "executing", "finished"])
    }

    @Test func `an observer is called for the phases that it chose, with the error`() {
        let operation = ManualOperation()
        operation.add(OperationObserver(of: .finished, notify: note))
        operation.start()
        operation.finish(.failure(Broken()))
        #expect(notices.entries == ["finished failed"])
    }

    @Test func `an observer is called on its own queue`() {
        let queue = ManualQueue()
        let operation = ManualOperation()
        operation.add(OperationObserver(of: .finished, .cancelled, on: queue, notify: note))
        operation.cancel()
        #expect(notices.entries.isEmpty)
        queue.run()
        #expect(notices.entries == ["cancelled cancelled"])
    }

    @Test func `an observer added after the end is called for the end`() {
        let operation = ManualOperation()
        operation.cancel()
        operation.add(OperationObserver(notify: note))
        #expect(notices.entries == ["cancelled cancelled"])
    }

    @Test func `a manager's observer is called for all operations of the manager`() {
        let manager = OperationQueueManager<String>(
            observers: [OperationObserver(of: .finished, .cancelled, notify: note)])
        manager.enqueue("a", waiter: nil) { ManualOperation() }.operation?.finish(.success(1))
        _ = manager.enqueue(plain: PlainOperation { $0.finish() })
        manager.enqueue("b", waiter: nil) { ManualOperation("b") }.operation?.cancel()
        #expect(notices.entries == ["finished", "finished", "cancelled cancelled"])
    }

    @Test func `an observer may call the operation and the manager`() {
        let manager = OperationQueueManager<String>()
        let operation = manager.enqueue("a", waiter: nil) { ManualOperation() }.operation
        let seen = Log<Int>()
        operation?.add(
            OperationObserver(of: .finished, .cancelled) { notice in
                notice.operation.cancel()
                seen.append(manager.enqueue("a", waiter: nil) { ManualOperation() }.isStarted ? 1 : 0)
            })
        operation?.finish(.success(1))
        #expect(seen.entries == [1])
    }

    @Test func `an unshared operation calls its own observer for every phase`() {
        let manager = OperationQueueManager<String>()
        let operation = ManualOperation("a")
        operation.add(OperationObserver(notify: note))
        #expect(manager.enqueueAloneAtHome(operation).isStarted)
        operation.finish(.success(1))
        #expect(notices.entries == ["ready", "executing", "finished"])
    }
}
