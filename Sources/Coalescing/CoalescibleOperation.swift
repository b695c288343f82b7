/// Work that any number of callers share: it runs once, and every caller that asked for the same identifier gets its
/// one result.
///
/// Subclass it and override `execute()` (and `cancelWork()`). When the result is there, call `finish(.success(value))`.
/// A result that goes on growing after it can be handed out (a response whose body is still arriving) is *streamed*:
/// `deliver(value)` hands it out, the operation stays in flight and serves late joiners, and `finish()` ends it.
///
/// **Exactly once.** Every waiter's handler is called exactly once, on its own queue, unless `leave` returned true for
/// this waiter: then the handler is never called. The lock decides at the moment of `deliver`, `finish` or `cancel`: a
/// waiter that left earlier is not called; a waiter that leaves later gets `false`, and its callback is on its way or
/// has run. If the operation is dropped without an end, its waiters are called back with `.abandoned`. A manager keeps
/// its operations alive, so a worker that may lose track of one should hold a `Completion`.
///
/// **Leaving.** A waiter that was served counts as a follower until it leaves, so that a stream without readers can be
/// stopped: see `lastLeavePolicy`.
open class CoalescibleOperation<Value: Sendable>: AnyOperation, @unchecked Sendable {
    /// Names the work for `coalesce(operation:)` and `OperationQueueManager.enqueue(operation:)`: operations of one
    /// class with equal identifiers do the same work. An operation without an identifier equals no other. A closure
    /// passed to `enqueue` makes an operation that needs no identifier, since the call names the work. If that
    /// operation has one, it must be the identifier in the call; otherwise it is refused as `.foreign`.
    open var identifier: (any Hashable & Sendable)? { nil }

    @usableFromInline let audience: Protected<Audience<Value>>

    /// - Parameters:
    ///   - home: the queue on which the operation's work runs, if that work tells the callers on this queue itself
    ///     (`join(on:accepts:waiter:)`).
    ///   - waiterLimit: see `waiterLimit`.
    ///   - lastLeavePolicy: see `lastLeavePolicy`.
    @inlinable
    public init(
        home: (any CallbackQueue)? = nil, waiterLimit: Int = .max, lastLeavePolicy: LastLeavePolicy = .goOn
    ) {
        audience = Protected(
            Audience(home: home.map { ObjectIdentifier($0) }, limit: waiterLimit, lastLeavePolicy: lastLeavePolicy))
        super.init()
    }

    @inlinable
    deinit {
        // An operation that has ended has served its audience.
        if !hasEnded { abandon() }
    }

    @usableFromInline
    final func abandon() {
        WakeUps(audience.withLock { $0.end(.failure(.abandoned)) }).send()
    }

    // MARK: For subclasses

    /// Called when the last waiter or follower has left: without a lock, under both policies, and before the work is
    /// cancelled under `LastLeavePolicy.cancel`. Under `.goOn`, another waiter may have joined by the time this method
    /// runs.
    open func lastWaiterLeft() {}

    /// Hands out the value: every waiter that accepts it is called back with it, every other waiter with `.released`,
    /// all at the same moment. The operation stays in flight. False if there was a value before, or if the operation
    /// has ended.
    @discardableResult
    @inlinable
    public final func deliver(_ value: Value) -> Bool {
        guard let callbacks = audience.withLock({ $0.deliver(value) }) else { return false }
        if callbacks.first != nil { wakeUps(for: callbacks).send() }
        return true
    }

    /// Ends the operation with its result. After `deliver` the result only says how the operation ended: no waiter is
    /// called twice, and a value that was handed out carries its own end. False if the operation had ended already.
    @discardableResult
    @inlinable
    public final func finish(_ result: Result<Value, any Error>) -> Bool {
        switch result {
        case .success(let value):
            return endByWork(nil) { conclude(.success(value)) }
        case .failure(let error):
            let error = OperationError(error)
            return endByWork(error) { conclude(.failure(error)) }
        }
    }

    /// Ends a stream that was delivered. Without a delivery, the operation ends with `.abandoned`: a missing value is
    /// never a normal end.
    @discardableResult
    @inlinable
    public final func finish() -> Bool {
        guard audience.withLock({ $0.endStream() }) else { return finish(.failure(OperationError.abandoned)) }
        // No waiter is left to call back.
        return endByWork(nil) { .none }
    }

    // MARK: For all callers

    /// The value, once it was delivered or the operation has finished with it. Dependent operations read it here.
    @inlinable
    public final var value: Value? { audience.withLock { $0.value } }

    /// The number of waiters and followers.
    @inlinable
    public final var waiterCount: Int { audience.withLock { $0.count } }

    /// The maximum number of waiters and followers at the same time; no limit unless it is set. Joining beyond the
    /// limit is refused with `.full`. Lowering the limit removes no waiter.
    @inlinable
    public final var waiterLimit: Int {
        get { audience.withLock { $0.limit } }
        set { audience.withLock { $0.limit = newValue } }
    }

    /// The policy for the departure of the last waiter or follower: `.goOn` unless it is set, for example in a
    /// subclass's `init`. May change at any time. The policy is read at the moment of leaving, so after setting
    /// `.cancel`, call `cancelIfUnattended()` if the last waiter may have left already.
    @inlinable
    public final var lastLeavePolicy: LastLeavePolicy {
        get { audience.withLock { $0.lastLeavePolicy } }
        set { audience.withLock { $0.lastLeavePolicy = newValue } }
    }

    /// The result of `join`.
    public enum Joining: Sendable {
        /// `late`: the value was there already, and is on its way to the waiter.
        case joined(WaiterToken, late: Bool)
        case refused(Refusal)
    }

    /// Adds one more waiter, for a caller that holds the operation. (`enqueue` finds the operation by its identifier.)
    ///
    /// - Returns: the token to leave with, or the reason for a refusal; after a refusal the handler is never called.
    @inlinable
    public final func join(_ waiter: Waiter<Value>) -> Joining {
        let joining = audience.withLock { $0.join(waiter) }
        if case .late(_, let value) = joining { waiter.callBack(with: value) }
        return counted(joining)
    }

    /// Adds one more caller on `queue`, where one waiter stands for all callers and serves them itself. Its handler is
    /// called once for all of them, with a value that it accepts. Each caller counts as a waiter, then as a follower,
    /// and leaves with the token that all of them share, once; the seat is given up when the last one leaves.
    ///
    /// If `queue` is the operation's home, no handler is called: the operation's work, which runs on that queue, tells
    /// the callers there of the value and of the end.
    ///
    /// - Parameters:
    ///   - queue: the caller's queue; call this there.
    ///   - accepts: whether a value that was delivered already may serve this caller. Called under the operation's
    ///     lock, like `waiter`.
    ///   - waiter: makes the waiter, on `queue`. Called only for the first caller, and not if the value is there.
    /// - Returns: the token to leave with, or the reason for a refusal. `late`: the value is there, and no handler is
    ///   called for this caller.
    @inlinable
    public final func join(
        on queue: any CallbackQueue, accepts: (Value) -> Bool, waiter: () -> Waiter<Value>
    ) -> Joining {
        counted(
            audience.withLock { $0.join(on: ObjectIdentifier(queue), accepts: accepts, waiter: waiter) })
    }

    @inlinable
    final func counted(_ joining: Audience<Value>.Join) -> Joining {
        let late: Bool
        let token: WaiterToken
        switch joining {
        case .joined(let seat): (token, late) = (self.token(for: seat), false)
        case .late(let seat, _): (token, late) = (self.token(for: seat), true)
        case .refused(let refusal): return .refused(refusal)
        }
        countJoined(late: late)
        return .joined(token, late: late)
    }

    /// Ends one stay, or that of one of the callers that share the token.
    ///
    /// - Returns: true if the stay was still waiting: its handler will never be called. False if its callback has run
    ///   or is on its way (the stay merely stops following), or if the token names no stay here.
    @discardableResult
    @inlinable
    public final func leave(_ token: WaiterToken) -> Bool {
        guard token.operation == ObjectIdentifier(self) else { return false }
        return settle(audience.withLock { $0.leave(token.seat) })
    }

    /// Ends one stay if it is still waiting; a stay that was served goes on following. For a caller whose wait takes
    /// too long, but that still wants a value that is already on its way.
    ///
    /// - Returns: true if the stay was still waiting: its handler will never be called. False, and nothing changed, if
    ///   its callback has run or is on its way, or if the token names no stay here.
    @inlinable
    public final func stopWaiting(_ token: WaiterToken) -> Bool {
        guard token.operation == ObjectIdentifier(self) else { return false }
        return settle(audience.withLock { $0.stopWaiting(token.seat) })
    }

    /// Performs the consequences of a departure, without the lock.
    /// - Returns: whether the stay was still waiting.
    @inlinable
    final func settle(_ departure: consuming Audience<Value>.Departure?) -> Bool {
        guard let departure else { return false }
        switch departure.next {
        case .goOn:
            break
        case .tell:
            lastWaiterLeft()
        case .tellAndCancel:
            lastWaiterLeft()
            cancel()
        }
        return departure.wasWaiting
    }

    /// Closes the operation to new waiters: the next `enqueue` for its identifier starts a new operation. Present
    /// waiters stay. True if this call closed it.
    @discardableResult
    @inlinable
    public final func close() -> Bool {
        audience.withLock { $0.close() }
    }

    /// Closes the operation, unless its value is there: for a wait that takes too long. One step, so that no waiter
    /// misses a value that has come meanwhile. True if this call closed the operation.
    @discardableResult
    @inlinable
    public final func closeUnlessDelivered() -> Bool {
        audience.withLock { $0.closeUnlessDelivered() }
    }

    /// Cancels the operation if it has no waiters and no followers, as one step: no waiter can join in between. True if
    /// this call cancelled it.
    @discardableResult
    @inlinable
    public final func cancelIfUnattended() -> Bool {
        audience.withLock { $0.endIfEmpty() } && cancel()
    }

    /// Takes `operation` in: this operation works for both. The other one ends when and as this one does, and keeps its
    /// own waiters, tokens and policy. If the other one is cancelled, it merely leaves this one.
    ///
    /// - Returns: False, and nothing changed, if this one has ended, is closed or full, if the two differ in identifier
    ///   or class, or if `operation` was started, enqueued or coalesced before.
    public final func coalesce(operation: CoalescibleOperation<Value>) -> Bool {
        switch absorb(operation) {
        case .refused:
            return false
        case .joined(let seat):
            operation.follow(self, token: token(for: seat))
            return true
        case .late(let seat, let value):
            operation.follow(self, token: token(for: seat))
            operation.deliver(value)
            return true
        }
    }

    // MARK: Inside this module

    /// Whether `name` may be the operation's name: false if the operation was made with another identifier.
    @inlinable
    final func mayBeNamed<Name: Hashable>(_ name: Name) -> Bool {
        guard let identifier else { return true }
        return identifier as? Name == name
    }

    @inlinable
    final func token(for seat: SlotToken) -> WaiterToken {
        seat == .none ? .none : WaiterToken(operation: ObjectIdentifier(self), seat: seat)
    }

    /// The part of `coalesce` that runs no code of a user, and so may run under a manager's lock. If `other` has
    /// joined, call its `follow` afterwards; if it has joined late, also deliver the value to it.
    final func absorb(_ other: CoalescibleOperation<Value>) -> Audience<Value>.Join {
        guard other !== self, type(of: other) == type(of: self),
            let identifier, let otherIdentifier = other.identifier,
            AnyHashable(otherIdentifier) == AnyHashable(identifier),
            other.state.withLock({ $0.lifecycle.coalesce() })
        else { return .refused(.foreign) }
        let waiter = Waiter<Value>(on: InlineQueue.shared) { [weak other] result in
            switch result {
            case .success(let value): other?.deliver(value)
            case .failure(let error): other?.finish(.failure(error))
            }
        }
        let joining = audience.withLock { $0.join(waiter) }
        if case .refused = joining { other.state.withLock { $0.lifecycle.uncoalesce() } }
        return joining
    }

    /// Ends when `operation` ends, in which `absorb` gave this one a seat. Never under a lock: if one of the two has
    /// ended meanwhile, this call passes the end on, and may cancel the other.
    final func follow(_ operation: CoalescibleOperation<Value>, token: WaiterToken) {
        // Weak: the source keeps alive the operation that it executes for, which has waiters to serve.
        state.withLock { $0.ties.append(.source(WeakOperation(operation), token)) }
        operation.whenEnded { [weak operation] outcome in
            if let value = operation?.value { self.deliver(value) }
            if let outcome { self.finish(.failure(outcome)) } else { self.finish() }
        }
        // This operation may have been cancelled since `absorb`, when it had no source to leave yet.
        if hasEnded { leaveSource() }
    }

    override func leaveSource() {
        for case .source(let source, let token) in state.withLock({ $0.ties }) { source.operation?.endStay(token) }
    }

    override func endStay(_ token: WaiterToken) { leave(token) }

    @usableFromInline
    override var isReplaceable: Bool { audience.withLock { $0.isLive && $0.isClosed } }

    @discardableResult
    package override func endFromOutside(with error: OperationError) -> Bool {
        end(error, by: .outside) { conclude(.failure(error)) }
    }

    @inlinable
    final func conclude(_ result: Result<Value, OperationError>) -> WakeUps {
        wakeUps(for: audience.withLock { $0.end(result) })
    }

    @inlinable
    final func wakeUps(for callbacks: consuming Callbacks<Value>) -> WakeUps {
        if callbacks.released > 0 { countReleased(callbacks.released) }
        return WakeUps(callbacks)
    }
}
