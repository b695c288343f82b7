/// A manager's record of one operation in flight: what counts it, and what to undo when it ends. Part of the
/// operation's state, so it costs no object of its own; it knows no `Key`, so that what every operation does at its end
/// is not generic.
@usableFromInline
struct Enrolment: Sendable {
    /// Takes an ended operation off one place in a manager's table.
    @usableFromInline typealias Forget = @Sendable (AnyOperation) -> Void

    /// The gate that holds the operation's slot.
    @usableFromInline let gate: OperationGate
    /// Where the operation is counted.
    @usableFromInline let counters: ShardCounters
    /// Takes the operation off its place; `nil` for one that nobody can find. Keeps the manager alive.
    @usableFromInline let forget: Forget?
    /// A `Forget` for each of its aliases.
    @usableFromInline private(set) var forgetAliases: [Forget] = []
    /// Whether it is in a table.
    @usableFromInline private(set) var isFindable: Bool

    @inlinable
    init(gate: OperationGate, counters: ShardCounters, forget: Forget?) {
        self.gate = gate
        self.counters = counters
        self.forget = forget
        isFindable = forget != nil
    }

    mutating func addAlias(forget: @escaping Forget) {
        forgetAliases.append(forget)
        isFindable = true
    }

    /// Counts the operation's end and takes it off its places: from now on nobody may find it. Never under a lock.
    func forget(_ operation: AnyOperation, outcome: OperationError?) {
        switch outcome {
        case nil: counters.finished.count()
        case .cancelled: counters.cancelled.count()
        case .released, .abandoned, .failed, .dependency: counters.failed.count()
        }
        forget?(operation)
        for forget in forgetAliases { forget(operation) }
    }
}
