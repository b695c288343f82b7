public import Synchronization

/// One piece of asynchronous work that holds no thread while it waits: the common part of `CoalescibleOperation`
/// (shared, has a value) and `PlainOperation` (never shared). Every operation is one of these two. (Foundation has a
/// class named `Operation`, hence the name.)
///
/// A subclass overrides `execute()`, which begins the work and returns; when the work has ended it calls `finish` of
/// its kind, from any thread. An operation ends exactly once: the first of `finish`, `cancel()` and a failing
/// dependency wins.
///
/// Every method may be called on every thread. One lock per operation protects its life (`state`), another its waiters;
/// neither is ever held while the other is taken, nor while anything of a subclass, handler or observer runs.
@ThreadSafe
open class AnyOperation {
    struct State: Sendable {
        var lifecycle = Lifecycle()
        /// The manager's record of the operation, from `adopt` to the end.
        var enrolment: Enrolment?
        var observers: [OperationObserver] = []
        /// Called with the outcome when it has ended.
        var sequels: [@Sendable (OperationError?) -> Void] = []
        /// What it depends on, kept only to find cycles.
        var dependencies: [WeakOperation] = []

        /// Who is still to be told that the operation has ended.
        struct Farewell: Sendable {
            let phase: OperationPhase
            let observers: [OperationObserver]
            let sequels: [@Sendable (OperationError?) -> Void]
        }

        /// Retires the operation, which its manager has let go of. `nil` when nobody has to hear of that, which is the
        /// rule.
        mutating func retire() -> Farewell? {
            lifecycle.retire()
            if !dependencies.isEmpty { dependencies = [] }
            guard !observers.isEmpty || !sequels.isEmpty else { return nil }
            defer { (observers, sequels) = ([], []) }
            return Farewell(phase: lifecycle.visiblePhase, observers: observers, sequels: sequels)
        }
    }

    /// A weak reference to an operation: a waiter must not be what keeps it from being abandoned.
    struct WeakOperation: Sendable {
        weak var operation: AnyOperation?
    }

    nonisolated let state = Protected(State())
    /// Whether the outcome stands. Set under the lock of `state`, and never taken back.
    private nonisolated let isDecided = Atomic(false)
    @usableFromInline nonisolated let priorityLevel: Atomic<UInt8>
    /// The operation's record at its manager's gate, read and written under the gate's lock.
    private nonisolated let gateRecord = Atomic<UInt64>(.max)

    @usableFromInline
    nonisolated init() {
        priorityLevel = Atomic(OperationPriority.background.rawValue)
    }

    deinit {
        // Dropped without a manager and without an end: operations that depend on it must not hang.
        guard !hasEnded else { return }
        let sequels = state.withLock { $0.sequels }
        for sequel in sequels { sequel(.abandoned) }
    }

    // MARK: For subclasses

    /// Begins the work. Called once, on the thread that started the operation; return soon.
    nonisolated open func execute() {}

    /// Stops the work that `execute()` began. Called at most once, after `execute()` has returned, on the thread that
    /// cancelled the operation (or on the one that ran `execute()`, when it was cancelled meanwhile). The operation has
    /// ended by then: `finish` is ignored.
    nonisolated open func cancelWork() {}

    // MARK: For everybody

    /// Where the operation stands at this moment. Any thread.
    public nonisolated final var phase: OperationPhase { state.withLock { $0.lifecycle.visiblePhase } }

    /// Whether the outcome stands. A long computation inside `execute()` looks here to learn that it was cancelled.
    public nonisolated final var hasEnded: Bool { isDecided.load(ordering: .acquiring) }

    /// The error it ended with; `nil` before the end and for success.
    public nonisolated final var error: OperationError? { state.withLock { $0.lifecycle.outcome ?? nil } }

    /// The highest priority that anybody has asked for: raised, never lowered.
    @inlinable
    public nonisolated final var priority: OperationPriority {
        OperationPriority(rawValue: priorityLevel.load(ordering: .relaxed)) ?? .background
    }

    /// Moves it forward in its queue if it still waits there. Does nothing unless `priority` is higher than its own.
    @inlinable
    public nonisolated final func raisePriority(to priority: OperationPriority) {
        if self.priority < priority { raisePrioritySlow(to: priority) }
    }

    @usableFromInline
    nonisolated final func raisePrioritySlow(to priority: OperationPriority) {
        priorityLevel.max(priority.rawValue, ordering: .relaxed)
        state.withLock { $0.enrolment?.gate }?.priorityRaised(of: self)
    }

    /// Runs it without a manager, as soon as its dependencies are met. Does nothing if it was started or ended before.
    public nonisolated final func start() {
        submit()
    }

    /// Ends it with `.cancelled` and stops its work. False if it had ended already.
    @discardableResult
    public nonisolated final func cancel() -> Bool {
        endFromOutside(with: .cancelled)
    }

    /// Calls `observer` from now on. One that asks for an end which has already come is called at once.
    public nonisolated final func add(_ observer: OperationObserver) {
        let missed = state.withLock { state -> (OperationPhase, OperationError?)? in
            if let outcome = state.lifecycle.finalOutcome { return (state.lifecycle.visiblePhase, outcome) }
            state.observers.append(observer)
            return nil
        }
        if let (phase, error) = missed {
            observer.tell(.init(operation: self, phase: phase, error: error))
        }
    }

    // MARK: The steps of its life

    @usableFromInline
    enum Adoption: Sendable {
        /// The operation already has a manager or is no longer fresh.
        case refused
        case adopted
        /// Adopted and submitted: ready to begin as soon as the manager's gate lets it.
        case ready
    }

    /// - Parameter submits: whether it is submitted in the same step, if it depends on nothing.
    @usableFromInline
    nonisolated final func adopt(
        _ enrolment: consuming Enrolment, observers: [OperationObserver], priority: OperationPriority,
        submits: Bool = false
    ) -> Adoption {
        var own: [OperationObserver] = []
        // Moved, not copied: it holds several references.
        var enrolment: Enrolment? = consume enrolment
        let adoption = state.withLock { state -> Adoption in
            guard state.enrolment == nil, state.lifecycle.isFresh else { return .refused }
            // Before anyone can find it, so no gate needs to be told.
            priorityLevel.max(priority.rawValue, ordering: .relaxed)
            state.enrolment = enrolment.take()
            if !observers.isEmpty { state.observers += observers }
            guard submits, state.lifecycle.submitIndependent() else { return .adopted }
            own = state.observers
            return .ready
        }
        if case .ready = adoption { tell(own, .ready) }
        return adoption
    }

    /// Has `forget` called, too, when the operation ends. False when it has ended already, or is of no manager with
    /// that gate.
    @usableFromInline
    nonisolated final func addAlias(in gate: OperationGate, forget: @escaping Enrolment.Forget) -> Bool {
        state.withLock { state in
            guard state.enrolment?.gate === gate else { return false }
            state.enrolment?.addAlias(forget: forget)
            return true
        }
    }

    @usableFromInline
    nonisolated final func isEnrolled(in gate: OperationGate) -> Bool {
        state.withLock { $0.enrolment?.gate === gate }
    }

    @usableFromInline
    nonisolated final func submit() {
        if state.withLock({ $0.lifecycle.submit() }) == .ready { becameReady() }
    }

    nonisolated final func becameReady() {
        let (gate, observers) = state.withLock { ($0.enrolment?.gate, $0.observers) }
        tell(observers, .ready)
        if let gate { gate.operationIsReady(self) } else { begin() }
    }

    /// Calls `execute()` unless it has ended meanwhile.
    ///
    /// - Returns: True if it has ended already, or never begins: the caller releases its slot, which is harmless if
    ///   somebody else did. If it were released here, each operation that finishes at once would begin the next one
    ///   deeper in the stack.
    @discardableResult
    nonisolated final func begin() -> Bool {
        let observers = state.withLock { $0.lifecycle.begin() ? $0.observers : nil }
        guard let observers else { return true }
        tell(observers, .executing)
        execute()
        switch state.withLock({ $0.lifecycle.entered() }) {
        case .none:
            return false
        case .retire:
            retire(.none)
            return true
        case .stopWorkAndRetire:
            cancelWork()
            retire(.none)
            return true
        }
    }

    /// Ends it unless it has ended already. `conclude` is called exactly when this call decides the outcome, and gives
    /// the callbacks that are due.
    @discardableResult
    nonisolated final func end(
        _ outcome: OperationError?, by initiator: Lifecycle.Initiator, conclude: () -> WakeUps
    ) -> Bool {
        let ending = state.withLock { state in
            let ending = state.lifecycle.end(outcome, by: initiator)
            if ending != .ignored { isDecided.store(true, ordering: .releasing) }
            return ending
        }
        if ending == .ignored { return false }
        let wakeUps = conclude()
        switch ending {
        case .ignored, .retire:
            break
        case .stopWorkAndRetire:
            cancelWork()
        case .leaveSourceAndRetire:
            leaveSource()
        case .leaveToStarter:
            wakeUps.send()
            return true
        }
        // Last, because it may begin other operations on this stack.
        retire(wakeUps)?.releaseSlot(of: self)
        return true
    }

    /// Takes the operation out of the table first, so that whoever is called back and asks again starts anew; then
    /// calls back; then tells observers and those who depend on it.
    ///
    /// - Returns: Who holds its slot.
    @discardableResult
    private nonisolated final func retire(_ wakeUps: WakeUps) -> OperationGate? {
        // Swapped, not copied: it holds several references.
        var enrolment: Enrolment?
        var farewell: State.Farewell?
        let (outcome, isFindable) = state.withLock { state in
            swap(&enrolment, &state.enrolment)
            let outcome = state.lifecycle.outcome ?? nil
            let isFindable = enrolment?.isFindable ?? false
            // What is in no table need not be out of it first.
            if !isFindable { farewell = state.retire() }
            return (outcome, isFindable)
        }
        enrolment?.forget(self, outcome: outcome)
        if isFindable { farewell = state.withLock { $0.retire() } }
        wakeUps.send()
        if let farewell {
            tell(farewell.observers, farewell.phase, error: outcome)
            for sequel in farewell.sequels { sequel(outcome) }
        }
        return enrolment?.gate
    }

    /// Counts waiters that could not be served with the value, for `OperationQueueSnapshot.released`: for a waiter that
    /// shares its seat (`CoalescibleOperation.join(behind:)`) and finds that out itself. Any thread.
    public nonisolated final func countReleased(_ count: Int = 1) {
        state.withLock { $0.enrolment?.counters }?.released.count(count)
    }

    @usableFromInline
    nonisolated final func countJoined(late: Bool) {
        guard let counters = state.withLock({ $0.enrolment?.counters }) else { return }
        if late { counters.joinedLate.count() } else { counters.joined.count() }
    }

    /// Ends the operation because its work has ended: see `end`.
    @usableFromInline
    nonisolated final func endByWork(_ outcome: OperationError?, conclude: () -> WakeUps) -> Bool {
        end(outcome, by: .work, conclude: conclude)
    }

    private nonisolated final func tell(
        _ observers: [OperationObserver], _ phase: OperationPhase, error: OperationError? = nil
    ) {
        for observer in observers { observer.tell(.init(operation: self, phase: phase, error: error)) }
    }

    // MARK: What a kind of operation adds (inside this module)

    /// Ends it with an error that did not come from its own work.
    @discardableResult
    nonisolated func endFromOutside(with error: OperationError) -> Bool {
        end(error, by: .outside) { .none }
    }

    /// Whether it is alive but nobody may join it any more, so that another may take its place in the table.
    @usableFromInline
    nonisolated var isReplaceable: Bool { false }

    /// Stops following the operation it was coalesced into.
    nonisolated func leaveSource() {}

    /// Ends the stay of one who is here for another operation.
    nonisolated func endStay(_ token: WaiterToken) {}
}

extension AnyOperation: GateMember {
    nonisolated final var record: SlotToken {
        let record = gateRecord.load(ordering: .relaxed)
        return SlotToken(index: UInt32(truncatingIfNeeded: record), stay: UInt32(truncatingIfNeeded: record >> 32))
    }

    nonisolated final func keep(record: SlotToken) {
        gateRecord.store(UInt64(record.stay) << 32 | UInt64(record.index), ordering: .relaxed)
    }
}
