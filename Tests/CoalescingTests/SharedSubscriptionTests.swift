import Testing

@testable import Coalescing

/// One waiter that stands for all callers of one queue, who take the same.
struct SharedSubscriptionTests {
    let log = Log<Outcome>()
    let queue = ManualQueue()
    let operation = ManualOperation()

    /// Joins on `queue`.
    private func join(
        _ operation: ManualOperation? = nil, on queue: ManualQueue? = nil, accepts: (Int) -> Bool = { _ in true },
        onlyAbove least: Int = .min
    ) -> ManualOperation.Joining {
        let (log, queue) = (log, queue ?? self.queue)
        return (operation ?? self.operation).join(on: queue, accepts: accepts) {
            .logging(to: log, on: queue, accepts: { $0 > least })
        }
    }

    @Test func `waiters that share a subscription are called once, and each counts`() throws {
        let tokens = try (0..<3).map { _ in try #require(join().token) }
        #expect(Set(tokens).count == 1)
        #expect(operation.waiterCount == 3)
        operation.start()
        operation.deliver(5)
        queue.run()
        #expect(log.entries == [.value(5)])
        #expect(operation.waiterCount == 3)
    }

    @Test func `each queue has a seat of its own, and so has a waiter that shares none`() throws {
        let other = ManualQueue()
        let tokens = try [
            join(), join(on: other), join(), operation.join(.logging(to: log, on: queue)), join(on: other),
        ]
        .map { try #require($0.token) }
        #expect(tokens[0] == tokens[2] && tokens[1] == tokens[4] && Set(tokens).count == 3)
        operation.start()
        operation.deliver(5)
        queue.run()
        other.run()
        #expect(log.entries == [.value(5), .value(5), .value(5)])
        #expect(operation.waiterCount == 5)
    }

    @Test func `a subscription ends when its last waiter leaves`() throws {
        operation.start()
        operation.lastLeavePolicy = .cancel
        let token = try #require(join().token)
        _ = join()
        #expect(operation.leave(token))
        #expect(operation.waiterCount == 1)
        operation.deliver(5)
        #expect(operation.phase == .executing)
        #expect(!operation.leave(token))
        #expect(operation.phase == .cancelled)
        #expect(operation.calls.entries == ["execute", "lastWaiterLeft", "cancelWork"])
        #expect(!operation.leave(token))
    }

    @Test func `who comes when the value is there shares the seat, and is not called back`() throws {
        let token = try #require(join().token)
        operation.start()
        operation.deliver(5)
        let late = join()
        #expect(late.isLate && late.token == token)
        #expect(join(accepts: { $0 > 10 }).refusal == .notAccepted)
        let first = join(on: ManualQueue())
        #expect(first.isLate && first.token != token)
        queue.run()
        #expect(log.entries == [.value(5)])
        #expect(operation.waiterCount == 3 && operation.value == 5)
    }

    @Test func `a subscription takes no waiter where the operation takes none`() throws {
        operation.waiterLimit = 3
        let token = try #require(join().token)
        for _ in 0..<2 { #expect(join().token == token) }
        #expect(join().refusal == .full)
        #expect(operation.join(.logging(to: log)).refusal == .full)
        operation.leave(token)
        #expect(join().token == token)
        operation.leave(token)
        operation.close()
        #expect(join().refusal == .closed)
        #expect(operation.waiterCount == 2)
    }

    @Test func `a token of another stay or another operation leaves no seat`() throws {
        let other = ManualOperation()
        let token = try #require(join().token)
        _ = join(other)
        #expect(!other.leave(token) && !operation.leave(.none))
        operation.leave(token)
        #expect(!operation.leave(token))
        let next = try #require(join().token)
        #expect(next != token && !operation.leave(token))
        #expect(operation.waiterCount == 1 && other.waiterCount == 1)
    }

    @Test func `all waiters of a subscription are released together`() throws {
        let token = try #require(join(onlyAbove: 10).token)
        _ = join()
        _ = operation.join(.logging(to: log, on: queue))
        operation.deliver(5)
        queue.run()
        #expect(log.entries == [.failure("released"), .value(5)])
        #expect(operation.waiterCount == 1)
        #expect(!operation.leave(token))
    }

    @Test func `a subscription has no waiters after the end of the operation`() throws {
        let token = try #require(join().token)
        _ = join()
        operation.start()
        operation.finish(.failure(Broken()))
        queue.run()
        #expect(log.entries == [.failure("failed")])
        #expect(operation.waiterCount == 0)
        #expect(!operation.leave(token))
    }

    @Test func `those at home are counted, and told by the work alone`() throws {
        let other = ManualQueue()
        let operation = ManualOperation(home: queue)
        operation.lastLeavePolicy = .cancel
        operation.start()
        let token = try #require(join(operation).token)
        #expect(join(operation).token == token)
        #expect(operation.waiterCount == 2)
        #expect(operation.stopWaiting(token), "as any other waiter")
        let elsewhere = try #require(join(operation, on: other).token)
        operation.deliver(5)
        #expect(join(operation).isLate)
        queue.run()
        #expect(log.entries.isEmpty)
        other.run()
        #expect(log.entries == [.value(5)])
        #expect(!operation.stopWaiting(token), "it has its value")
        #expect(!operation.leave(token) && !operation.leave(elsewhere))
        #expect(operation.phase == .executing && operation.waiterCount == 1)
        #expect(!operation.leave(token))
        #expect(operation.phase == .cancelled)
        #expect(!operation.leave(token), "once")
    }

    @Test func `one alone at home counts, and its leaving ends the work`() throws {
        let manager = OperationQueueManager<String>()
        let operation = ManualOperation(home: queue)
        operation.lastLeavePolicy = .cancel
        let token = try #require(manager.enqueueAloneAtHome(operation).token)
        #expect(operation.waiterCount == 1)
        #expect(join(operation).refusal == .closed)
        #expect(operation.leave(token))
        #expect(operation.phase == .cancelled && manager.snapshot.inFlight == 0)
    }

    @Test func `a waiter that joins the operation itself counts like one that joins through the manager`() throws {
        let manager = OperationQueueManager<String>()
        let (log, queue) = (log, queue)
        func enqueue() -> Enqueued<ManualOperation, Never> {
            manager.enqueue(
                "a", on: queue, accepts: { _ in true }, waiter: { _ in .logging(to: log, on: queue) },
                unless: { nil }, make: { operation })
        }
        let started = enqueue()
        guard case .started(_, let token) = started else { Issue.record("\(started)"); return }
        #expect(enqueue().token == token && join().token == token)
        operation.deliver(5)
        #expect(enqueue().isLate && join().isLate)
        operation.countReleased()
        let snapshot = manager.snapshot
        #expect(snapshot.joined == 2 && snapshot.joinedLate == 2 && snapshot.released == 1)
        #expect(operation.waiterCount == 5)
        operation.finish()
        #expect(operation.waiterCount == 0)
    }
}
