public import Synchronization

/// One piece of asynchronous work that holds no thread while it waits: the common part of `CoalescibleOperation`
/// (shared, has a value) and `PlainOperation` (never shared). Every operation is one of these two. (Foundation has a
/// class named `Operation`, hence the name.)
///
/// A subclass overrides `execute()`, which begins the work and returns. When the work has ended, the subclass calls
/// `finish`, from any thread. An operation ends exactly once: the first of `finish`, `cancel()` and a failing
/// dependency wins.
///
/// Every method may be called on any thread. One lock per operation protects its life (`state`), another its waiters.
/// Neither lock is held while the other is taken, nor while code of a subclass, a handler or an observer runs.
open class AnyOperation: @unchecked Sendable {
    struct State: Sendable {
        var lifecycle = Lifecycle()
        /// The manager's record of the operation, from `adopt` to the end.
        var enrolment: Enrolment?
        var ties: [Tie] = []

        /// The news of the operation's end that observers and dependent operations have not had yet.
        struct Farewell: Sendable {
            let phase: OperationPhase
            let ties: [Tie]
        }

        /// Retires the operation, which its manager no longer holds. `nil` if it has no ties, as most operations.
        mutating func retire() -> Farewell? {
            lifecycle.retire()
            guard !ties.isEmpty else { return nil }
            defer { ties = [] }
            return Farewell(phase: lifecycle.visiblePhase, ties: ties)
        }
    }

    /// A connection of one operation with others. All are in one array, since most operations have none.
    enum Tie: Sendable {
        case observer(OperationObserver)
        /// Called with the outcome when the operation has ended.
        case sequel(@Sendable (OperationError?) -> Void)
        /// An operation that this one depends on, kept only to find cycles.
        case dependency(WeakOperation)
        /// Takes the operation out of one more place in its manager's table.
        case alias(Forget)
        /// The operation that executes for this one, and the seat that this one has there.
        case source(WeakOperation, WaiterToken)
    }

    /// A weak reference to an operation: a dependent operation must not keep its dependency from being abandoned. A
    /// class, because an array of values with weak references is slow.
    final class WeakOperation: Sendable {
        weak let operation: AnyOperation?

        init(_ operation: AnyOperation) { self.operation = operation }
    }

    let state = Protected(State())
    /// Whether the outcome is decided. Set under the lock of `state`, and never reset.
    private let isDecided = Atomic(false)
    @usableFromInline let priorityLevel = Atomic(OperationPriority.background.rawValue)
    /// The operation's record at its manager's gate, read and written under the gate's lock.
    private let gateRecord = Atomic<UInt64>(.max)

    @usableFromInline
    init() {}

    deinit {
        // The operation was dropped without a manager and without an end: its dependent operations must not wait for
        // ever.
        guard !hasEnded else { return }
        for case .sequel(let sequel) in state.withLock({ $0.ties }) { sequel(.abandoned) }
    }

    // MARK: For subclasses

    /// Begins the work. Called once, on the thread that started the operation; must return soon.
    open func execute() {}

    /// Stops the work that `execute()` began. Called at most once, after `execute()` has returned, on the thread that
    /// cancelled the operation (or on the thread that ran `execute()`, if the operation was cancelled meanwhile). The
    /// operation has ended by then: `finish` is ignored.
    open func cancelWork() {}

    // MARK: For all callers

    /// The phase at this moment. Any thread.
    public final var phase: OperationPhase { state.withLock { $0.lifecycle.visiblePhase } }

    /// Whether the outcome is decided. A long computation inside `execute()` reads this to learn that it was cancelled.
    public final var hasEnded: Bool { isDecided.load(ordering: .acquiring) }

    /// The error that the operation ended with; `nil` before the end and for success.
    public final var error: OperationError? { state.withLock { $0.lifecycle.outcome ?? nil } }

    /// The highest priority that any caller has asked for. Never lowered.
    @inlinable
    public final var priority: OperationPriority {
        OperationPriority(rawValue: priorityLevel.load(ordering: .relaxed)) ?? .background
    }

    /// Moves the operation forward in its queue, if it still waits there. No effect unless `priority` is higher than
    /// its own.
    @inlinable
    public final func raisePriority(to priority: OperationPriority) {
        if self.priority < priority { raisePrioritySlow(to: priority) }
    }

    @usableFromInline
    final func raisePrioritySlow(to priority: OperationPriority) {
        priorityLevel.max(priority.rawValue, ordering: .relaxed)
        state.withLock { $0.enrolment?.gate }?.priorityRaised(of: self)
    }

    /// Runs the operation without a manager, as soon as its dependencies are met. No effect if it was started before,
    /// or has ended.
    public final func start() {
        becomeReady { $0.submit() }
    }

    /// Ends the operation with `.cancelled` and stops its work. False if it had ended already.
    @discardableResult
    public final func cancel() -> Bool {
        endFromOutside(with: .cancelled)
    }

    /// Calls `observer` from now on. If the operation has already ended, an observer of the end is called at once.
    public final func add(_ observer: OperationObserver) {
        let missed = state.withLock { state -> (OperationPhase, OperationError?)? in
            if let outcome = state.lifecycle.finalOutcome { return (state.lifecycle.visiblePhase, outcome) }
            state.ties.append(.observer(observer))
            return nil
        }
        if let (phase, error) = missed {
            observer.tell(.init(operation: self, phase: phase, error: error))
        }
    }

    // MARK: The steps of an operation's life

    /// - Parameter submits: whether to submit the operation in the same step, if it has no dependencies and no observers.
    /// - Returns: whether it was submitted; `nil` if it already has a manager or is no longer fresh.
    final func adopt(
        by gate: OperationGate, counters: ShardCounters, forget: Forget?, observers: [OperationObserver],
        priority: OperationPriority, submits: Bool
    ) -> Bool? {
        state.withLock { state in
            guard state.enrolment == nil, state.lifecycle.isFresh else { return nil }
            // No caller can find the operation yet, so no gate needs to be told of the priority.
            priorityLevel.max(priority.rawValue, ordering: .relaxed)
            state.enrolment = Enrolment(gate: gate, counters: counters, forget: forget)
            if !observers.isEmpty { state.ties += observers.map { .observer($0) } }
            return submits && state.ties.isEmpty && state.lifecycle.submit()
        }
    }

    /// Registers another `forget` to call when the operation ends. False if the operation has ended already, or belongs
    /// to no manager with this gate.
    @usableFromInline
    final func addAlias(in gate: OperationGate, forget: @escaping Forget) -> Bool {
        state.withLock { state in
            guard state.enrolment?.gate === gate else { return false }
            state.ties.append(.alias(forget))
            return true
        }
    }

    @usableFromInline
    final func isEnrolled(in gate: OperationGate) -> Bool {
        state.withLock { $0.enrolment?.gate === gate }
    }

    /// Takes a step of the life that may have made the operation ready: if so, it waits for its slot or begins.
    final func becomeReady(_ step: (inout Lifecycle) -> Bool) {
        let (isReady, gate, ties) = state.withLock { (step(&$0.lifecycle), $0.enrolment?.gate, $0.ties) }
        guard isReady else { return }
        tell(ties, .ready)
        if let gate { gate.operationIsReady(self) } else { begin() }
    }

    /// Begins the operation, which has its slot, here or where `handOver()` says.
    ///
    /// - Returns: true if the operation has ended already, or never begins. The caller then releases its slot, which is
    ///   harmless if the slot was released before. If this method released the slot, each operation that finishes at
    ///   once would begin the next one deeper in the stack.
    @discardableResult
    final func begin() -> Bool { handOver() ? false : begin(execute) }

    /// Calls `execute` unless the operation has ended meanwhile.
    /// - Returns: as `begin()`.
    final func begin(_ execute: () -> Void) -> Bool {
        guard let ties = state.withLock({ $0.lifecycle.begin() ? $0.ties : nil }) else { return true }
        tell(ties, .executing)
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

    /// Ends the operation unless it has ended already. `conclude` is called exactly if this call decides the outcome,
    /// and returns the callbacks that are due.
    @discardableResult
    final func end(
        _ outcome: OperationError?, by initiator: Lifecycle.Initiator, conclude: () -> WakeUps
    ) -> Bool {
        let (ending, gate) = state.withLock { state in
            let ending = state.lifecycle.end(outcome, by: initiator)
            if ending != .ignored { isDecided.store(true, ordering: .releasing) }
            return (ending, state.enrolment?.gate.whichRefuses)
        }
        if ending == .ignored { return false }
        // Before anybody can learn of the end: a caller that asks for the next work must find the room.
        gate?.makeRoom(for: self)
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
        // Last, because releasing the slot may begin other operations on this stack.
        retire(wakeUps)?.releaseSlot(of: self)
        return true
    }

    /// Takes the operation out of the table first, so that a waiter that enqueues again from its callback starts a new
    /// operation. Then calls the waiters back. Then tells the observers and the dependent operations. The slot comes
    /// last, in the caller: it may begin other operations on this stack.
    ///
    /// - Returns: the gate that holds the operation's slot.
    @discardableResult
    private final func retire(_ wakeUps: WakeUps) -> OperationGate? {
        // Swapped, not copied: an enrolment holds several references.
        var enrolment: Enrolment?
        var farewell: State.Farewell?
        var aliases: [Tie] = []
        let (outcome, isFindable) = state.withLock { state in
            swap(&enrolment, &state.enrolment)
            let outcome = state.lifecycle.outcome ?? nil
            if !state.ties.isEmpty { aliases = state.ties.filter { if case .alias = $0 { true } else { false } } }
            // An operation that is in no table need not be taken out before it retires.
            let isFindable = enrolment?.forget != nil || !aliases.isEmpty
            if !isFindable { farewell = state.retire() }
            return (outcome, isFindable)
        }
        forgetWork()
        enrolment?.forget(self, outcome: outcome)
        for case .alias(let forget) in aliases { forget(self) }
        if isFindable { farewell = state.withLock { $0.retire() } }
        let gate = enrolment?.gate
        wakeUps.send()
        if let farewell {
            tell(farewell.ties, farewell.phase, error: outcome)
            for case .sequel(let sequel) in farewell.ties { sequel(outcome) }
        }
        return gate
    }

    /// Counts waiters that could not be served with the value, for `OperationQueueSnapshot.released`: for a waiter that
    /// stands for several callers (`CoalescibleOperation.join(on:accepts:waiter:)`) and itself finds that the value does
    /// not serve one of them. Any thread.
    public final func countReleased(_ count: Int = 1) {
        state.withLock { $0.enrolment?.counters }?.released.count(count)
    }

    @usableFromInline
    final func countJoined(late: Bool) {
        guard let counters = state.withLock({ $0.enrolment?.counters }) else { return }
        if late { counters.joinedLate.count() } else { counters.joined.count() }
    }

    /// Ends the operation because its work has ended: see `end`.
    @usableFromInline
    final func endByWork(_ outcome: OperationError?, conclude: () -> WakeUps) -> Bool {
        end(outcome, by: .work, conclude: conclude)
    }

    private final func tell(_ ties: [Tie], _ phase: OperationPhase, error: OperationError? = nil) {
        for case .observer(let observer) in ties { observer.tell(.init(operation: self, phase: phase, error: error)) }
    }

    // MARK: Overridden by each kind of operation (inside this module)

    /// Ends the operation with an error that did not come from its own work.
    @discardableResult
    package func endFromOutside(with error: OperationError) -> Bool {
        end(error, by: .outside) { .none }
    }

    /// The operation has ended, and does not stop its work any more.
    func forgetWork() {}

    /// Whether the operation, which has its slot now, begins elsewhere: there `begin(_:)` is called.
    func handOver() -> Bool { false }

    /// Whether the operation has not ended but accepts no more waiters, so that another may take its place in the
    /// table.
    @usableFromInline
    var isReplaceable: Bool { false }

    /// Stops following the operation that this one was coalesced into.
    func leaveSource() {}

    /// Ends the stay of another operation that was coalesced into this one.
    func endStay(_ token: WaiterToken) {}
}

extension AnyOperation: GateMember {
    final var record: SlotToken {
        let record = gateRecord.load(ordering: .relaxed)
        return SlotToken(index: UInt32(truncatingIfNeeded: record), stay: UInt32(truncatingIfNeeded: record >> 32))
    }

    final func keep(record: SlotToken) {
        gateRecord.store(UInt64(record.stay) << 32 | UInt64(record.index), ordering: .relaxed)
    }
}
