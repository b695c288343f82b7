/// Removes an ended operation from one place in a manager's table.
@usableFromInline typealias Forget = @Sendable (AnyOperation) -> Void

/// A manager's record of one operation in flight: its counters, and the closures to call when it ends. Part of the
/// operation's state, so it needs no object of its own. It does not know `Key`, so that the common end of all
/// operations is not generic.
struct Enrolment: Sendable {
    /// The gate that holds the operation's slot.
    let gate: OperationGate
    /// The counters of the operation's shard.
    let counters: ShardCounters
    /// Removes the operation from its place; `nil` for an operation that no caller can find. Keeps the manager alive.
    let forget: Forget?

    /// Counts the operation's end and removes it from its place. Never under a lock.
    func forget(_ operation: AnyOperation, outcome: OperationError?) {
        switch outcome {
        case nil: counters.finished.count()
        case .cancelled: counters.cancelled.count()
        case .released, .abandoned, .failed, .dependency: counters.failed.count()
        }
        forget?(operation)
    }
}
