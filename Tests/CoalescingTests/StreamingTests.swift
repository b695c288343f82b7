import Testing

@testable import Coalescing

/// A value that goes on growing after it was handed out.
struct StreamingTests {
    let log = Log<Outcome>()
    let operation = ManualOperation()

    init() { operation.start() }

    @Test func `the value is delivered while the operation goes on`() {
        _ = operation.join(.logging(to: log))
        #expect(operation.deliver(5))
        #expect(log.entries == [.value(5)])
        #expect(operation.phase == .executing)
        #expect(operation.value == 5)
    }

    @Test func `a late joiner gets the value at once`() {
        operation.deliver(5)
        #expect(operation.join(.logging(to: log)).isLate)
        #expect(log.entries == [.value(5)])
    }

    @Test func `a value is delivered once`() {
        _ = operation.join(.logging(to: log))
        operation.deliver(5)
        #expect(!operation.deliver(6))
        operation.finish(.success(7))
        #expect(log.entries == [.value(5)])
        #expect(operation.value == 5)
    }

    @Test(arguments: [true, false])
    func `a failure after the value ends the operation and calls no waiter`(isCancelled: Bool) {
        _ = operation.join(.logging(to: log))
        operation.deliver(5)
        if isCancelled { operation.cancel() } else { operation.finish(.failure(Broken())) }
        #expect(log.entries == [.value(5)])
        #expect(operation.phase == (isCancelled ? .cancelled : .finished))
        #expect(operation.join(.logging(to: log)).refusal == .finished)
    }

    @Test func `waiters that do not accept the value are released together, the others are served`() {
        let served = Log<Outcome>()
        let released = Log<Outcome>()
        let queue = ManualQueue()
        _ = operation.join(.logging(to: served, on: queue))
        for _ in 0..<3 { _ = operation.join(.logging(to: released, on: queue, accepts: { $0 > 10 })) }
        _ = operation.join(.logging(to: served, on: queue, accepts: { $0 < 10 }))
        operation.deliver(5)
        queue.run()
        #expect(served.entries == [.value(5), .value(5)])
        #expect(released.entries == [.failure("released"), .failure("released"), .failure("released")])
        #expect(operation.waiterCount == 2)
        #expect(queue.wakeUps == 1)
    }

    @Test func `a late joiner that does not accept the value is refused`() {
        operation.deliver(5)
        #expect(operation.join(.logging(to: log, accepts: { _ in false })).refusal == .notAccepted)
        #expect(log.entries.isEmpty)
        #expect(operation.waiterCount == 0)
    }

    @Test func `a value that comes with the end is checked like any other`() {
        _ = operation.join(.logging(to: log, accepts: { $0 > 10 }))
        _ = operation.join(.logging(to: log))
        operation.finish(.success(5))
        #expect(log.entries == [.failure("released"), .value(5)])
    }

    @Test func `served waiters are followers until they leave`() throws {
        let tokens = (0..<2).compactMap { _ in operation.join(.logging(to: log)).token }
        operation.lastLeavePolicy = .cancel
        operation.deliver(5)
        #expect(operation.waiterCount == 2)
        #expect(!operation.leave(tokens[0]))
        #expect(!operation.leave(tokens[0]))
        #expect(operation.phase == .executing)
        #expect(!operation.leave(tokens[1]))
        #expect(operation.phase == .cancelled)
        #expect(operation.calls.entries == ["execute", "lastWaiterLeft", "cancelWork"])
    }

    @Test func `a late joiner counts as a follower`() throws {
        operation.lastLeavePolicy = .cancel
        operation.deliver(5)
        let token = try #require(operation.join(.logging(to: log)).token)
        #expect(operation.waiterCount == 1)
        operation.leave(token)
        #expect(operation.phase == .cancelled)
    }

    @Test func `an operation that ends without a value is abandoned`() {
        _ = operation.join(.logging(to: log))
        operation.finish()
        #expect(log.entries == [.failure("abandoned")])
    }
}
