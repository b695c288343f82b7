/// Work given as an `async` closure: `execute()` runs it in a task, `cancelWork()` cancels that task.
@ThreadSafe
open class AsyncOperation<Value: Sendable>: CoalescibleOperation<Value> {
    private nonisolated let work: @Sendable () async throws -> Value
    private nonisolated let task = Protected<Task<Void, Never>?>(nil)

    /// - Parameters:
    ///   - identifier: see `CoalescibleOperation.identifier`.
    ///   - work: the work to do; its task is cancelled with the operation.
    public nonisolated init(
        identifier: (any Hashable & Sendable)? = nil, work: @escaping @Sendable () async throws -> Value
    ) {
        self.work = work
        super.init(identifier: identifier)
    }

    nonisolated open override func execute() {
        let started = Task { [work] in
            do {
                let value = try await work()
                self.finish(.success(value))
            } catch {
                self.finish(.failure(error))
            }
        }
        task.withLock { $0 = started }
    }

    nonisolated open override func cancelWork() {
        task.withLock { $0 }?.cancel()
    }
}

extension OperationQueueManager {
    /// Joins the operation in flight for `identifier`, or starts the one that `make` returns, and waits for its value.
    /// `make` is called on the caller's actor, if there is one.
    ///
    /// A cancelled task leaves: this method throws `CancellationError` at once, and the other waiters go on. The
    /// operation decides whether the work goes on without waiters: it does, unless its `lastLeavePolicy` is `.cancel`.
    /// Once the task has the value, it counts as a follower until the operation ends; to stop following a value that
    /// goes on growing, use `withValue`.
    ///
    /// - Throws: `CancellationError` if this task was cancelled, `Refusal` if it was not let in, otherwise the
    ///   `OperationError` with which the operation ended.
    public nonisolated(nonsending) func value<Op: SharedOperation>(
        for identifier: Key, priority: OperationPriority = .normal, make: () -> Op
    ) async throws -> Op.Value {
        try await wait(for: identifier, priority: priority, as: AsyncStay(), make: make)
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
        let value = try await wait(for: identifier, priority: priority, as: stay, make: make)
        defer { stay.end() }
        return try await body(value)
    }

    private nonisolated(nonsending) func wait<Op: SharedOperation>(
        for identifier: Key, priority: OperationPriority, as stay: AsyncStay<Op.Value>, make: () -> Op
    ) async throws -> Op.Value {
        try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                let waiter = Waiter<Op.Value>(on: InlineQueue.shared) { result in
                    continuation.resume(with: result.mapError { $0 as any Error })
                }
                // The task was cancelled before this call: enqueue nothing.
                guard !Task.isCancelled else { return continuation.resume(throwing: CancellationError()) }
                switch enqueue(identifier, waiter: waiter, priority: priority, make: make) {
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

    /// The value of `work`, which runs once for all callers that ask for `identifier` at the same time and expect a
    /// `Value`.
    ///
    ///     let user = try await manager.value(for: "users/7") { try await database.user(7) }
    ///
    /// The task of `work` is cancelled when every task that waits for it was cancelled (`LastLeavePolicy.cancel`).
    ///
    /// - Throws: as `value(for:make:)`; an error of `work` comes as `OperationError.failed`.
    public nonisolated(nonsending) func value<Value: Sendable>(
        for identifier: Key, priority: OperationPriority = .normal,
        work: @escaping @Sendable () async throws -> Value
    ) async throws -> Value {
        try await value(for: identifier, priority: priority) { () -> AsyncOperation<Value> in
            let operation = AsyncOperation(work: work)
            operation.lastLeavePolicy = .cancel
            return operation
        }
    }
}

/// A task's stay with an operation. It can be ended at any time, even before it has begun.
private final class AsyncStay<Value: Sendable>: Sendable {
    /// ```
    /// outside ─entered→ inside ─end→ gone
    ///    └─end→ ended ─entered→ gone
    /// ```
    private enum Phase: Sendable {
        case outside
        case inside(CoalescibleOperation<Value>, WaiterToken, @Sendable () -> Void)
        case ended
        case gone
    }

    private let phase = Protected(Phase.outside)

    /// - Parameter left: called if the task leaves before its callback is due.
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
