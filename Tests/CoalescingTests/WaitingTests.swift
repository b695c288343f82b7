import Testing

@testable import Coalescing

/// What a waiter may rely on.
struct WaitingTests {
    let log = Log<Outcome>()
    let operation = ManualOperation()

    @Test func `every waiter gets the one value`() {
        for _ in 0..<3 { _ = operation.join(.logging(to: log)) }
        operation.start()
        operation.finish(.success(7))
        #expect(log.entries == [.value(7), .value(7), .value(7)])
    }

    @Test func `no waiter is called twice, however often the operation ends`() {
        _ = operation.join(.logging(to: log))
        operation.start()
        let ends = [operation.finish(.success(7)), operation.finish(.failure(Broken())), operation.cancel()]
        #expect(ends == [true, false, false])
        #expect(log.entries == [.value(7)])
        #expect(operation.phase == .finished)
    }

    @Test func `cancelling calls every waiter and stops the work`() {
        for _ in 0..<2 { _ = operation.join(.logging(to: log)) }
        operation.start()
        operation.cancel()
        #expect(log.entries == [.failure("cancelled"), .failure("cancelled")])
        #expect(operation.calls.entries == ["execute", "cancelWork"])
        #expect(operation.phase == .cancelled)
    }

    @Test func `an operation cancelled before it begins never executes`() {
        operation.cancel()
        operation.start()
        #expect(operation.calls.entries.isEmpty)
    }

    @Test func `an operation cancelled inside execute is stopped after execute returns`() {
        let log = Log<String>()
        let operation = ManualOperation { operation in
            operation.cancel()
            log.append("still executing, ended: \(operation.hasEnded), stopped: \(operation.calls.entries.count > 1)")
        }
        operation.start()
        #expect(log.entries == ["still executing, ended: true, stopped: false"])
        #expect(operation.calls.entries == ["execute", "cancelWork"])
    }

    @Test func `an error reaches the waiter with its cause`() throws {
        let errors = Log<OperationError>()
        _ = operation.join(Waiter(on: InlineQueue.shared) { if case .failure(let error) = $0 { errors.append(error) } })
        operation.start()
        operation.finish(.failure(Broken()))
        guard case .failed(let cause) = try #require(errors.entries.first) else { throw Broken() }
        #expect(cause is Broken)
        #expect(operation.error?.name.description == "failed")
    }

    @Test func `a waiter that left before the end is never called`() throws {
        let token = try #require(operation.join(.logging(to: log)).token)
        _ = operation.join(.logging(to: log))
        #expect(operation.leave(token))
        #expect(!operation.leave(token))
        operation.start()
        operation.finish(.success(7))
        #expect(log.entries == [.value(7)])
    }

    /// The decision falls with `finish`, not with the call: between the two `leave` says false and the callback comes.
    @Test func `a waiter that leaves between decision and call is called, and leave returns false`() throws {
        let queue = ManualQueue()
        let token = try #require(operation.join(.logging(to: log, on: queue)).token)
        operation.start()
        operation.finish(.success(7))
        #expect(log.entries.isEmpty)
        #expect(!operation.leave(token))
        queue.run()
        #expect(log.entries == [.value(7)])
    }

    @Test func `a token is valid for its own operation only`() throws {
        let other = ManualOperation()
        _ = operation.join(.logging(to: log))
        let token = try #require(other.join(.logging(to: log)).token)
        #expect(!operation.leave(token))
        #expect(!operation.leave(.none))
        #expect(operation.waiterCount == 1)
    }

    @Test func `a token is valid for its own wait only`() throws {
        let first = try #require(operation.join(.logging(to: log)).token)
        #expect(operation.leave(first))
        _ = operation.join(.logging(to: log))
        #expect(!operation.leave(first))
        #expect(operation.waiterCount == 1)
    }

    @Test func `a finished operation takes no waiter`() {
        operation.start()
        operation.finish(.success(1))
        #expect(operation.join(.logging(to: log)).refusal == .finished)
    }

    @Test func `when the last waiter leaves, the operation is notified and goes on`() throws {
        operation.start()
        let tokens = (0..<2).compactMap { _ in operation.join(.logging(to: log)).token }
        operation.leave(tokens[0])
        #expect(operation.calls.entries == ["execute"])
        operation.leave(tokens[1])
        #expect(operation.calls.entries == ["execute", "lastWaiterLeft"])
        #expect(operation.phase == .executing)
    }

    @Test func `when the last waiter leaves, the operation is cancelled if its policy says so`() throws {
        operation.lastLeavePolicy = .cancel
        operation.start()
        let token = try #require(operation.join(.logging(to: log)).token)
        #expect(operation.leave(token))
        #expect(operation.calls.entries == ["execute", "lastWaiterLeft", "cancelWork"])
        #expect(operation.phase == .cancelled)
        #expect(log.entries.isEmpty)
    }

    @Test func `an operation without waiters can be cancelled by a later policy`() throws {
        operation.start()
        let token = try #require(operation.join(.logging(to: log)).token)
        #expect(!operation.cancelIfUnattended())
        operation.leave(token)
        operation.lastLeavePolicy = .cancel
        #expect(operation.phase == .executing)
        #expect(operation.cancelIfUnattended())
        #expect(operation.phase == .cancelled)
    }

    @Test func `a closed operation serves its waiters and takes no others`() {
        _ = operation.join(.logging(to: log))
        #expect(operation.close())
        #expect(!operation.close())
        #expect(operation.join(.logging(to: log)).refusal == .closed)
        operation.start()
        operation.finish(.success(3))
        #expect(log.entries == [.value(3)])
    }

    @Test func `a full operation takes no waiter until one leaves`() throws {
        operation.waiterLimit = 1
        let token = try #require(operation.join(.logging(to: log)).token)
        #expect(operation.join(.logging(to: log)).refusal == .full)
        operation.leave(token)
        #expect(operation.join(.logging(to: log)).token != nil)
    }
}
