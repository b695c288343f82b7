/// A waiter for an operation's value: the queue to call back on, the handler to call, and the values that it accepts.
public struct Waiter<Value: Sendable>: Sendable {
    @usableFromInline let queue: any CallbackQueue
    @usableFromInline let accepts: (@Sendable (Value) -> Bool)?
    /// `nil` for a task that has not begun to wait (see `Audience.wait`).
    @usableFromInline var handler: (@Sendable (Result<Value, OperationError>) -> Void)?

    /// - Parameters:
    ///   - queue: the queue on which the handler is called.
    ///   - accepts: whether a value may serve this waiter; `nil` accepts every value. Called under the operation's
    ///     lock: it must be quick and pure, and must not call this library.
    ///   - handler: called exactly once, on `queue`, with the value or the reason that there is none; never if the
    ///     waiter was refused, or if `leave` returned true.
    @inlinable
    public init(
        on queue: any CallbackQueue, accepts: (@Sendable (Value) -> Bool)? = nil,
        handler: @escaping @Sendable (Result<Value, OperationError>) -> Void
    ) {
        self.queue = queue
        self.accepts = accepts
        self.handler = handler
    }

    /// For a task that begins to wait later.
    @inlinable
    init(accepts: (@Sendable (Value) -> Bool)?) {
        queue = InlineQueue.shared
        self.accepts = accepts
        handler = nil
    }

    @inlinable
    func callBack(with value: Value) {
        if let handler { queue.enqueue { handler(.success(value)) } }
    }

    @inlinable
    func takes(_ value: Value) -> Bool {
        accepts.map { $0(value) } ?? true
    }
}

/// Names one stay with one operation, for `leave`. A token of another operation, or of a stay that has ended, has no
/// effect.
public struct WaiterToken: Hashable, Sendable {
    @usableFromInline let operation: ObjectIdentifier?
    @usableFromInline let seat: SlotToken

    /// The token of an operation that was enqueued without a waiter.
    public static let none = WaiterToken(operation: nil, seat: .none)

    @inlinable
    init(operation: ObjectIdentifier?, seat: SlotToken) {
        self.operation = operation
        self.seat = seat
    }
}

/// The fate of an operation whose last waiter has left. Read at that moment; an operation that no waiter ever joined
/// goes on.
public enum LastLeavePolicy: Sendable {
    /// The operation goes on: its result is useful anyway (it will be stored). The default.
    case goOn
    /// The operation is cancelled: its result has no use.
    case cancel
}
