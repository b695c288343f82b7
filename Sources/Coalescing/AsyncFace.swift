/// Work given as an `async` closure: `execute()` runs it in a task, `cancelWork()` cancels that task.
@ThreadSafe
open class AsyncOperation<Value: Sendable>: CoalescibleOperation<Value> {
    private nonisolated let work: @Sendable () async throws -> Value
    private nonisolated let task = Protected<Task<Void, Never>?>(nil)

    /// - Parameter work: what it does; its task is cancelled with the operation.
    public nonisolated init(
        identifier: any Hashable & Sendable, work: @escaping @Sendable () async throws -> Value
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
    /// Joins the operation in flight for `identifier` or starts the one that `make` gives, and waits for its value.
    ///
    /// A cancelled task leaves: it throws `CancellationError` at once and the others go on. Once it has the value, the task counts as
    /// a follower until the operation ends.
    ///
    /// - Throws: `CancellationError` if this task was cancelled, `Refusal` if it was not let in, otherwise the `OperationError` with which the
    ///   operation ended.
    public func value<Op, Value>(
        for identifier: Key, priority: OperationPriority = .normal, make: () -> Op
    ) async throws -> Value where Op: CoalescibleOperation<Value> {
        let stay = AsyncStay<Value>()
        return try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                let waiter = Waiter<Value>(on: InlineQueue.shared) { result in
                    continuation.resume(with: result.mapError { $0 as any Error })
                }
                // Cancelled before it began: ask for nothing.
                guard !Task.isCancelled else { return continuation.resume(throwing: CancellationError()) }
                switch enqueue(identifier, waiter: waiter, priority: priority, make: make) {
                case .joined(let operation, let token, _), .started(let operation, let token):
                    stay.entered(operation, token) { continuation.resume(throwing: CancellationError()) }
                case .refused(let refusal, _):
                    continuation.resume(throwing: refusal)
                }
            }
        } onCancel: {
            stay.cancel()
        }
    }

    /// The value of `work`, which runs once for all callers that ask for `identifier` at the same time and expect a `Value`.
    ///
    ///     let user = try await manager.value(for: "users/7") { try await database.user(7) }
    ///
    /// Its task is cancelled when everyone who waits for it has been.
    ///
    /// - Throws: as above; an error of `work` comes as an `OperationError`.
    public func value<Value: Sendable>(
        for identifier: Key, priority: OperationPriority = .normal,
        work: @escaping @Sendable () async throws -> Value
    ) async throws -> Value {
        try await value(for: identifier, priority: priority) { () -> AsyncOperation<Value> in
            let operation = AsyncOperation(identifier: identifier, work: work)
            operation.lastLeavePolicy = .cancel
            return operation
        }
    }
}

/// A task's stay with an operation, so that cancellation can end it whenever it comes.
private final class AsyncStay<Value: Sendable>: Sendable {
    /// ```
    /// outside ─entered→ inside ─cancel→ gone
    ///    └─cancel→ cancelled ─entered→ gone
    /// ```
    private enum Phase: Sendable {
        case outside
        case inside(CoalescibleOperation<Value>, WaiterToken, @Sendable () -> Void)
        case cancelled
        case gone
    }

    private let phase = Protected(Phase.outside)

    /// - Parameter left: called when it left before its callback was due.
    func entered(
        _ operation: CoalescibleOperation<Value>, _ token: WaiterToken, left: @escaping @Sendable () -> Void
    ) {
        let isCancelled = phase.withLock { phase in
            switch phase {
            case .outside:
                phase = .inside(operation, token, left)
                return false
            case .cancelled, .inside, .gone:
                phase = .gone
                return true
            }
        }
        if isCancelled, operation.leave(token) { left() }
    }

    func cancel() {
        let wasInside = phase.withLock { phase -> (CoalescibleOperation<Value>, WaiterToken, @Sendable () -> Void)? in
            switch phase {
            case .outside:
                phase = .cancelled
                return nil
            case .inside(let operation, let token, let left):
                phase = .gone
                return (operation, token, left)
            case .cancelled, .gone:
                return nil
            }
        }
        if let (operation, token, left) = wasInside, operation.leave(token) { left() }
    }
}
