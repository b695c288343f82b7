/// All operations in flight: whoever asks for work that is being done joins it, whoever asks first starts it, and both
/// are one atomic step per identifier. Plain operations run beside them under the same limit.
///
/// Make one and pass it to those who need it; never a global.
///
///     let users = OperationQueueManager<Int>()
///     let waiter = Waiter<User>(on: loop) { result in page.show(result) }
///     switch users.enqueue(7, waiter: waiter, make: { UserQuery(id: 7, database: database) }) {
///     case .started(let query, let token), .joined(let query, let token, _): page.onClose { query.leave(token) }
///     case .refused(let reason, _): page.showBusy(reason)
///     }
///
/// **Same work** means equal identifier and same class. The identifier is the one given to `enqueue`; an operation made
/// with another is refused as `.foreign`. The class is that of what `make` gives, as Swift infers it: a closure that
/// gives now one subclass, now another, names their superclass, and its operations are refused as `.foreign` too.
///
/// **Locks.** The table is split by the identifier's hash into shards with a lock each; the start gate has one more,
/// taken only by those who start or end an operation, never by those who join. Order: shard → gate, shard → operation.
/// Under a shard's lock only `unless`, `make` and `accepts` of a user's run; they must be quick and may not call this
/// manager. `execute()`, `cancelWork()`, callbacks and observers run without any lock.
///
/// **One at a time.** While an operation that has ended is still being stopped, the next one for its identifier is
/// found by those who join, but begins only when the first is gone. Two run side by side only when the first refused to
/// be shared (`close()`, `accepts`).
///
/// Operations in flight keep their manager alive, and it them.
public final class OperationQueueManager<Key: Hashable & Sendable>: Sendable {
    /// Limits and defaults of one manager.
    public struct Settings: Sendable {
        /// How many operations run at the same time. Unlimited by default: operations hold no thread.
        public var maxConcurrent = Int.max
        /// How many more may wait to start, for a slot or for dependencies; unlimited by default. Beyond it `enqueue`
        /// starts nothing and answers `.refused(.queueFull, by: nil)`; joining goes on.
        public var maxQueued = Int.max
        /// After how many grants one goes to the longest waiting instead of the most urgent: one slot in eight for the
        /// unimportant.
        public var agingInterval = 8
        /// Parts of the table; rounded up to a power of two. Several times the number of threads makes contention rare.
        public var shards = 64
        /// The group of an identifier, by which `operations(inGroup:)` finds it with others: a hash of what they have
        /// in common, say the user whose many pictures are each work of their own. Called under a lock.
        public var group: (@Sendable (Key) -> Int)?
        /// Called for every operation of this manager.
        public var observers: [OperationObserver] = []

        public init() {}
    }

    @usableFromInline let shards: [InFlightShard<Key>]
    @usableFromInline let gate: OperationGate
    @usableFromInline let observers: [OperationObserver]
    @usableFromInline let group: (@Sendable (Key) -> Int)?

    /// Makes a manager with nothing in flight. Meant to be injected, never to be a global.
    public init(settings: Settings = Settings()) {
        let bits = (max(1, settings.shards) - 1).bitWidth - (max(1, settings.shards) - 1).leadingZeroBitCount
        shards = (0..<(1 << min(bits, 16))).map { _ in InFlightShard() }
        gate = OperationGate(
            StartGate(
                maxConcurrent: settings.maxConcurrent, maxQueued: settings.maxQueued,
                agingInterval: settings.agingInterval))
        observers = settings.observers
        group = settings.group
    }

    @inlinable
    func shard(for hash: Int) -> InFlightShard<Key> {
        shards[hash & (shards.count - 1)]
    }

    /// Where an operation without a name is counted: any shard, but threads should not all contend for one.
    @inlinable
    func anyShard(for operation: AnyOperation) -> InFlightShard<Key> {
        // Objects lie 16 bytes apart.
        shard(for: Int(truncatingIfNeeded: UInt(bitPattern: ObjectIdentifier(operation)) >> 4))
    }

    // MARK: Looking in from outside

    /// The operation in flight under `identifier`, if there is one of exactly this class.
    @inlinable
    public func operation<Op: AnyOperation>(for identifier: Key, as kind: Op.Type = Op.self) -> Op? {
        let name = InFlightName(identifier, ObjectIdentifier(kind))
        // One that has ended may still stand there while it is being stopped.
        guard let operation = shard(for: name.hash).table.withLock({ $0[name]?.operation }), !operation.hasEnded else {
            return nil
        }
        return operation as? Op
    }

    /// All operations that have not ended, in no order: those that run, wait, or wait for dependencies.
    public var operations: [AnyOperation] {
        gate.read { $0.members }
    }

    /// All operations in flight with an identifier, or an alias, of this group (`Settings.group`); one may be there
    /// twice. Takes time in proportion to their number, however many others there are. Any thread.
    public func operations(inGroup group: Int) -> [AnyOperation] {
        gate.read { $0.members(inGroup: group) }
    }

    /// The manager's present state, and what it has counted. Takes each shard's lock in turn. Any thread.
    public var snapshot: OperationQueueSnapshot {
        var snapshot = OperationQueueSnapshot()
        for shard in shards { snapshot.add(shard.counters) }
        let (running, queued) = gate.read { ($0.running, $0.queued) }
        snapshot.inFlight = running + queued
        snapshot.queued = queued
        return snapshot
    }

    // MARK: Steering

    /// Cancels everything in flight at this moment. Whoever waits gets `.cancelled`.
    public func cancelAll() {
        for operation in operations { operation.cancel() }
    }

    /// Starts nothing more until `resume()`. Running operations and joining go on.
    public func pause() {
        gate.change { $0.isPaused = true }
    }

    /// Begins what has queued up since `pause`. Any thread.
    public func resume() {
        gate.beginNext { $0.isPaused = false }
    }

    /// How many operations run at the same time. May change at any time; lowering it stops nothing that runs.
    public var maxConcurrent: Int {
        get { gate.read { $0.maxConcurrent } }
        set { gate.beginNext { $0.maxConcurrent = newValue } }
    }

    /// How many more may wait to start. May change at any time; those that wait stay.
    public var maxQueued: Int {
        get { gate.read { $0.maxQueued } }
        set { gate.change { $0.maxQueued = newValue } }
    }

    // MARK: Letting in

    /// Makes `operation` one of this manager's. False if it is not a fresh one. Call `submit()` on it next, without a
    /// lock.
    @inlinable
    func enrol(
        _ operation: AnyOperation, in shard: InFlightShard<Key>, as name: InFlightName<Key>?,
        group: Int?, priority: OperationPriority
    ) -> Bool {
        // Strong: operations in flight keep their manager alive.
        var forget: Enrolment.Forget?
        if let name { forget = { self.shard(for: name.hash).remove($0, from: name) } }
        let enrolment = Enrolment(gate: gate, counters: shard.counters, forget: forget)
        guard case .adopted = operation.adopt(enrolment, observers: observers, priority: priority) else { return false }
        gate.enter(operation, group: group)
        shard.counters.started.count()
        return true
    }

    // MARK: Aliases

    /// Makes `operation`, which is in flight here, findable under a second identifier too, until it ends.
    ///
    /// - Returns: False when it has ended or is not of this manager, or when another operation that still takes waiters
    ///   has that identifier. It is found by the identifier's group (`Settings.group`) all the same, unless it has
    ///   ended.
    @discardableResult
    @inlinable
    public func addAlias<Value>(_ operation: CoalescibleOperation<Value>, for identifier: Key) -> Bool {
        guard operation.isEnrolled(in: gate) else { return false }
        let name = InFlightName(identifier, ObjectIdentifier(type(of: operation)))
        let shard = shard(for: name.hash)
        // First: who finds it by its alias is found with it.
        let membership = group.flatMap { gate.addMembership(of: operation, in: $0(identifier)) }
        let isEntered = shard.table.withLock { table in
            guard let current = table[name]?.operation else {
                table[name] = InFlightEntry(operation)
                return true
            }
            guard current === operation || current.isReplaceable else { return false }
            table[name]?.operation = operation
            return true
        }
        guard isEntered || membership != nil else { return false }
        let forget: Enrolment.Forget = { [gate] operation in
            shard.remove(operation, from: name)
            if let membership { gate.endMembership(membership) }
        }
        // Ended between the two steps: then nobody else would take the alias away.
        guard operation.addAlias(in: gate, forget: forget) else {
            forget(operation)
            return false
        }
        return isEntered
    }
}
