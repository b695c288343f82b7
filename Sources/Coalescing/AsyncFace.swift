extension OperationQueueManager {
    /// The value of `work`, which runs once for all callers that ask for `identifier` at the same time and expect a
    /// `Value`.
    ///
    ///     let user = try await manager.value(for: "users/7") { try await database.user(7) }
    ///
    /// The work runs in a task with the priority and the task-local values of the caller that led. That task is
    /// cancelled when every caller has left. A caller whose task is cancelled leaves at once; the others go on.
    ///
    /// - Parameter unless: looks a last time where finished results are kept. Called under the shard's lock: no other
    ///   caller starts the work between this look and the start. It must be quick.
    /// - Throws: the error that `work` threw; `CancellationError` if this task or the operation was cancelled; `Refusal`
    ///   if the caller was not let in; otherwise the `OperationError` with which the operation ended.
    @inlinable
    public nonisolated(nonsending) func value<Value: Sendable>(
        for identifier: Key, priority: OperationPriority = .normal, unless: () -> Value? = { nil },
        work: @escaping @Sendable () async throws -> Value
    ) async throws -> Value {
        try await wait {
            enqueue(identifier, waiter: $0, priority: priority, unless: unless, doing: work) { $0.run($1) }
        }.value
    }

    /// Joins the work in flight for `identifier`, or starts the one that `make` returns, and waits for its value. `make`
    /// is called on the caller's actor, if there is one, and under a lock like `unless`.
    ///
    /// - Throws: as `value(for:work:)`.
    @inlinable
    public nonisolated(nonsending) func value<W: Work>(
        for identifier: Key, priority: OperationPriority = .normal, unless: () -> W.Value? = { nil }, make: () -> W
    ) async throws -> W.Value {
        try await wait {
            enqueue(identifier, waiter: $0, priority: priority, unless: unless, make: make)
        }.value
    }

    /// `value(for:make:)` for a class of operations. Whether the operation goes on without waiters, its
    /// `lastLeavePolicy` decides. Once the caller has the value, it counts as a follower until the operation ends; to
    /// stop following a value that goes on growing, use `withValue`.
    /// - Throws: as `value(for:work:)`.
    @inlinable
    public nonisolated(nonsending) func value<Op: SharedOperation>(
        for identifier: Key, priority: OperationPriority = .normal, unless: () -> Op.Value? = { nil }, make: () -> Op
    ) async throws -> Op.Value {
        try await wait {
            enqueue(identifier, waiter: $0, priority: priority, unless: unless, make: make)
        }.value
    }

    /// - Parameters:
    ///   - accepts: see `Waiter`. A value that it refuses is returned all the same: the caller knows its answer.
    /// - Returns: the value, and the stay with the operation, which goes on until the operation ends or the stay is left;
    ///   `nil` if the value was found.
    /// - Throws: as `value(for:work:)`.
    @inlinable
    package nonisolated(nonsending) func wait<Op: SharedOperation>(
        accepts: (@Sendable (Op.Value) -> Bool)? = nil, enqueue: (Waiter<Op.Value>) -> Enqueued<Op, Op.Value>
    ) async throws -> (value: Op.Value, stay: AsyncStay<Op.Value>?) {
        // The task was cancelled before this call: enqueue nothing.
        try Task.checkCancellation()
        let operation: CoalescibleOperation<Op.Value>
        let place: SlotToken
        switch enqueue(Waiter(accepts: accepts)) {
        case .found(let value): return (value, nil)
        case .refused(let refusal, _): throw refusal
        case .joined(let joined, let token, _): (operation, place) = (joined.shared, token.seat)
        case .started(let started, let token): (operation, place) = (started.shared, token.seat)
        }
        // Often the work has ended on this stack.
        if let value = operation.value { return (value, AsyncStay(operation, place)) }
        let seat = operation.audience.withLock { $0.sit(place) }
        let stay = AsyncStay(operation, seat)
        let isCancelled = await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let waits = operation.audience.withLock {
                    $0.wait(seat) { result in
                        let isCancelled = if case .failure(.cancelled) = result { true } else { false }
                        continuation.resume(returning: isCancelled)
                    }
                }
                if !waits { continuation.resume(returning: Task.isCancelled) }
            }
        } onCancel: {
            stay.leave()
        }
        if isCancelled { throw CancellationError() }
        guard let value = operation.value else { throw (operation.error ?? .abandoned).thrown }
        return (value, stay)
    }
}

/// A task's stay with an operation.
@usableFromInline
package struct AsyncStay<Value: Sendable>: Sendable {
    @usableFromInline let operation: CoalescibleOperation<Value>
    @usableFromInline let seat: SlotToken

    @inlinable
    init(_ operation: CoalescibleOperation<Value>, _ seat: SlotToken) {
        self.operation = operation
        self.seat = seat
    }

    /// Ends the stay. If the task waits, it waits no longer.
    @inlinable
    package func leave() {
        let departure = operation.audience.withLock { $0.leave(seat) }
        let handler = departure?.seat?.waiter?.handler
        if operation.settle(departure) { handler?(.failure(.cancelled)) }
    }
}
