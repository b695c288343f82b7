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

    /// - Returns: the value, and the stay with the operation, which goes on until the operation ends or the stay is left;
    ///   `nil` if the value was found.
    /// - Throws: as `value(for:work:)`.
    @inlinable
    package nonisolated(nonsending) func wait<Op: SharedOperation>(
        accepts: (@Sendable (Op.Value) -> Bool)? = nil, enqueue: (Waiter<Op.Value>) -> Enqueued<Op, Op.Value>
    ) async throws -> (value: Op.Value, stay: AsyncStay<Op.Value>?) {
        // The task was cancelled before this call: enqueue nothing.
        try Task.checkCancellation()
        let wait = AsyncWait()
        let stay: AsyncStay<Op.Value>
        switch enqueue(Waiter(on: InlineQueue.shared, accepts: accepts) { wait.ended(with: $0.failure) }) {
        case .found(let value): return (value, nil)
        case .refused(let refusal, _): throw refusal
        case .joined(let operation, let token, _), .started(let operation, let token):
            stay = AsyncStay(operation: operation.shared, token: token)
        }
        var outcome = wait.outcome
        if outcome == nil {
            await withTaskCancellationHandler {
                await withCheckedContinuation { continuation in
                    if !wait.begin(continuation) { continuation.resume() }
                }
            } onCancel: {
                if stay.leave() { wait.ended(with: .cancelled) }
            }
            outcome = wait.outcome
        }
        if let error = outcome ?? nil { throw error.thrown }
        // Without an error the value is there, and stays.
        guard let value = stay.operation.value else { throw OperationError.abandoned }
        return (value, stay)
    }
}

extension Result where Failure == OperationError {
    @inlinable var failure: OperationError? { if case .failure(let error) = self { error } else { nil } }
}

/// A task's stay with an operation.
@usableFromInline
package struct AsyncStay<Value: Sendable>: Sendable {
    @usableFromInline let operation: CoalescibleOperation<Value>
    @usableFromInline let token: WaiterToken

    @inlinable
    init(operation: CoalescibleOperation<Value>, token: WaiterToken) {
        self.operation = operation
        self.token = token
    }

    /// See `CoalescibleOperation.leave`.
    @discardableResult
    @inlinable
    package func leave() -> Bool { operation.leave(token) }
}

/// A task's wait for the outcome of an operation, which may come before the task waits. Without the value, which the
/// operation keeps: an object of a generic class takes longer to release.
@usableFromInline
final class AsyncWait: Sendable {
    /// ```
    /// idle ─begin→ waiting ─ended→ over
    ///  └──ended──→ over
    /// ```
    private enum Phase: Sendable {
        case idle
        case waiting(CheckedContinuation<Void, Never>)
        case over(OperationError?)
    }

    private let phase = Protected(Phase.idle)

    @usableFromInline
    init() {}

    /// The error that the task gets instead of the value, `.some(nil)` for the value; `nil` before the wait is over.
    @usableFromInline var outcome: OperationError?? {
        phase.withLock { if case .over(let error) = $0 { .some(error) } else { nil } }
    }

    /// - Returns: false if the wait is over already.
    @usableFromInline
    func begin(_ continuation: CheckedContinuation<Void, Never>) -> Bool {
        phase.withLock { phase in
            if case .over = phase { return false }
            phase = .waiting(continuation)
            return true
        }
    }

    /// Called once: by the operation, or by the stay if it was left in time.
    @usableFromInline
    func ended(with error: OperationError?) {
        let waiting = phase.withLock { phase -> CheckedContinuation<Void, Never>? in
            defer { phase = .over(error) }
            if case .waiting(let continuation) = phase { return continuation }
            return nil
        }
        waiting?.resume()
    }
}
