/// The duty to finish an operation, as a value: whoever holds it finishes the operation, and dropping it does so with
/// `.abandoned`.
///
/// A manager keeps its operations alive until they end, so one whose worker loses track of it would wait for ever. A
/// worker that holds the permit cannot forget. Make one for each operation: `let permit = FinishPermit(operation)`.
public struct FinishPermit<Value: Sendable>: ~Copyable, Sendable {
    /// The operation that it is the duty to finish.
    public let operation: CoalescibleOperation<Value>

    /// Takes on the duty, for whoever works for `operation`: in `execute()`, say.
    public init(_ operation: CoalescibleOperation<Value>) {
        self.operation = operation
    }

    /// See `CoalescibleOperation.deliver`.
    @discardableResult
    public borrowing func deliver(_ value: Value) -> Bool {
        operation.deliver(value)
    }

    /// See `CoalescibleOperation.finish()`.
    @discardableResult
    public consuming func finish() -> Bool {
        operation.finish()
    }

    /// See `CoalescibleOperation.finish(_:)`.
    @discardableResult
    public consuming func finish(_ result: Result<Value, any Error>) -> Bool {
        operation.finish(result)
    }

    deinit {
        // Ignored when it has ended, which is so after every `finish`.
        operation.finish(.failure(OperationError.abandoned))
    }
}
