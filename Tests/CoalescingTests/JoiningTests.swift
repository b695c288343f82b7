import Testing

@testable import Coalescing

/// `enqueue` joins or starts, as one step.
struct JoiningTests {
    let manager = OperationQueueManager<String>()
    let log = Log<Outcome>()

    private func enqueue(_ identifier: String = "a", accepts: (@Sendable (Int) -> Bool)? = nil) -> Enqueued<
        ManualOperation, Never
    > {
        manager.enqueue(identifier, waiter: .logging(to: log, accepts: accepts)) { ManualOperation(identifier) }
    }

    @Test func `the second caller joins the operation that the first started`() throws {
        let first = enqueue()
        let second = manager.enqueue("a", waiter: .logging(to: log)) { () -> ManualOperation in
            Issue.record("made without need")
            return ManualOperation()
        }
        #expect(first.isStarted)
        #expect(second.isJoined)
        #expect(first.operation === second.operation)
        first.operation?.finish(.success(7))
        #expect(log.entries == [.value(7), .value(7)])
        #expect(first.operation?.calls.entries == ["execute"])
    }

    @Test func `after the end, the next caller starts a new operation`() {
        let first = enqueue().operation
        first?.finish(.success(1))
        let second = enqueue()
        #expect(second.isStarted)
        #expect(second.operation !== first)
    }

    @Test func `a caller that asks again from its callback starts a new operation`() {
        let again = Log<Bool>()
        let waiter = Waiter<Int>(on: InlineQueue.shared) { [manager, log] _ in
            again.append(manager.enqueue("a", waiter: .logging(to: log)) { ManualOperation() }.isStarted)
        }
        manager.enqueue("a", waiter: waiter) { ManualOperation() }.operation?.finish(.success(1))
        #expect(again.entries == [true])
        #expect(manager.operation(for: "a", as: ManualOperation.self)?.phase == .executing)
    }

    /// Whoever asked for "a" would get the value of "b".
    @Test func `an operation made with another identifier than requested is refused`() {
        let enqueued = manager.enqueue("a", waiter: .logging(to: log)) { ManualOperation("b") }
        #expect(enqueued.refusal == .foreign)
        #expect(log.entries.isEmpty)
        #expect(manager.snapshot.inFlight == 0)
        #expect(enqueue("a").isStarted)
    }

    @Test func `an operation without an identifier is joined under the requested one`() {
        let (first, second) = (NamelessOperation(), NamelessOperation())
        #expect(manager.enqueue("a", waiter: .logging(to: log)) { first }.isStarted)
        #expect(manager.enqueue("a", waiter: .logging(to: log)) { second }.operation === first)
        #expect(manager.enqueue(operation: second).refusal == .foreign)
    }

    @Test func `different identifiers start different operations`() {
        #expect(enqueue("a").isStarted)
        #expect(enqueue("b").isStarted)
    }

    @Test func `the same identifier of another class starts another operation`() {
        let first = enqueue()
        let second = manager.enqueue("a", waiter: .logging(to: log)) { OtherOperation() }
        #expect(first.isStarted)
        #expect(second.isStarted)
        #expect(manager.operation(for: "a", as: OtherOperation.self) === second.operation)
        #expect(manager.operation(for: "a", as: ManualOperation.self) === first.operation)
    }

    @Test func `a found value neither joins nor starts an operation`() {
        let first = enqueue()
        let second = manager.enqueue("a", waiter: .logging(to: log), unless: { 42 }) { ManualOperation() }
        guard case .found(42) = second else { Issue.record("\(second)"); return }
        #expect(first.operation?.waiterCount == 1)
        #expect(manager.snapshot.found == 1)
    }

    @Test func `an operation without waiters executes and can be joined`() {
        let refresh = manager.enqueue("a", waiter: nil, priority: .background) { ManualOperation() }
        #expect(refresh.token == WaiterToken.none)
        #expect(enqueue().isJoined)
        refresh.operation?.finish(.success(2))
        #expect(log.entries == [.value(2)])
    }

    @Test func `a late caller gets the value at once`() {
        enqueue().operation?.deliver(5)
        #expect(enqueue().isLate)
        #expect(log.entries == [.value(5), .value(5)])
        #expect(manager.snapshot.joinedLate == 1)
    }

    @Test func `a late caller that does not accept the value starts a new operation, and the first goes on`() {
        let first = enqueue().operation
        first?.deliver(5)
        let second = enqueue(accepts: { $0 > 10 })
        #expect(second.isStarted)
        #expect(enqueue().operation === second.operation)
        first?.finish()
        #expect(manager.operation(for: "a", as: ManualOperation.self) === second.operation)
        #expect(manager.snapshot.replaced == 1)
    }

    @Test func `a closed operation is replaced`() {
        let first = enqueue().operation
        first?.close()
        let second = enqueue()
        #expect(second.isStarted)
        first?.finish(.success(1))
        second.operation?.finish(.success(2))
        #expect(log.entries == [.value(1), .value(2)])
        #expect(manager.snapshot.replaced == 1)
        #expect(manager.snapshot.inFlight == 0)
    }

    @Test func `an operation made closed serves only the waiter that it was made for`() {
        let first = manager.enqueue("a", waiter: .logging(to: log)) { () -> ManualOperation in
            let operation = ManualOperation()
            operation.close()
            return operation
        }
        #expect(first.isStarted)
        #expect(enqueue().isStarted)
        first.operation?.finish(.success(1))
        #expect(log.entries == [.value(1)])
    }

    @Test func `a full operation is not replaced, and the refusal names it`() {
        let first = enqueue().operation
        first?.waiterLimit = 1
        guard case .refused(.full, let by) = enqueue() else { Issue.record("let in"); return }
        #expect(by === first)
        #expect(manager.snapshot.refused == 1)
    }

    @Test func `a full operation is replaced if the caller asks for that, and takes no more waiters`() throws {
        let first = try #require(enqueue().operation)
        first.waiterLimit = 1
        func next() -> Enqueued<ManualOperation, Never> {
            manager.enqueue("a", waiter: .logging(to: log), replacesFull: true, unless: { nil }) {
                ManualOperation("a")
            }
        }
        let second = next()
        #expect(second.isStarted && second.operation !== first)
        #expect(next().operation === second.operation)
        first.waiterLimit = 9
        #expect(first.join(.logging(to: log)).refusal == .closed)
        #expect(manager.snapshot.replaced == 1 && manager.snapshot.refused == 0)
        first.finish(.success(1))
        second.operation?.finish(.success(2))
        #expect(log.entries == [.value(1), .value(2), .value(2)])
    }

    @Test func `an operation that was used before is refused`() {
        let used = ManualOperation()
        used.start()
        #expect(manager.enqueue("a", waiter: .logging(to: log)) { used }.refusal == .foreign)
        #expect(manager.snapshot.inFlight == 0)
        #expect(manager.snapshot.queued == 0)
    }

    /// Fails if the name holds the class of the operation and not the type that the call names.
    @Test func `a closure may return operations of several classes, which callers that name their base class join`() {
        func enqueue(_ other: Bool) -> Enqueued<ManualOperation, Never> {
            manager.enqueue("a", waiter: .logging(to: log)) { other ? OtherOperation() : ManualOperation() }
        }
        let first = enqueue(true)
        #expect(first.isStarted && first.operation is OtherOperation)
        #expect(enqueue(false).operation === first.operation)
        #expect(manager.operation(for: "a", as: ManualOperation.self) === first.operation)
        #expect(manager.operation(for: "a", as: OtherOperation.self) == nil)
        first.operation?.finish(.success(1))
        #expect(log.entries == [.value(1), .value(1)])
        #expect(manager.operations.isEmpty)
    }

    /// While the old one is still inside `execute()`, the next is found by all but does not begin.
    @Test func `two executions of one identifier never overlap, even if the first is cancelled early`() {
        let order = Log<String>()
        let manager = manager
        let first = manager.enqueue("a", waiter: .logging(to: log)) {
            ManualOperation { operation in
                operation.cancel()
                let second = manager.enqueue("a", waiter: nil) {
                    ManualOperation { _ in order.append("second begins") }
                }
                order.append("second is \(second.operation.map { "\($0.phase)" } ?? "missing")")
                order.append("first returns")
            }
        }
        #expect(order.entries == ["second is pending", "first returns", "second begins"])
        #expect(first.operation?.calls.entries == ["execute", "cancelWork"])
        #expect(log.entries == [.failure("cancelled")])
    }

    /// The second waits for the first to be stopped and is itself cancelled meanwhile: the third must not forget the
    /// first.
    @Test func `an operation waits for work that is being stopped, even if one before it was cancelled`() {
        let manager = manager
        let order = Log<String>()
        let begin: @Sendable (ManualOperation) -> Void = { _ in order.append("third begins") }
        _ = manager.enqueue("a", waiter: nil) { () -> ManualOperation in
            ManualOperation { first in
                first.cancel()
                manager.enqueue("a", waiter: nil) { ManualOperation() }.operation?.cancel()
                _ = manager.enqueue("a", waiter: nil) { ManualOperation(onExecute: begin) }
                order.append("first returns")
            }
        }
        #expect(order.entries == ["first returns", "third begins"])
        #expect(manager.snapshot.inFlight == 1)
    }

    /// Between the last leave and the end of the work there is a moment; who comes then must not be cancelled with
    /// those who left.
    @Test func `a caller during the stop of abandoned work starts an operation that begins later`() {
        let order = Log<String>()
        let (manager, log) = (manager, log)
        let first = manager.enqueue("a", waiter: .logging(to: log)) { () -> ManualOperation in
            let operation = ManualOperation(onLastLeave: {
                let second = manager.enqueue("a", waiter: .logging(to: log)) { () -> ManualOperation in
                    ManualOperation { operation in
                        order.append("second begins")
                        operation.finish(.success(2))
                    }
                }
                order.append("started: \(second.isStarted), \(second.operation?.phase ?? .finished)")
            })
            operation.lastLeavePolicy = .cancel
            return operation
        }
        if let token = first.token { first.operation?.leave(token) }
        #expect(order.entries == ["started: true, pending", "second begins"])
        #expect(first.operation?.calls.entries == ["execute", "lastWaiterLeft", "cancelWork"])
        #expect(log.entries == [.value(2)])
    }

    @Test func `all operations can be cancelled at once`() {
        _ = enqueue("a")
        _ = enqueue("b")
        #expect(manager.operations.count == 2)
        manager.cancelAll()
        #expect(manager.operations.isEmpty)
        #expect(log.entries == [.failure("cancelled"), .failure("cancelled")])
        #expect(manager.snapshot.cancelled == 2)
    }

    @Test func `the counters match the events`() {
        let first = enqueue()
        _ = enqueue(accepts: { _ in false })
        #expect(manager.snapshot.inFlight == 1)
        first.operation?.deliver(1)
        first.operation?.finish()
        enqueue().operation?.finish(.failure(Broken()))
        var expected = OperationQueueSnapshot()
        (expected.started, expected.joined, expected.released, expected.finished, expected.failed) = (2, 1, 1, 1, 1)
        #expect(manager.snapshot == expected)
    }
}
