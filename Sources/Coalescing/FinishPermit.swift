/// The duty to finish an operation, as a value: its holder finishes the operation. Dropping the permit finishes the
/// operation with `.abandoned`.
///
/// A manager keeps its operations alive until they end, so an operation whose worker loses track of it would never end.
/// A worker that holds the permit cannot forget. Make one for each operation: `let permit = FinishPermit(operation)`.
public struct FinishPermit<Value: Sendable>: ~Copyable, Sendable {
    /// The operation that must be finished.
    public let operation: CoalescibleOperation<Value>

    /// Takes on the duty, for the code that works for `operation`: in `execute()`, say.
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
        // Ignored if the operation has ended, as it has after every `finish`.
        operation.finish(.failure(OperationError.abandoned))
    }
}
