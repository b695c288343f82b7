/// The reason that an operation ended without a value, or that this waiter did not get the value. A closed list: the
/// names stand in logs, metrics and tests.
public enum OperationError: Error, Sendable {
    /// The operation was cancelled, by `cancel()` or because its last waiter left under `LastLeavePolicy.cancel`.
    case cancelled
    /// The value is there but may not serve this waiter (`Waiter.accepts`), which should fetch for itself.
    case released
    /// The code that had to finish the operation dropped it, or called `finish()` before there was a value.
    case abandoned
    /// The work failed.
    case failed(any Error)
    /// An operation that this one depends on ended without success; the work was never started.
    indirect case dependency(OperationError)

    /// `error` itself if it is an `OperationError`, otherwise `.failed(error)`.
    public init(_ error: any Error) {
        self = error as? OperationError ?? .failed(error)
    }

    /// The error that an `async` caller catches: that of the work as it was thrown; `CancellationError` for a
    /// cancellation.
    @usableFromInline package var thrown: any Error {
        switch self {
        case .cancelled: CancellationError()
        case .failed(let error): error
        case .released, .abandoned, .dependency: self
        }
    }

    /// The fixed name, for logs and metric labels.
    public var name: StaticString {
        switch self {
        case .cancelled: "cancelled"
        case .released: "released"
        case .abandoned: "abandoned"
        case .failed: "failed"
        case .dependency: "dependency"
        }
    }
}

/// The reason that a waiter was not let in. A closed list, like `OperationError`.
public enum Refusal: Error, Sendable, CaseIterable {
    /// The operation has ended. The next `enqueue` for its identifier starts a new one.
    case finished
    /// `close()` was called: the operation serves only its present waiters.
    case closed
    /// The value is there, and the waiter's `accepts` rejected it.
    case notAccepted
    /// The operation has as many waiters as `waiterLimit` allows.
    case full
    /// The manager's queue holds as many operations as `maxQueued` allows; a new one was not started.
    case queueFull
    /// The operation is not the one that was asked for: it has another identifier (or, given to `enqueue(operation:)`,
    /// none of the manager's `Key` type), its class is not the one that the call names, or it was started or enqueued
    /// before.
    case foreign

    /// The fixed name, for logs and metric labels.
    public var name: StaticString {
        switch self {
        case .finished: "finished"
        case .closed: "closed"
        case .notAccepted: "not-accepted"
        case .full: "waiters-full"
        case .queueFull: "queue-full"
        case .foreign: "foreign"
        }
    }
}
