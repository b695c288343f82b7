import Synchronization

/// A manager's start gate and its lock. Begins the operations that the gate lets through.
@usableFromInline
package final class OperationGate: Sendable {
    private let gate: Protected<StartGate<AnyOperation>>

    /// Whether the number of waiting operations is limited. Most managers need no room made.
    private let refuses: Atomic<Bool>

    init(_ gate: StartGate<AnyOperation>) {
        self.gate = Protected(gate)
        refuses = Atomic(gate.maxQueued < .max)
    }

    func set(maxQueued: Int) {
        refuses.store(maxQueued < .max, ordering: .relaxed)
        gate.withLock { $0.maxQueued = maxQueued }
    }

    func read<Answer: Sendable>(_ question: (StartGate<AnyOperation>) -> Answer) -> Answer {
        gate.withLock { question($0) }
    }

    /// Changes the gate, then begins the operations that may start because of the change.
    func beginNext(after change: (inout StartGate<AnyOperation>) -> Void) {
        var next = gate.withLock { gate in
            change(&gate)
            return gate.next()
        }
        while let operation = next {
            let isOver = operation.begin()
            next = gate.withLock { gate in
                if isOver { gate.leave(operation) }
                return gate.next()
            }
        }
    }

    /// Makes an admitted operation a member. It begins only in `start`, so this may be called under a shard's lock.
    /// - Parameters:
    ///   - counters: the counters of the operation's shard.
    ///   - forget: see `Enrolment`.
    ///   - submits: whether to submit the operation in the same step, if nothing stands against it.
    /// - Returns: the argument of `start`; `nil` if the operation already has a manager or is no longer fresh.
    @usableFromInline
    func enrol(
        _ operation: AnyOperation, counters: ShardCounters, forget: consuming Forget?, observers: [OperationObserver],
        priority: OperationPriority, group: Int?, submits: Bool
    ) -> Entry? {
        let isSubmitted = operation.adopt(
            by: self, counters: counters, forget: forget, observers: observers, priority: priority, submits: submits)
        switch isSubmitted {
        case nil:
            withdraw()
            return nil
        case false:
            counters.started.count()
            gate.withLock { $0.enter(operation, group: group) }
            return .unsubmitted
        case true:
            counters.started.count()
            return gate.withLock { $0.enterReady(operation, group: group, priority: operation.priority) }
                ? .running : .waiting
        }
    }

    /// How far an operation has come in `enrol`.
    @usableFromInline
    package enum Entry: Sendable { case unsubmitted, waiting, running }

    /// Goes on with an operation after `enrol`. Never under a lock.
    @usableFromInline
    func start(_ operation: AnyOperation, _ entry: Entry) {
        switch entry {
        case .unsubmitted:
            operation.start()
            // It may have ended before it entered.
            if operation.hasEnded { releaseSlot(of: operation) }
        case .waiting: beginNext { _ in }
        case .running: if operation.begin() { releaseSlot(of: operation) }
        }
    }

    /// Makes room for an operation that is about to enter. False if there is no room.
    @usableFromInline
    func admit(_ priority: OperationPriority) -> Bool {
        !refuses.load(ordering: .relaxed) || gate.withLock { $0.admit(priority) }
    }

    /// Gives back the room that `admit` reserved.
    @usableFromInline
    func withdraw() {
        gate.withLock { $0.withdraw() }
    }

    /// Adds `operation` to a further group, until `endMembership`. `nil` if it entered with this group, or has left.
    @usableFromInline
    func addMembership(of operation: AnyOperation, in group: Int) -> SlotToken? {
        gate.withLock { $0.addMembership(of: operation, in: group) }
    }

    @usableFromInline
    func endMembership(_ token: SlotToken) {
        gate.withLock { $0.endMembership(token) }
    }

    /// Submits an operation whose dependencies are met.
    func operationIsReady(_ operation: AnyOperation) {
        beginNext { $0.submit(operation, priority: operation.priority) }
    }

    /// The gate, if others may need the room that `makeRoom` makes.
    var whichRefuses: OperationGate? { refuses.load(ordering: .relaxed) ? self : nil }

    /// Lets others in for an operation that has ended, although it keeps its slot until `releaseSlot`.
    func makeRoom(for operation: AnyOperation) {
        gate.withLock { $0.makeRoom(for: operation) }
    }

    /// Releases the slot of an operation that has ended and is no longer in any table.
    @usableFromInline
    func releaseSlot(of operation: AnyOperation) {
        beginNext { $0.leave(operation) }
    }

    func priorityRaised(of operation: AnyOperation) {
        beginNext { $0.raise(operation, to: operation.priority) }
    }
}
