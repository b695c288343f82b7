/// Why an operation ended without a value, or why this waiter did not get it. Closed: the names stand in logs, metrics
/// and tests.
public enum OperationError: Error, Sendable {
    /// The operation was cancelled, by `cancel()` or because its last waiter left under `LastLeavePolicy.cancel`.
    case cancelled
    /// The value is there but may not serve this waiter (`Waiter.accepts`), which should fetch for itself.
    case released
    /// Whoever had to finish the operation dropped it, or called `finish()` before there was a value.
    case abandoned
    /// The work failed.
    case failed(any Error)
    /// An operation this one depends on ended without success; the work was never started.
    indirect case dependency(OperationError)

    /// `error` itself when it is one already, otherwise `.failed(error)`.
    public init(_ error: any Error) {
        self = error as? OperationError ?? .failed(error)
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

/// Why a waiter was not taken in. Closed, like `OperationError`.
public enum Refusal: Error, Sendable, CaseIterable {
    /// The operation has ended. The next `enqueue` for its identifier starts a new one.
    case finished
    /// `close()` was called: it serves only those who already wait.
    case closed
    /// The value is there, and the waiter's `accepts` rejected it.
    case notAccepted
    /// The operation has as many waiters as `waiterLimit` allows.
    case full
    /// The manager's queue holds as many operations as `maxQueued` allows; a new one was not started.
    case queueFull
    /// The operation is not one that was asked for: it has another identifier (or, given to `enqueue(operation:)`, none
    /// of the manager's `Key` type), its class is not the one that the call names, or it was started or enqueued
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
