import Testing

@testable import Coalescing

/// A wait that is over ends, unless its result has been decided: then nothing is given up.
struct StopWaitingTests {
    /// How one who joins comes to the moment at which it is asked to stop.
    struct Stay: Sendable, CustomTestStringConvertible {
        let testDescription: String
        let isWaiting: Bool
        /// Who waits or follows afterwards.
        let left: Int
        /// What it, or who stayed, was called back with in the end.
        let called: Outcome?
        let begin: @Sendable (ManualOperation, Waiter<Int>, ManualQueue) -> WaiterToken?

        init(
            _ description: String, isWaiting: Bool = false, left: Int = 0, called: Outcome? = nil,
            begin: @escaping @Sendable (ManualOperation, Waiter<Int>, ManualQueue) -> WaiterToken?
        ) {
            testDescription = description
            self.isWaiting = isWaiting
            self.left = left
            self.called = called
            self.begin = begin
        }

        /// The same for one who joined first; `event` is what happens then.
        init(
            _ description: String, isWaiting: Bool = false, left: Int = 0, called: Outcome? = nil,
            after event: @escaping @Sendable (ManualOperation, WaiterToken) -> Void
        ) {
            self.init(description, isWaiting: isWaiting, left: left, called: called) { operation, waiter, _ in
                guard let token = operation.join(waiter).token else { return nil }
                event(operation, token)
                return token
            }
        }
    }

    static let stays = [
        Stay("it waits", isWaiting: true) { _, _ in },
        Stay("it waits, and nobody else is let in", isWaiting: true) { operation, _ in operation.close() },
        Stay("its value is on its way", left: 1, called: .value(5)) { operation, _ in operation.deliver(5) },
        Stay("it has its value", left: 1, called: .value(5)) { operation, waiter, queue in
            let token = operation.join(waiter).token
            operation.deliver(5)
            queue.run()
            return token
        },
        Stay("it joined late", left: 1, called: .value(5)) { operation, waiter, _ in
            operation.deliver(5)
            return operation.join(waiter).token
        },
        Stay("it is released", called: .failure("released")) { operation, _ in operation.deliver(50) },
        Stay("the work has ended with a value", called: .value(5)) { operation, _ in operation.finish(.success(5)) },
        Stay("the work has failed", called: .failure("failed")) { operation, _ in
            operation.finish(.failure(Broken()))
        },
        Stay("the operation is cancelled", called: .failure("cancelled")) { operation, _ in operation.cancel() },
        Stay("it has left") { operation, token in operation.leave(token) },
        Stay("it has stopped") { operation, token in _ = operation.stopWaiting(token) },
        Stay("another shares its seat, and both wait", isWaiting: true, left: 1, called: .value(5)) {
            operation, waiter, queue in
            _ = operation.join(on: queue, accepts: { _ in true }, waiter: { waiter })
            return operation.join(on: queue, accepts: { _ in true }, waiter: { waiter }).token
        },
        Stay("another shares its seat, and both are served", left: 2, called: .value(5)) { operation, waiter, queue in
            _ = operation.join(on: queue, accepts: { _ in true }, waiter: { waiter })
            let token = operation.join(on: queue, accepts: { _ in true }, waiter: { waiter }).token
            operation.deliver(5)
            return token
        },
        Stay("it is with another operation", left: 1, called: .value(5)) { operation, waiter, _ in
            _ = operation.join(waiter)
            return ManualOperation().join(.logging(to: Log())).token
        },
        Stay("it has no seat") { _, _, _ in WaiterToken.none },
    ]

    @Test(arguments: stays)
    func `stopping ends only a wait without result, and a served waiter loses nothing`(stay: Stay) throws {
        let log = Log<Outcome>()
        let queue = ManualQueue()
        let operation = ManualOperation()
        operation.start()
        let waiter = Waiter<Int>.logging(to: log, on: queue, accepts: { $0 < 10 })
        let token = try #require(stay.begin(operation, waiter, queue))
        #expect(operation.stopWaiting(token) == stay.isWaiting)
        #expect(operation.waiterCount == stay.left)
        operation.deliver(5)
        queue.run()
        #expect(log.entries == [stay.called].compactMap { $0 })
    }

    @Test func `the last waiter that stops ends the work, if the policy says so`() throws {
        let operation = ManualOperation()
        operation.lastLeavePolicy = .cancel
        operation.start()
        let token = try #require(operation.join(.logging(to: Log())).token)
        #expect(operation.stopWaiting(token))
        #expect(operation.phase == .cancelled)
        #expect(operation.calls.entries == ["execute", "lastWaiterLeft", "cancelWork"])
    }

    @Test func `work goes on if the last waiter stops after its value was decided`() throws {
        let queue = ManualQueue()
        let operation = ManualOperation()
        operation.lastLeavePolicy = .cancel
        operation.start()
        let token = try #require(operation.join(.logging(to: Log(), on: queue)).token)
        operation.deliver(5)
        #expect(!operation.stopWaiting(token))
        #expect(operation.phase == .executing)
        queue.run()
        // It has read what it wants.
        operation.leave(token)
        #expect(operation.phase == .cancelled)
    }

    @Test func `an operation that takes too long is closed, unless its value was delivered`() {
        let operation = ManualOperation()
        operation.start()
        #expect(operation.closeUnlessDelivered())
        #expect(!operation.closeUnlessDelivered(), "once")
        #expect(operation.join(.logging(to: Log())).refusal == .closed)
        let other = ManualOperation()
        other.start()
        other.deliver(5)
        #expect(!other.closeUnlessDelivered())
        #expect(other.join(.logging(to: Log())).token != nil)
        other.finish()
        #expect(!other.closeUnlessDelivered())
    }
}
