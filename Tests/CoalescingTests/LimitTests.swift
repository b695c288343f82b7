import Testing

@testable import Coalescing

/// The manager keeps to its limits.
struct LimitTests {
    let log = Log<Outcome>()
    let manager = OperationQueueManager<String>(maxConcurrent: 1, maxQueued: 2)

    private func enqueue(_ identifier: String, priority: OperationPriority = .normal) -> Enqueued<
        ManualOperation, Never
    > {
        manager.enqueue(identifier, waiter: .logging(to: log), priority: priority) { ManualOperation(identifier) }
    }

    @Test func `a streaming operation holds its slot until its end`() {
        let (first, second) = (enqueue("a").operation, enqueue("b").operation)
        first?.deliver(1)
        #expect(second?.phase == .ready)
        first?.finish()
        #expect(second?.phase == .executing)
    }

    @Test func `a queued operation is joined like a running one`() {
        _ = enqueue("a")
        _ = enqueue("b")
        #expect(enqueue("b").isJoined)
        #expect(manager.snapshot.queued == 1)
    }

    @Test func `beyond the queue limit, a new operation is refused and an existing one is joined`() {
        for name in ["a", "b", "c"] { #expect(enqueue(name).isStarted) }
        #expect(enqueue("d").refusal == .queueFull)
        #expect(enqueue("c").isJoined)
        #expect(manager.enqueue(plain: PlainOperation()).refusal == .queueFull)
    }

    @Test func `a waiter that is refused is never called`() {
        let refused = Log<Outcome>()
        let operations = ["a", "b", "c"].map { enqueue($0).operation }
        operations[0]?.waiterLimit = 1
        for name in ["a", "d"] {
            let enqueued = manager.enqueue(name, waiter: .logging(to: refused)) { ManualOperation(name) }
            #expect(enqueued.refusal == (name == "a" ? .full : .queueFull))
        }
        for operation in operations { operation?.finish(.success(1)) }
        #expect(refused.entries.isEmpty && log.entries.count == 3)
    }

    @Test func `an unshared operation waits for its slot, and is neither found nor joined`() {
        let alone = manager.enqueueAloneAtHome(ManualOperation("a"))
        #expect(alone.isStarted)
        #expect(manager.operation(for: "a", as: ManualOperation.self) == nil)
        let other = enqueue("a")
        #expect(other.isStarted)
        #expect(other.operation?.phase == .ready)
        #expect(manager.operations.count == 2)
        alone.operation?.finish(.success(1))
        #expect(log.entries.isEmpty)
        #expect(other.operation?.phase == .executing)
    }

    @Test func `an unshared operation beyond the queue limit is refused and never begins`() {
        for name in ["a", "b", "c"] { #expect(enqueue(name).isStarted) }
        let operation = ManualOperation("d")
        #expect(manager.enqueueAloneAtHome(operation).refusal == .queueFull)
        #expect(operation.calls.entries == [] && log.entries.isEmpty)
        #expect(manager.operations.count == 3)
    }

    @Test func `an operation cancelled in the queue never executes and frees its place`() {
        _ = enqueue("a")
        let waiting = enqueue("b").operation
        waiting?.cancel()
        #expect(waiting?.calls.entries == [])
        #expect(manager.snapshot.queued == 0)
        #expect(enqueue("b").isStarted)
    }

    @Test func `the last waiter to leave removes a queued operation`() {
        _ = enqueue("a")
        let waiting = enqueue("b")
        waiting.operation?.lastLeavePolicy = .cancel
        if let token = waiting.token { waiting.operation?.leave(token) }
        #expect(manager.snapshot.inFlight == 1)
        #expect(waiting.operation?.calls.entries == ["lastWaiterLeft"])
    }

    @Test func `a client that joins a background refresh raises its priority`() {
        let first = enqueue("a").operation
        let normal = enqueue("b").operation
        let refresh = manager.enqueue("c", waiter: nil, priority: .background) { ManualOperation("c") }.operation
        _ = enqueue("c", priority: .high)
        first?.finish(.success(1))
        #expect(refresh?.phase == .executing)
        #expect(normal?.phase == .ready)
    }

    @Test func `plain operations count towards the limit`() {
        let order = Log<String>()
        let plain = PlainOperation { _ in order.append("plain") }
        let first = enqueue("a").operation
        #expect(manager.enqueue(plain: plain).isStarted)
        #expect(order.entries.isEmpty)
        first?.finish(.success(1))
        #expect(order.entries == ["plain"])
        let second = enqueue("b").operation
        plain.finish(Broken())
        #expect(plain.error?.name.description == "failed")
        #expect(second?.phase == .executing)
    }

    @Test func `an immediate operation begins although the manager is full, and is not counted`() {
        for name in ["a", "b", "c"] { #expect(enqueue(name).isStarted) }
        let before = manager.snapshot
        let check = PlainOperation()
        #expect(manager.enqueue(plain: check, priority: .immediate).isStarted)
        #expect(check.phase == .executing && manager.operations.count == 4)
        #expect(manager.snapshot == before)
        check.finish()
        #expect(manager.snapshot == before && manager.operations.count == 3)
    }

    @Test func `a waiting operation begins when its priority is raised to immediate`() {
        _ = enqueue("a")
        let waiting = enqueue("b").operation
        #expect(waiting?.phase == .ready)
        _ = enqueue("b", priority: .immediate)
        #expect(waiting?.phase == .executing)
    }

    @Test func `a paused manager starts no operation until it is resumed`() {
        manager.pause()
        let operation = enqueue("a").operation
        #expect(operation?.phase == .ready)
        manager.resume()
        #expect(operation?.phase == .executing)
    }

    @Test func `a higher limit takes effect at once`() {
        let operations = ["a", "b", "c"].map { enqueue($0).operation }
        manager.maxConcurrent = 3
        #expect(operations.allSatisfy { $0?.phase == .executing })
    }

    /// The slot is passed on by a loop; were it passed on from inside `finish`, a hundred thousand frames would pile
    /// up.
    @Test func `any number of operations can finish at once without growing the stack`() {
        manager.maxQueued = .max
        manager.pause()
        for number in 0..<100_000 {
            _ = manager.enqueue("\(number)", waiter: nil) { ManualOperation("\(number)") { $0.finish(.success(1)) } }
        }
        manager.resume()
        #expect(manager.snapshot.finished == 100_000)
    }
}
