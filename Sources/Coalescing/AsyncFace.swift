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
        try await value(for: identifier, priority: priority, unless: unless, make: { TaskWork(work) })
    }

    /// Joins the work in flight for `identifier`, or starts the one that `make` returns, and waits for its value. `make`
    /// is called on the caller's actor, if there is one, and under a lock like `unless`.
    ///
    /// - Throws: as `value(for:work:)`.
    @inlinable
    public nonisolated(nonsending) func value<W: Work>(
        for identifier: Key, priority: OperationPriority = .normal, unless: () -> W.Value? = { nil }, make: () -> W
    ) async throws -> W.Value {
        try await wait(as: AsyncStay()) {
            enqueue(identifier, waiter: $0, priority: priority, unless: unless, make: make)
        }
    }

    /// `value(for:make:)` for a class of operations. Whether the operation goes on without waiters, its
    /// `lastLeavePolicy` decides. Once the caller has the value, it counts as a follower until the operation ends; to
    /// stop following a value that goes on growing, use `withValue`.
    @inlinable
    public nonisolated(nonsending) func value<Op: SharedOperation>(
        for identifier: Key, priority: OperationPriority = .normal, unless: () -> Op.Value? = { nil }, make: () -> Op
    ) async throws -> Op.Value {
        try await wait(as: AsyncStay()) {
            enqueue(identifier, waiter: $0, priority: priority, unless: unless, make: make)
        }
    }

    /// Joins or starts as `value(for:make:)` does, for a value that goes on growing, and calls `body` with it. The task
    /// follows the operation until `body` returns or throws, and then leaves, so that a stream without readers can be
    /// stopped.
    ///
    /// A task that is cancelled while `body` runs leaves when `body` has ended, as with any `async` function.
    ///
    /// - Parameter body: runs on the caller's actor, if there is one.
    /// - Returns: the result of `body`.
    /// - Throws: as `value(for:make:)`, and the errors of `body`.
    public nonisolated(nonsending) func withValue<Op: SharedOperation, Outcome>(
        for identifier: Key, priority: OperationPriority = .normal, make: () -> Op,
        body: nonisolated(nonsending) (Op.Value) async throws -> Outcome
    ) async throws -> Outcome {
        let stay = AsyncStay<Op.Value>()
        let value = try await wait(as: stay) {
            enqueue(identifier, waiter: $0, priority: priority, unless: { nil }, make: make)
        }
        defer { stay.end() }
        return try await body(value)
    }

    @inlinable
    nonisolated(nonsending) func wait<Op: SharedOperation>(
        as stay: AsyncStay<Op.Value>, accepts: (@Sendable (Op.Value) -> Bool)? = nil,
        enqueue: (Waiter<Op.Value>) -> Enqueued<Op, Op.Value>
    ) async throws -> Op.Value {
        try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                // The task was cancelled before this call: enqueue nothing.
                guard !Task.isCancelled else { return continuation.resume(throwing: CancellationError()) }
                let waiter = Waiter<Op.Value>(on: InlineQueue.shared, accepts: accepts) { result in
                    continuation.resume(with: result.mapError { $0.thrown })
                }
                switch enqueue(waiter) {
                case .found(let value):
                    continuation.resume(returning: value)
                case .joined(let operation, let token, _), .started(let operation, let token):
                    stay.entered(operation.shared, token) { continuation.resume(throwing: CancellationError()) }
                case .refused(let refusal, _):
                    continuation.resume(throwing: refusal)
                }
            }
        } onCancel: {
            stay.end()
        }
    }
}

/// A task's stay with an operation. It can be ended at any time, even before it has begun.
@usableFromInline
final class AsyncStay<Value: Sendable>: Sendable {
    /// ```
    /// outside ─entered→ inside ─end→ gone
    ///    └─end→ ended ─entered→ gone
    /// ```
    @usableFromInline
    enum Phase: Sendable {
        case outside
        case inside(CoalescibleOperation<Value>, WaiterToken, @Sendable () -> Void)
        case ended
        case gone
    }

    @usableFromInline let phase = Protected(Phase.outside)

    @inlinable
    init() {}

    /// - Parameter left: called if the task leaves before its callback is due.
    @inlinable
    func entered(
        _ operation: CoalescibleOperation<Value>, _ token: WaiterToken, left: @escaping @Sendable () -> Void
    ) {
        let hasEnded = phase.withLock { phase in
            switch phase {
            case .outside:
                phase = .inside(operation, token, left)
                return false
            case .ended, .inside, .gone:
                phase = .gone
                return true
            }
        }
        if hasEnded, operation.leave(token) { left() }
    }

    @usableFromInline
    func end() {
        let wasInside = phase.withLock { phase -> (CoalescibleOperation<Value>, WaiterToken, @Sendable () -> Void)? in
            switch phase {
            case .outside:
                phase = .ended
                return nil
            case .inside(let operation, let token, let left):
                phase = .gone
                return (operation, token, left)
            case .ended, .gone:
                return nil
            }
        }
        if let (operation, token, left) = wasInside, operation.leave(token) { left() }
    }
}
