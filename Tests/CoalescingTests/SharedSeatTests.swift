import Testing

@testable import Coalescing

/// One waiter that stands for several, who live in one place and take the same.
struct SharedSeatTests {
    let log = Log<Outcome>()
    let operation = ManualOperation()

    @Test func `those who share a seat are called back once, and each of them counts`() throws {
        let token = try #require(operation.join(.logging(to: log)).token)
        #expect(operation.join(behind: token))
        #expect(operation.join(behind: token))
        #expect(operation.waiterCount == 3)
        operation.start()
        operation.deliver(5)
        #expect(log.entries == [.value(5)])
        #expect(operation.waiterCount == 3)
    }

    @Test func `the seat is given up when the last of them leaves`() throws {
        operation.start()
        operation.lastLeavePolicy = .cancel
        let token = try #require(operation.join(.logging(to: log)).token)
        #expect(operation.join(behind: token))
        #expect(operation.leave(token))
        #expect(operation.waiterCount == 1)
        operation.deliver(5)
        #expect(operation.phase == .executing)
        #expect(!operation.leave(token))
        #expect(operation.phase == .cancelled)
        #expect(operation.calls.entries == ["execute", "lastWaiterLeft", "cancelWork"])
        #expect(!operation.leave(token))
    }

    @Test func `nobody shares a seat once its waiter has its result`() throws {
        let queue = ManualQueue()
        let token = try #require(operation.join(.logging(to: log, on: queue)).token)
        operation.start()
        operation.deliver(5)
        // On its way already: who came now would not know whether it is called.
        #expect(log.entries.isEmpty)
        #expect(!operation.join(behind: token))
        #expect(operation.waiterCount == 1)
    }

    @Test func `a seat lets nobody in where the operation does not`() throws {
        operation.waiterLimit = 3
        let token = try #require(operation.join(.logging(to: log)).token)
        #expect(operation.join(behind: token))
        #expect(operation.join(behind: token))
        #expect(!operation.join(behind: token))
        #expect(operation.join(.logging(to: log)).refusal == .full)
        operation.leave(token)
        #expect(operation.join(behind: token))
        operation.leave(token)
        operation.close()
        #expect(!operation.join(behind: token))
        #expect(operation.waiterCount == 2)
    }

    @Test func `a token of another stay or another operation opens no seat`() throws {
        let other = ManualOperation()
        let token = try #require(operation.join(.logging(to: log)).token)
        #expect(!other.join(behind: token))
        #expect(!operation.join(behind: .none))
        operation.leave(token)
        #expect(!operation.join(behind: token))
        _ = operation.join(.logging(to: log))
        #expect(!operation.join(behind: token))
        #expect(operation.waiterCount == 1)
    }

    @Test func `all of a seat are released together`() throws {
        let token = try #require(operation.join(.logging(to: log, accepts: { $0 > 10 })).token)
        #expect(operation.join(behind: token))
        _ = operation.join(.logging(to: log))
        operation.deliver(5)
        #expect(log.entries == [.failure("released"), .value(5)])
        #expect(operation.waiterCount == 1)
        #expect(!operation.leave(token))
    }

    @Test func `nobody is left when it ends`() throws {
        let token = try #require(operation.join(.logging(to: log)).token)
        #expect(operation.join(behind: token))
        operation.start()
        operation.finish(.failure(Broken()))
        #expect(log.entries == [.failure("failed")])
        #expect(operation.waiterCount == 0)
        #expect(!operation.leave(token))
    }

    @Test func `whoever joins the operation itself is counted like those who come by the manager`() throws {
        let manager = OperationQueueManager<String>()
        let started = manager.enqueue("a", waiter: .logging(to: log), make: { operation })
        guard case .started = started else { Issue.record("\(started)"); return }
        let token = try #require(operation.join(.logging(to: log)).token)
        #expect(operation.join(behind: token))
        operation.deliver(5)
        _ = operation.join(.logging(to: log))
        operation.countReleased()
        let snapshot = manager.snapshot
        #expect(snapshot.joined == 2 && snapshot.joinedLate == 1 && snapshot.released == 1)
        #expect(operation.waiterCount == 4)
        operation.finish()
        #expect(operation.waiterCount == 0)
    }
}
