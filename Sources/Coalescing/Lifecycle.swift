/// The phase of an operation, as callers see it.
public enum OperationPhase: UInt8, Sendable, CaseIterable {
    /// The operation was made. It may be waiting for dependencies.
    case pending
    /// The dependencies are met, and the operation waits for a slot.
    case ready
    /// `execute()` was called, or the operation was coalesced into another one, which executes for it.
    case executing
    /// The operation ended with a value or with an error of its own.
    case finished
    /// The operation was ended by `cancel()`.
    case cancelled
}

/// The life of one operation: it begins at most once and ends exactly once, even if threads race. Pure: `AnyOperation`
/// holds the lock and performs the returned actions.
struct Lifecycle: Sendable {
    /// ```
    /// pending ─submit & dependencies met→ ready ─begin→ starting ─entered→ executing
    ///    │  └─coalesce→ coalesced            │             │                   │
    ///    │                 │                 │            end                 end
    ///    │                 │                 │             ↓                   │
    ///    │                 │                 │          stopping ─entered─┐    │
    ///    └───────end───────┴───────end───────┴────────────────────────→ ending ┘ ─retire→ ended
    /// ```
    /// *starting*: `execute()` is on some thread's stack. A call that ends the operation then leaves the remaining
    /// steps (*stopping*) to that thread, so `cancelWork()` never runs before or beside `execute()`, and an operation
    /// that finishes inside `execute()` starts the next one from a loop, not from ever deeper in the stack. *ending*:
    /// the outcome is decided, but the manager still holds the operation. *ended*: no look-up finds the operation any
    /// more.
    private enum Phase: Sendable {
        case pending
        case ready
        case starting
        case executing
        case coalesced
        case stopping(outcome: OperationError?, stopsWork: Bool)
        case ending(outcome: OperationError?)
        case ended(outcome: OperationError?)
    }

    /// The initiator of an operation's end.
    enum Initiator: Sendable {
        /// The work itself: no work is left to stop.
        case work
        /// Any other caller: work that has begun must be stopped.
        case outside
    }

    private var phase = Phase.pending
    private var isSubmitted = false
    private var unmetDependencies: Int32 = 0

    enum Entered: Sendable { case none, retire, stopWorkAndRetire }
    enum Ending: Sendable { case ignored, retire, stopWorkAndRetire, leaveToStarter, leaveSourceAndRetire }

    /// Counts one more dependency. False if the operation was submitted or has ended: then it is too late to wait.
    mutating func expectDependency() -> Bool {
        guard case .pending = phase, !isSubmitted else { return false }
        unmetDependencies += 1
        return true
    }

    /// Counts a dependency as met. True if it was the last one, and the operation is now ready.
    mutating func dependencyMet() -> Bool {
        unmetDependencies -= 1
        return becomeReady()
    }

    /// Lets the operation run as soon as its dependencies are met. True if it is ready now.
    mutating func submit() -> Bool {
        guard case .pending = phase, !isSubmitted else { return false }
        isSubmitted = true
        return becomeReady()
    }

    private mutating func becomeReady() -> Bool {
        guard case .pending = phase, isSubmitted, unmetDependencies == 0 else { return false }
        phase = .ready
        return true
    }

    /// Leaves the work to another operation. True if this one had not been submitted.
    mutating func coalesce() -> Bool {
        guard case .pending = phase, !isSubmitted else { return false }
        phase = .coalesced
        return true
    }

    /// Undoes `coalesce()`: the other operation has refused this one.
    mutating func uncoalesce() {
        if case .coalesced = phase { phase = .pending }
    }

    /// Begins the operation. True exactly once: the caller calls `execute()` and then `entered()`.
    mutating func begin() -> Bool {
        guard case .ready = phase else { return false }
        phase = .starting
        return true
    }

    /// Notes that `execute()` has returned.
    mutating func entered() -> Entered {
        switch phase {
        case .starting:
            phase = .executing
            return .none
        case .stopping(let outcome, let stopsWork):
            phase = .ending(outcome: outcome)
            return stopsWork ? .stopWorkAndRetire : .retire
        case .pending, .ready, .executing, .coalesced, .ending, .ended:
            return .none
        }
    }

    /// Ends the operation with `outcome` (`nil` is success). Anything but `.ignored` is returned exactly once.
    mutating func end(_ outcome: OperationError?, by initiator: Initiator) -> Ending {
        switch phase {
        case .pending, .ready:
            phase = .ending(outcome: outcome)
            return .retire
        case .starting:
            phase = .stopping(outcome: outcome, stopsWork: initiator == .outside)
            return .leaveToStarter
        case .executing:
            phase = .ending(outcome: outcome)
            return initiator == .outside ? .stopWorkAndRetire : .retire
        case .coalesced:
            phase = .ending(outcome: outcome)
            return .leaveSourceAndRetire
        case .stopping, .ending, .ended:
            return .ignored
        }
    }

    /// Notes that the manager no longer holds the operation.
    mutating func retire() {
        if case .ending(let outcome) = phase { phase = .ended(outcome: outcome) }
    }

    /// The outcome: `nil` before the end, then `.some(nil)` for success.
    var outcome: OperationError?? {
        switch phase {
        case .pending, .ready, .starting, .executing, .coalesced: nil
        case .stopping(let outcome, _), .ending(let outcome), .ended(let outcome): .some(outcome)
        }
    }

    /// The outcome, once no manager holds the operation any more; `nil` before.
    var finalOutcome: OperationError?? {
        if case .ended(let outcome) = phase { .some(outcome) } else { nil }
    }

    /// Whether the operation is neither submitted, coalesced nor ended.
    var isFresh: Bool {
        if case .pending = phase { !isSubmitted } else { false }
    }

    var visiblePhase: OperationPhase {
        switch phase {
        case .pending: .pending
        case .ready: .ready
        case .starting, .executing, .coalesced: .executing
        case .stopping(.cancelled, _), .ending(.cancelled), .ended(.cancelled): .cancelled
        case .stopping, .ending, .ended: .finished
        }
    }
}
