import Testing

@testable import Coalescing

/// Those who want to know.
struct ObserverTests {
    let notices = Log<String>()

    private func observer(
        of phases: OperationObserver.Phases = .all, on queue: (any CallbackQueue)? = nil
    ) -> OperationObserver {
        OperationObserver(of: phases, on: queue) { [notices] notice in
            notices.append("\(notice.phase)" + (notice.error.map { " \($0.name)" } ?? ""))
        }
    }

    @Test func `an observer is called for each phase`() {
        let operation = ManualOperation()
        operation.add(observer())
        operation.start()
        operation.finish(.success(1))
        #expect(notices.entries == ["ready", "executing", "finished"])
    }

    @Test func `an observer is called for the phases that it chose, with the error`() {
        let operation = ManualOperation()
        operation.add(observer(of: .finished))
        operation.start()
        operation.finish(.failure(Broken()))
        #expect(notices.entries == ["finished failed"])
    }

    @Test func `an observer is called on its own queue`() {
        let queue = ManualQueue()
        let operation = ManualOperation()
        operation.add(observer(of: .ended, on: queue))
        operation.cancel()
        #expect(notices.entries.isEmpty)
        queue.run()
        #expect(notices.entries == ["cancelled cancelled"])
    }

    @Test func `an observer added after the end is called for the end`() {
        let operation = ManualOperation()
        operation.cancel()
        operation.add(observer())
        #expect(notices.entries == ["cancelled cancelled"])
    }

    @Test func `a manager's observer is called for all operations of the manager`() {
        var settings = OperationQueueManager<String>.Settings()
        settings.observers = [observer(of: .ended)]
        let manager = OperationQueueManager<String>(settings: settings)
        manager.enqueue("a", waiter: nil) { ManualOperation() }.operation?.finish(.success(1))
        manager.enqueue(plain: PlainOperation { $0.finish() })
        manager.enqueue("b", waiter: nil) { ManualOperation("b") }.operation?.cancel()
        #expect(notices.entries == ["finished", "finished", "cancelled cancelled"])
    }

    @Test func `an observer may call the operation and the manager`() {
        let manager = OperationQueueManager<String>()
        let operation = manager.enqueue("a", waiter: nil) { ManualOperation() }.operation
        let seen = Log<Int>()
        operation?.add(
            OperationObserver(of: .ended) { notice in
                notice.operation.cancel()
                seen.append(manager.enqueue("a", waiter: nil) { ManualOperation() }.isStarted ? 1 : 0)
            })
        operation?.finish(.success(1))
        #expect(seen.entries == [1])
    }

    @Test func `an unshared operation calls its own observer for every phase`() {
        let manager = OperationQueueManager<String>()
        let operation = ManualOperation("a")
        operation.add(observer())
        #expect(manager.enqueueAloneAtHome(operation).isStarted)
        operation.finish(.success(1))
        #expect(notices.entries == ["ready", "executing", "finished"])
    }
}
