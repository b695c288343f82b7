/// The result of `enqueue`. A value: any thread may read it.
public enum Enqueued<Op: Sendable, Found: Sendable>: Sendable {
    /// `unless` returned a result, and nothing was changed.
    case found(Found)
    /// The work is in progress already. `late`: its value was there, and is on its way to the waiter.
    case joined(Op, WaiterToken, late: Bool)
    /// A new operation was made, and begins as soon as it may.
    case started(Op, WaiterToken)
    /// No handler will be called. `by`: the operation that is full.
    case refused(Refusal, by: Op?)

    /// The operation that does the caller's work.
    public var operation: Op? {
        switch self {
        case .joined(let operation, _, _), .started(let operation, _): operation
        case .found, .refused: nil
        }
    }

    /// The waiter's token, to leave with; `nil` if the caller does not wait.
    public var token: WaiterToken? {
        switch self {
        case .joined(_, let token, _), .started(_, let token): token
        case .found, .refused: nil
        }
    }
}

extension OperationQueueManager {
    /// The decision made under the shard's lock, and carried out after the lock.
    @usableFromInline
    enum Decision<Op: Sendable, Value: Sendable, Found: Sendable>: Sendable {
        case found(Found)
        case joined(Op, WaiterToken)
        case late(Op, WaiterToken, Value)
        /// `value`: the value, if it was delivered before the operation was ever started.
        case started(Op, WaiterToken, OperationGate.Entry, value: Value?, replaces: Bool)
        case refused(Refusal, Op?)
    }

    /// Joins the operation in flight for `identifier`, or starts a new one. Any thread, like every `enqueue`.
    ///
    /// These steps are atomic for the identifier. First `unless` is called; if it returns a result, that is all.
    /// Otherwise the waiter joins the operation in flight. If there is none, `make` makes a new one. An operation that
    /// is closed, or whose value the waiter does not accept, keeps its present waiters, and the new operation takes its
    /// place. A full operation is closed and replaced only if the caller asks for that; otherwise the result is
    /// `.refused(.full, by:)`.
    ///
    /// - Parameters:
    ///   - identifier: names the work; two calls with equal identifiers and the same `Op` ask for the same work.
    ///   - waiter: the waiter to call back; `nil` if only the work matters (its token is `.none`).
    ///   - priority: the operation's priority is raised to this one.
    ///   - replacesFull: whether a full operation is closed and replaced, so that the callers for which it has no room
    ///     share the next one.
    ///   - unless: looks a last time where finished results are kept. Called under the shard's lock, like `make`.
    ///   - make: makes a new operation, not yet started. Called only if one is needed.
    /// - Returns: the result. No handler was called on this stack, except on an `InlineQueue`. The operation may have
    ///   begun, and even ended, on this stack.
    @inlinable
    public func enqueue<Op: SharedOperation, Found>(
        _ identifier: Key, waiter: Waiter<Op.Value>?, priority: OperationPriority = .normal, replacesFull: Bool = false,
        unless: () -> Found? = { nil as Never? }, make: () -> Op
    ) -> Enqueued<Op, Found> {
        enqueue(
            identifier, waiter: waiter, priority: priority, replacesFull: replacesFull, unless: unless, make: make,
            start: { gate.start($0, $1) })
    }

    /// `enqueue` of work that is no operation yet: `identifier` and the type `W` name the work.
    @inlinable
    public func enqueue<W: Work, Found>(
        _ identifier: Key, waiter: Waiter<W.Value>?, priority: OperationPriority = .normal, replacesFull: Bool = false,
        unless: () -> Found? = { nil as Never? }, make: () -> W
    ) -> Enqueued<WorkOperation<W>, Found> {
        var made: W?
        return enqueue(
            identifier, waiter: waiter, priority: priority, replacesFull: replacesFull, unless: unless,
            make: {
                let work = make()
                made = work
                return WorkOperation<W>(work.lastLeavePolicy, stop: work.stop)
            },
            start: { operation, entry in
                guard let work = made else { return }
                operation.lead(work, from: entry, at: gate) { $1.begin(Completion($0)) }
            })
    }

    /// `enqueue` of work that has a task of its own: `begin` calls `run`. The value's type names the work.
    @inlinable
    package func enqueue<Value, Doing: Sendable>(
        _ identifier: Key, waiter: Waiter<Value>, priority: OperationPriority, unless: () -> Value?, doing: Doing,
        begin: @escaping @Sendable (WorkOperation<TaskWork<Value>>, Doing) -> Void
    ) -> Enqueued<WorkOperation<TaskWork<Value>>, Value> {
        enqueue(
            identifier, waiter: waiter, priority: priority, unless: unless,
            make: { WorkOperation<TaskWork<Value>>(.cancel, stop: nil) },
            start: { $0.lead(doing, from: $1, at: gate, begin) })
    }

    /// `enqueue` for a caller on `queue`, where one waiter stands for all callers (see
    /// `CoalescibleOperation.join(on:accepts:waiter:)`). Call this on that queue.
    ///
    /// - Parameters:
    ///   - accepts: whether a value that was delivered already may serve this caller. Called under the shard's lock,
    ///     like `waiter`.
    ///   - waiter: makes the waiter for all callers on `queue` at the operation, if this is the first of them.
    /// - Returns: as `enqueue`; but if the caller is late, no handler is called for it.
    @inlinable
    public func enqueue<Op: SharedOperation, Found>(
        _ identifier: Key, on queue: any CallbackQueue, accepts: (Op.Value) -> Bool, waiter: (Op) -> Waiter<Op.Value>,
        priority: OperationPriority = .normal, replacesFull: Bool = false, unless: () -> Found?, make: () -> Op
    ) -> Enqueued<Op, Found> {
        let name = InFlightName(identifier, ObjectIdentifier(Op.self))
        let (shard, place) = (shard(for: name.hash), ObjectIdentifier(queue))
        let decision: Decision<Op, Op.Value, Found> = decide(
            name, in: shard, priority: priority, replacesFull: replacesFull, unless: unless,
            join: { operation, leads in
                operation.shared.audience.withLock {
                    $0.join(on: place, leads: leads, accepts: accepts) { waiter(operation) }
                }
            }, make: make)
        return carryOut(decision, priority: priority, in: shard) { gate.start($0, $1) }
    }

    /// Starts an operation for one caller on the operation's home queue: no other caller finds or joins it,
    /// so it takes no place in the table. It counts against the limit, waits for a slot, and is among `operations` like
    /// every other.
    ///
    /// - Parameters:
    ///   - operation: a new operation, not yet started. Dropped if there is no room.
    ///   - group: the group by which `operations(inGroup:)` finds the operation.
    @inlinable
    public func enqueueAloneAtHome<Op: SharedOperation>(
        _ operation: Op, priority: OperationPriority = .normal, group: Int? = nil
    ) -> Enqueued<Op, Never> {
        guard gate.admit(priority) else {
            shards[0].counters.refused.count()
            return .refused(.queueFull, by: nil)
        }
        let shard = anyShard(for: operation)
        guard let entry = enrol(operation, in: shard, as: nil, group: group, priority: priority, submits: true) else {
            shard.counters.refused.count()
            return .refused(.foreign, by: operation)
        }
        guard operation.shared.audience.withLock({ $0.joinAloneAtHome() }) else {
            // Another holder of the operation cancelled it before this call, or delivered a value that no caller had
            // asked for.
            operation.cancel()
            gate.releaseSlot(of: operation)
            shard.counters.refused.count()
            return .refused(.finished, by: operation)
        }
        gate.start(operation, entry)
        return .started(operation, operation.shared.token(for: .home))
    }

    /// - Parameters:
    ///   - submits: see `OperationGate.enrol`.
    ///   - start: called with a new operation after the lock: `OperationGate.start`, and the steps before it.
    @inlinable
    package func enqueue<Op: SharedOperation, Found>(
        _ identifier: Key, waiter: Waiter<Op.Value>?, priority: OperationPriority, replacesFull: Bool = false,
        unless: () -> Found?, make: () -> Op, submits: Bool = true, start: (Op, OperationGate.Entry) -> Void
    ) -> Enqueued<Op, Found> {
        let name = InFlightName(identifier, ObjectIdentifier(Op.self))
        let shard = shard(for: name.hash)
        let decision: Decision<Op, Op.Value, Found> = decide(
            name, in: shard, priority: priority, replacesFull: replacesFull, unless: unless,
            join: { operation, leads in operation.shared.audience.withLock { $0.join(waiter, leads: leads) } },
            make: make, submits: submits)
        switch decision {
        case .late(_, _, let value), .started(_, _, _, .some(let value), _): waiter?.callBack(with: value)
        case .found, .joined, .started, .refused: break
        }
        return carryOut(decision, priority: priority, in: shard, start: start)
    }

    /// The steps of each `enqueue` that are one step for `name`: they run under the lock of the name's shard.
    /// - Parameters:
    ///   - join: lets the caller join the operation; `leads`: the operation was made for the caller.
    ///   - make: makes a new operation.
    @inlinable
    func decide<Op: SharedOperation, Found>(
        _ name: InFlightName<Key>, in shard: InFlightShard<Key>, priority: OperationPriority,
        replacesFull: Bool = false,
        unless: () -> Found?, join: (_ operation: Op, _ leads: Bool) -> Audience<Op.Value>.Join, make: () -> Op,
        submits: Bool = true
    ) -> Decision<Op, Op.Value, Found> {
        shard.table.withLock { table -> Decision<Op, Op.Value, Found> in
            if let found = unless() { return .found(found) }
            let entry = table[name]
            var isOver = false
            var replaces = false
            var full: Op?
            if let current = entry?.operation as? Op {
                switch join(current, false) {
                case .joined(let seat): return .joined(current, current.shared.token(for: seat))
                case .late(let seat, let value): return .late(current, current.shared.token(for: seat), value)
                case .refused(.full):
                    guard replacesFull else { return .refused(.full, current) }
                    full = current
                case .refused(.finished): isOver = true
                case .refused(.foreign): return .refused(.foreign, current)
                case .refused: replaces = true
                }
            }
            guard gate.admit(priority) else { return .refused(.queueFull, nil) }
            let operation = make()
            guard operation.shared.mayBeNamed(name.identifier) else {
                gate.withdraw()
                return .refused(.foreign, operation)
            }
            // Behind an operation that may not be gone yet, the new one is submitted only when it has its dependencies.
            let enrolled = enrol(
                operation, in: shard, as: name, group: group?(name.identifier), priority: priority,
                submits: submits && entry == nil)
            guard let start = enrolled else { return .refused(.foreign, operation) }
            InFlightShard.insert(operation, as: name, over: entry, ended: isOver, in: &table)
            if let full {
                // When a waiter leaves, no caller that holds the operation joins it either.
                full.shared.close()
                replaces = true
            }
            switch join(operation, true) {
            case .joined(let seat):
                return .started(operation, operation.shared.token(for: seat), start, value: nil, replaces: replaces)
            case .late(let seat, let value):
                return .started(operation, operation.shared.token(for: seat), start, value: value, replaces: replaces)
            case .refused(let refusal):
                // Another holder of the operation cancelled it just now. Its end removes it from the table.
                return .refused(refusal, operation)
            }
        }
    }

    @inlinable
    func carryOut<Op: SharedOperation, Found>(
        _ decision: Decision<Op, Op.Value, Found>, priority: OperationPriority, in shard: InFlightShard<Key>,
        start: (Op, OperationGate.Entry) -> Void
    ) -> Enqueued<Op, Found> {
        switch decision {
        case .found(let found):
            shard.counters.found.count()
            return .found(found)
        case .joined(let operation, let token):
            shard.counters.joined.count()
            operation.raisePriority(to: priority)
            return .joined(operation, token, late: false)
        case .late(let operation, let token, _):
            shard.counters.joinedLate.count()
            return .joined(operation, token, late: true)
        case .started(let operation, let token, let entry, _, let replaces):
            if replaces { shard.counters.replaced.count() }
            start(operation, entry)
            return .started(operation, token)
        case .refused(let refusal, let operation):
            shard.counters.refused.count()
            return .refused(refusal, by: operation)
        }
    }

    /// Starts an operation that has its waiters already, or lets an operation in flight with the same identifier and
    /// class work for it (see `CoalescibleOperation.coalesce`).
    ///
    /// - Returns: `.started(operation, .none)`, or `.joined` with the operation that works for it. Either way, the
    ///   waiters of `operation` are called back, and leave `operation`, not the other one.
    public func enqueue<Op: SharedOperation>(
        operation: Op, priority: OperationPriority = .normal
    ) -> Enqueued<Op, Never> {
        let shared = operation.shared
        guard let given = shared.identifier, let identifier = given as? Key else {
            return .refused(.foreign, by: operation)
        }
        let name = InFlightName(identifier, ObjectIdentifier(Op.self))
        let shard = shard(for: name.hash)
        let decision: Decision<Op, Op.Value, Never> = decide(
            name, in: shard, priority: priority, unless: { nil as Never? },
            join: { current, leads in leads ? .joined(.none) : current.shared.absorb(shared) }, make: { operation })
        switch decision {
        case .joined(let current, let token):
            shared.follow(current.shared, token: token)
        case .late(let current, let token, let value):
            shared.follow(current.shared, token: token)
            shared.deliver(value)
        case .found, .started, .refused:
            break
        }
        // The stay belongs to `operation`: its waiters leave `operation`, not the one that works for it.
        switch carryOut(decision, priority: priority, in: shard, start: { gate.start($0, $1) }) {
        case .joined(let current, _, let late): return .joined(current, .none, late: late)
        case .refused(.foreign, _): return .refused(.foreign, by: operation)
        case let enqueued: return enqueued
        }
    }

    /// Starts work that is never shared, under the same limit and priorities.
    public func enqueue<Op: PlainOperation>(
        plain operation: Op, priority: OperationPriority = .normal
    ) -> Enqueued<Op, Never> {
        let shard = anyShard(for: operation)
        guard gate.admit(priority) else {
            shard.counters.refused.count()
            return .refused(.queueFull, by: nil)
        }
        guard let entry = enrol(operation, in: shard, as: nil, group: nil, priority: priority, submits: true) else {
            shard.counters.refused.count()
            return .refused(.foreign, by: operation)
        }
        gate.start(operation, entry)
        return .started(operation, .none)
    }
}
