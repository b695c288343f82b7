/// Somebody who waits for an operation's value: where to call back, what to call, and which values will do.
public struct Waiter<Value: Sendable>: Sendable {
    /// Called exactly once, on `queue`, with the value or the reason there is none; never when `leave` returned true.
    public typealias Handler = @Sendable (Result<Value, OperationError>) -> Void

    @usableFromInline let queue: any CallbackQueue
    @usableFromInline let accepts: (@Sendable (Value) -> Bool)?
    @usableFromInline let handler: Handler

    /// - Parameters:
    ///   - queue: where the handler is called.
    ///   - accepts: whether a value may serve this waiter; `nil` takes every value. Called under the operation's lock:
    ///     it must be quick, pure, and call nothing of this library.
    @inlinable
    public init(
        on queue: any CallbackQueue, accepts: (@Sendable (Value) -> Bool)? = nil, handler: @escaping Handler
    ) {
        self.queue = queue
        self.accepts = accepts
        self.handler = handler
    }

    @inlinable
    func takes(_ value: Value) -> Bool {
        accepts.map { $0(value) } ?? true
    }
}

/// One stay with one operation: what `leave` needs. A token of another operation, or of a stay that has ended, does
/// nothing.
public struct WaiterToken: Hashable, Sendable {
    @usableFromInline let operation: ObjectIdentifier?
    @usableFromInline let seat: SlotToken

    /// The token of nobody, for an operation enqueued without a waiter.
    public static let none = WaiterToken(operation: nil, seat: .none)

    @inlinable
    init(operation: ObjectIdentifier?, seat: SlotToken) {
        self.operation = operation
        self.seat = seat
    }
}

/// What becomes of an operation when its last waiter has left. Read at that moment; an operation that nobody ever
/// joined goes on.
public enum LastLeavePolicy: Sendable {
    /// The result is worth having anyway (it will be stored). The default.
    case goOn
    /// Nobody wants it: it is cancelled.
    case cancel
}
