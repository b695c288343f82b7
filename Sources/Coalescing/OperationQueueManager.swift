/// All operations in flight. A caller that asks for work in progress joins it, the first caller starts it, and both are
/// one atomic step per identifier. Plain operations run beside them under the same limit.
///
/// Make one and pass it to its users; never make it a global.
///
///     let users = OperationQueueManager<Int>()
///     let waiter = Waiter<User>(on: loop) { result in page.show(result) }
///     switch users.enqueue(7, waiter: waiter, make: { UserQuery(id: 7, database: database) }) {
///     case .started(let query, let token), .joined(let query, let token, _): page.onClose { query.leave(token) }
///     case .refused(let reason, _): page.showBusy(reason)
///     }
///
/// **Same work** means equal identifier and same type. The identifier is the one given to `enqueue`; an operation made
/// with another identifier is refused as `.foreign`. The type is the one that `make` returns, as Swift infers it: if a
/// closure returns now one subclass, now another, it is their superclass, and callers that name it join either.
///
/// **Locks.** The table is split by the identifier's hash into shards with a lock each. The start gate has one more
/// lock, taken only when an operation starts or ends, never when a caller joins. Order: shard → gate, shard →
/// operation. Of a user's code, only `unless`, `make` and `accepts` run under a shard's lock; they must be quick, and
/// must not call this manager. `execute()`, `cancelWork()`, callbacks and observers run without any lock.
///
/// **One at a time.** While an operation that has ended is still being stopped, the next one for its identifier can be
/// found and joined, but begins only when the first one is gone. Two run side by side only if the first one refused to
/// be shared (`close()`, `accepts`).
///
/// Operations in flight keep their manager alive, and the manager keeps them alive.
public final class OperationQueueManager<Key: Hashable & Sendable>: Sendable {
    @usableFromInline let shards: [InFlightShard<Key>]
    /// Shared by all shards.
    @usableFromInline package let gate: OperationGate
    /// The counts of immediate operations, which the snapshot leaves out.
    @usableFromInline let uncounted = ShardCounters()
    @usableFromInline let observers: [OperationObserver]
    @usableFromInline let group: (@Sendable (Key) -> Int)?

    /// Makes a manager with nothing in flight.
    /// - Parameters:
    ///   - maxConcurrent: see `maxConcurrent`.
    ///   - maxQueued: see `maxQueued`.
    ///   - agingInterval: every so many grants, one goes to the operation that has waited longest, not to the one with
    ///     the highest priority: by default one slot in eight is for unimportant work.
    ///   - shards: the number of shards, rounded up to a power of two. Several times the number of threads makes
    ///     contention rare.
    ///   - group: the group of an identifier, by which `operations(inGroup:)` finds related operations: a hash of the
    ///     common part of their identifiers, for example of the user whose many pictures are each work of their own.
    ///     Called under a lock.
    ///   - observers: called for every operation of this manager.
    public init(
        maxConcurrent: Int = .max, maxQueued: Int = .max, agingInterval: Int = 8, shards: Int = 64,
        group: (@Sendable (Key) -> Int)? = nil, observers: [OperationObserver] = []
    ) {
        let bits = (max(1, shards) - 1).bitWidth - (max(1, shards) - 1).leadingZeroBitCount
        self.shards = (0..<(1 << min(bits, 16))).map { _ in InFlightShard() }
        gate = OperationGate(
            StartGate(maxConcurrent: maxConcurrent, maxQueued: maxQueued, agingInterval: agingInterval))
        self.observers = observers
        self.group = group
    }

    @inlinable
    func shard(for hash: Int) -> InFlightShard<Key> {
        shards[hash & (shards.count - 1)]
    }

    /// The shard that counts an operation without a name: any shard, but threads should not all contend for one.
    @inlinable
    func anyShard(for operation: AnyOperation) -> InFlightShard<Key> {
        // Objects lie 16 bytes apart.
        shard(for: Int(truncatingIfNeeded: UInt(bitPattern: ObjectIdentifier(operation)) >> 4))
    }

    // MARK: Reading the manager's state

    /// The operation in flight under `identifier` that was enqueued as one of this class.
    @inlinable
    public func operation<Op: AnyOperation>(for identifier: Key, as kind: Op.Type = Op.self) -> Op? {
        let name = InFlightName(identifier, ObjectIdentifier(kind))
        // An operation that has ended may still be in the table while it is being stopped.
        guard let operation = shard(for: name.hash).table.withLock({ $0[name]?.operation }), !operation.hasEnded else {
            return nil
        }
        return operation as? Op
    }

    /// All operations that have not ended, in no order: running, waiting for a slot, or waiting for dependencies.
    public var operations: [AnyOperation] {
        gate.read { $0.members }
    }

    /// All operations in flight with an identifier, or an alias, of this group (see `init`); an operation may
    /// occur twice. Takes time in proportion to their number, however many other operations there are. Any thread.
    public func operations(inGroup group: Int) -> [AnyOperation] {
        gate.read { $0.members(inGroup: group) }
    }

    /// The manager's present state and its counters. Takes each shard's lock in turn. Any thread.
    public var snapshot: OperationQueueSnapshot {
        var snapshot = OperationQueueSnapshot()
        for shard in shards { snapshot.add(shard.counters) }
        let (running, queued) = gate.read { ($0.running, $0.queued) }
        snapshot.inFlight = running + queued
        snapshot.queued = queued
        return snapshot
    }

    // MARK: Control

    /// Cancels all operations in flight at this moment. Their waiters get `.cancelled`.
    public func cancelAll() {
        for operation in operations { operation.cancel() }
    }

    /// Starts no more operations until `resume()`. Running operations continue, and joining remains possible.
    public func pause() {
        gate.beginNext { $0.isPaused = true }
    }

    /// Begins the operations that have queued up since `pause`. Any thread.
    public func resume() {
        gate.beginNext { $0.isPaused = false }
    }

    /// The maximum number of operations that run at the same time. Unlimited by default: operations hold no thread. May
    /// change at any time; lowering the limit stops no running operation.
    public var maxConcurrent: Int {
        get { gate.read { $0.maxConcurrent } }
        set { gate.beginNext { $0.maxConcurrent = newValue } }
    }

    /// The maximum number of further operations that wait to start, for a slot or for dependencies; unlimited by default.
    /// Beyond it, `enqueue` starts no operation and returns `.refused(.queueFull, by: nil)`; joining remains possible.
    /// May change at any time; lowering the limit removes no waiting operation.
    public var maxQueued: Int {
        get { gate.read { $0.maxQueued } }
        set { gate.set(maxQueued: newValue) }
    }

    // MARK: Admission

    /// Makes `operation`, which was admitted, one of this manager's. Call `OperationGate.start` next, without a lock.
    /// - Parameters:
    ///   - name: the operation's name in the table; `nil` if no caller can find it.
    ///   - submits: see `OperationGate.enrol`.
    /// - Returns: `nil` if the operation is not fresh.
    @inlinable
    func enrol(
        _ operation: AnyOperation, in shard: InFlightShard<Key>, as name: InFlightName<Key>?,
        group: Int?, priority: OperationPriority, submits: Bool
    ) -> OperationGate.Entry? {
        // Strong: operations in flight keep their manager alive.
        var forget: Forget?
        if let name { forget = { self.shard(for: name.hash).remove($0, from: name) } }
        return gate.enrol(
            operation, counters: priority == .immediate ? uncounted : shard.counters, forget: forget,
            observers: observers, priority: priority, group: group,
            submits: submits)
    }

    // MARK: Aliases

    /// Makes `operation`, which is in flight here, findable under a second identifier too, until it ends.
    ///
    /// - Returns: false if it has ended or is not of this manager, or if another operation that still accepts waiters
    ///   has that identifier. In the last case it is found by the identifier's group (see `init`) all the same,
    ///   unless it has ended.
    @discardableResult
    @inlinable
    public func addAlias<Op: SharedOperation>(_ operation: Op, for identifier: Key) -> Bool {
        guard operation.isEnrolled(in: gate) else { return false }
        let name = InFlightName(identifier, ObjectIdentifier(Op.self))
        let shard = shard(for: name.hash)
        // The group comes first: an operation that is found by its alias must also be found by the alias's group.
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
        let forget: Forget = { [gate] operation in
            shard.remove(operation, from: name)
            if let membership { gate.endMembership(membership) }
        }
        // The operation has ended between the two steps: no other code would remove the alias.
        guard operation.addAlias(in: gate, forget: forget) else {
            forget(operation)
            return false
        }
        return isEntered
    }
}
