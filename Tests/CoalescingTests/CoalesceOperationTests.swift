import Testing

@testable import Coalescing

/// An operation that was made with its waiters is taken in by the one in flight.
struct CoalesceOperationTests {
    let manager = OperationQueueManager<String>()
    let log = Log<Outcome>()

    private func operation(_ identifier: String = "a") -> ManualOperation {
        let operation = ManualOperation(identifier)
        _ = operation.join(.logging(to: log))
        return operation
    }

    @Test func `one of two coalesced operations executes and serves the waiters of both`() {
        let (first, second) = (operation(), operation())
        #expect(manager.enqueue(operation: first).isStarted)
        #expect(manager.enqueue(operation: second).operation === first)
        first.finish(.success(7))
        #expect(log.entries == [.value(7), .value(7)])
        #expect(second.calls.entries.isEmpty)
        #expect(second.phase == .finished)
    }

    @Test func `a streamed value reaches the waiters of both operations`() {
        let (first, second) = (operation(), operation())
        first.start()
        #expect(first.coalesce(operation: second))
        first.deliver(3)
        #expect(log.entries == [.value(3), .value(3)])
        #expect(second.phase == .executing)
        first.finish()
        #expect(second.phase == .finished)
    }

    @Test func `an operation coalesced after the value serves its waiters at once`() {
        let (first, second) = (operation(), operation())
        first.start()
        first.deliver(3)
        #expect(first.coalesce(operation: second))
        #expect(log.entries == [.value(3), .value(3)])
    }

    @Test func `a failure reaches the waiters of both operations`() {
        let (first, second) = (operation(), operation())
        first.start()
        #expect(first.coalesce(operation: second))
        first.cancel()
        #expect(log.entries == [.failure("cancelled"), .failure("cancelled")])
        #expect(second.phase == .cancelled)
    }

    @Test func `cancelling the coalesced operation leaves the executing one alone`() {
        let (first, second) = (operation(), operation())
        first.start()
        #expect(first.coalesce(operation: second))
        second.cancel()
        #expect(log.entries == [.failure("cancelled")])
        #expect(first.waiterCount == 1)
        #expect(second.calls.entries.isEmpty)
        first.finish(.success(1))
        #expect(log.entries == [.failure("cancelled"), .value(1)])
    }

    @Test func `an operation cancelled while being coalesced leaves the executing one afterwards`() {
        let (first, second) = (ManualOperation("a"), operation())
        first.lastLeavePolicy = .cancel
        #expect(manager.enqueue(operation: first).isStarted)
        guard case .joined(let seat) = first.absorb(second) else {
            Issue.record("not taken in")
            return
        }
        second.cancel()
        #expect(first.phase == .executing)
        second.follow(first, token: first.token(for: seat))
        #expect(first.phase == .cancelled)
        #expect(manager.operations.isEmpty)
        #expect(log.entries == [.failure("cancelled")])
    }

    @Test func `a finished operation coalesces no other`() {
        let (first, second) = (operation(), operation())
        first.start()
        first.finish(.success(1))
        #expect(!first.coalesce(operation: second))
        second.start()
        #expect(second.calls.entries == ["execute"])
    }

    @Test func `operations for different work are not coalesced`() {
        let first = operation()
        #expect(!first.coalesce(operation: operation("b")))
        #expect(!first.coalesce(operation: OtherOperation()))
        #expect(!first.coalesce(operation: first))
    }

    @Test func `an operation with an identifier of another type is refused`() {
        #expect(OperationQueueManager<Int>().enqueue(operation: ManualOperation()).refusal == .foreign)
    }
}
