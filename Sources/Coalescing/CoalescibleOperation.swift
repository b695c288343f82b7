/// Work that any number of callers share: it runs once, and everyone who asked for the same identifier gets its one
/// result.
///
/// Subclass it and override `execute()` (and `cancelWork()`). When the result is there, call `finish(.success(value))`.
/// A result that goes on growing after it can be handed out (a response whose body is still arriving) is *streamed*:
/// `deliver(value)` hands it out, the operation stays in flight and serves late joiners, and `finish()` ends it.
///
/// **Exactly once.** Every waiter's handler is called exactly once, on its own queue, unless `leave` returned true for
/// it, which means never. What decides is the lock at the moment of `deliver`, `finish` or `cancel`: whoever left
/// before is not called; whoever leaves after gets `false`, and its callback is on its way or has run. Dropping the
/// operation without an end calls back with `.abandoned`; a manager keeps its operations alive, so a worker that may
/// lose track of one should hold a `FinishPermit`.
///
/// **Leaving.** A waiter that was served counts as a follower until it leaves, so that a stream nobody reads can be
/// stopped: see `lastLeavePolicy`.
@ThreadSafe
open class CoalescibleOperation<Value: Sendable>: AnyOperation {
    /// What makes two operations of one class the same work, for `coalesce(operation:)` and
    /// `OperationQueueManager.enqueue(operation:)`; without one it is the same as no other. Whoever enqueues a closure
    /// that makes the operation names the work there, so it needs none; if it has one, it must be that, or it is
    /// refused as `.foreign`.
    public nonisolated let identifier: (any Hashable & Sendable)?

    @usableFromInline nonisolated let audience = Protected(Audience<Value>())
    /// The operation that executes for this one.
    @usableFromInline nonisolated let source = Protected<OperationSource?>(nil)

    /// - Parameter identifier: needed only for `coalesce(operation:)` and `enqueue(operation:)`.
    @inlinable
    public nonisolated init(identifier: consuming (any Hashable & Sendable)? = nil) {
        self.identifier = consume identifier
        super.init()
    }

    @inlinable
    deinit {
        // Whoever ended it has served its audience.
        if !hasEnded { abandon() }
    }

    @usableFromInline
    nonisolated final func abandon() {
        WakeUps(audience.withLock { $0.end(.failure(.abandoned)) }).send()
    }

    // MARK: For subclasses

    /// Called when the last waiter or follower has left: without a lock, under both policies, and before the work is
    /// cancelled under `LastLeavePolicy.cancel`. Under `.goOn` somebody may have joined again by the time it runs.
    nonisolated open func lastWaiterLeft() {}

    /// Hands out the value: everyone waiting is called back with it, those who do not accept it with `.released`, all
    /// at the same moment. The operation stays in flight. False if there was a value before, or it has ended.
    @discardableResult
    @inlinable
    public nonisolated final func deliver(_ value: Value) -> Bool {
        guard let callbacks = audience.withLock({ $0.deliver(value) }) else { return false }
        if callbacks.first != nil { wakeUps(for: callbacks).send() }
        return true
    }

    /// Ends it with its result. After `deliver` the result only says how it ended: nobody is called twice, and a value
    /// that was handed out carries its own end. False if it had ended already.
    @discardableResult
    @inlinable
    public nonisolated final func finish(_ result: Result<Value, any Error>) -> Bool {
        switch result {
        case .success(let value):
            return endByWork(nil) { conclude(.success(value)) }
        case .failure(let error):
            let error = OperationError(error)
            return endByWork(error) { conclude(.failure(error)) }
        }
    }

    /// Ends what was delivered. Without a delivery it ends with `.abandoned`: a missing value is never an ending.
    @discardableResult
    @inlinable
    public nonisolated final func finish() -> Bool {
        guard audience.withLock({ $0.endStream() }) else { return finish(.failure(OperationError.abandoned)) }
        // Nobody waits any more.
        return endByWork(nil) { .none }
    }

    // MARK: For everybody

    /// The value, once it was delivered or the operation finished with it. Dependent operations read it here.
    @inlinable
    public nonisolated final var value: Value? { audience.withLock { $0.value } }

    /// How many wait or follow.
    @inlinable
    public nonisolated final var waiterCount: Int { audience.withLock { $0.count } }

    /// How many may wait and follow at the same time; no limit unless it is set. Joining beyond it is refused with
    /// `.full`. Whoever is there when it is lowered stays.
    @inlinable
    public nonisolated final var waiterLimit: Int {
        get { audience.withLock { $0.limit } }
        set { audience.withLock { $0.limit = newValue } }
    }

    /// What happens when the last one leaves: `.goOn` unless it is set, as in a subclass's `init`. May change at any
    /// time; it is read at the moment of leaving, so after setting `.cancel` call `cancelIfUnattended()` if the last
    /// one may have left already.
    @inlinable
    public nonisolated final var lastLeavePolicy: LastLeavePolicy {
        get { audience.withLock { $0.lastLeavePolicy } }
        set { audience.withLock { $0.lastLeavePolicy = newValue } }
    }

    /// What `join` returns.
    public enum Joining: Sendable {
        /// `late`: the value was there already and is on its way.
        case joined(WaiterToken, late: Bool)
        case refused(Refusal)
    }

    /// Lets one more wait for it, for whoever holds the operation; `enqueue` finds it by its identifier.
    ///
    /// - Returns: The token to leave with, or why it was refused; then its handler is never called.
    @inlinable
    public nonisolated final func join(_ waiter: Waiter<Value>) -> Joining {
        let joining = audience.withLock { $0.join(waiter) }
        switch joining {
        case .joined(let seat):
            countJoined(late: false)
            return .joined(token(for: seat), late: false)
        case .late(let seat, let value):
            countJoined(late: true)
            waiter.callBack(with: value)
            return .joined(token(for: seat), late: true)
        case .refused(let refusal):
            return .refused(refusal)
        }
    }

    /// Lets one more share the seat of a waiter that still waits: for callers on the same queue that take the same
    /// values, so that one waiter can stand for all and serve them itself. Each counts as a waiter, then as a follower;
    /// the handler is called once for all of them. Each leaves with the same token; the seat is given up when the last
    /// one leaves.
    ///
    /// - Returns: False, and nothing changed, if the waiter has its result or the operation takes no more.
    @inlinable
    public nonisolated final func join(behind token: WaiterToken) -> Bool {
        guard token.operation == ObjectIdentifier(self), audience.withLock({ $0.join(behind: token.seat) }) else {
            return false
        }
        countJoined(late: false)
        return true
    }

    /// Ends one stay.
    ///
    /// - Returns: True if it was still waiting: its handler will never be called. False if its callback has run or is
    ///   on its way (it merely stops following), or if the token is not of a stay here.
    @discardableResult
    @inlinable
    public nonisolated final func leave(_ token: WaiterToken) -> Bool {
        guard token.operation == ObjectIdentifier(self) else { return false }
        return settle(audience.withLock { $0.leave(token.seat) })
    }

    /// Ends one stay if it still waits; whoever was served goes on following. For a wait that takes too long, and whose
    /// value is as welcome as ever if it is on its way already.
    ///
    /// - Returns: True if it was still waiting: its handler will never be called. False, and nothing changed, if its
    ///   callback has run or is on its way, or if the token is not of a stay here.
    @inlinable
    public nonisolated final func stopWaiting(_ token: WaiterToken) -> Bool {
        guard token.operation == ObjectIdentifier(self) else { return false }
        return settle(audience.withLock { $0.stopWaiting(token.seat) })
    }

    /// Does what follows from a departure, without the lock.
    /// - Returns: whether it was still waiting.
    @inlinable
    nonisolated final func settle(_ departure: consuming Audience<Value>.Departure?) -> Bool {
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

    /// Lets nobody else in: the next `enqueue` for its identifier starts a new operation. Those who wait stay. True if
    /// this call closed it.
    @discardableResult
    @inlinable
    public nonisolated final func close() -> Bool {
        audience.withLock { $0.close() }
    }

    /// Closes it, unless its value is there: for a wait that takes too long. As one step, so that nobody is kept from a
    /// value that has come meanwhile. True if this call closed it.
    @discardableResult
    @inlinable
    public nonisolated final func closeUnlessDelivered() -> Bool {
        audience.withLock { $0.closeUnlessDelivered() }
    }

    /// Cancels it if nobody waits for it or follows it, as one step: nobody can join in between. True if this call did.
    @discardableResult
    @inlinable
    public nonisolated final func cancelIfUnattended() -> Bool {
        audience.withLock { $0.endIfEmpty() } && cancel()
    }

    /// Takes `operation` in: this one works for both, and the other ends when and as this one does, with its own
    /// waiters, tokens and policy. When the other is cancelled it merely leaves.
    ///
    /// - Returns: False, and nothing changed, if this one has ended, is closed or full, if the two differ in identifier
    ///   or class, or if `operation` was started, enqueued or coalesced before.
    public nonisolated final func coalesce(operation: CoalescibleOperation<Value>) -> Bool {
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

    /// Whether `name` may be its name: false if it was made with another identifier.
    @inlinable
    nonisolated final func mayBeNamed<Name: Hashable>(_ name: Name) -> Bool {
        guard let identifier else { return true }
        return identifier as? Name == name
    }

    @inlinable
    nonisolated final func token(for seat: SlotToken) -> WaiterToken {
        seat == .none ? .none : WaiterToken(operation: ObjectIdentifier(self), seat: seat)
    }

    /// The part of `coalesce` that runs nothing of anybody's, and so may run under a manager's lock. Who joined is to
    /// `follow` after it, and a late one to be given the value.
    nonisolated final func absorb(_ other: CoalescibleOperation<Value>) -> Audience<Value>.Join {
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

    /// Ends with `operation`, in which `absorb` gave it a seat. Never under a lock: if one of the two has ended
    /// meanwhile, its end is told here, and may cancel the other.
    nonisolated final func follow(_ operation: CoalescibleOperation<Value>, token: WaiterToken) {
        source.withLock { $0 = OperationSource(operation, token: token) }
        operation.whenEnded { [weak operation] outcome in
            if let value = operation?.value { self.deliver(value) }
            if let outcome { self.finish(.failure(outcome)) } else { self.finish() }
        }
        // It may have been cancelled since `absorb`, when there was nothing to leave yet.
        if hasEnded { leaveSource() }
    }

    nonisolated override func leaveSource() {
        let source = source.withLock { source in
            defer { source = nil }
            return source
        }
        if let source { source.operation?.endStay(source.token) }
    }

    nonisolated override func endStay(_ token: WaiterToken) { leave(token) }

    @usableFromInline
    nonisolated override var isReplaceable: Bool { audience.withLock { $0.isLive && $0.isClosed } }

    @discardableResult
    nonisolated override func endFromOutside(with error: OperationError) -> Bool {
        end(error, by: .outside) { conclude(.failure(error)) }
    }

    @inlinable
    nonisolated final func conclude(_ result: Result<Value, OperationError>) -> WakeUps {
        wakeUps(for: audience.withLock { $0.end(result) })
    }

    @inlinable
    nonisolated final func wakeUps(for callbacks: consuming Callbacks<Value>) -> WakeUps {
        if callbacks.released > 0 { countReleased(callbacks.released) }
        return WakeUps(callbacks)
    }
}

/// The operation that executes for another one. A class: few have one, and a weak reference stored inline would burden
/// all others.
@usableFromInline
final class OperationSource: Sendable {
    // Weak: that one keeps this one alive, which has waiters to serve.
    weak let operation: AnyOperation?
    let token: WaiterToken

    init(_ operation: AnyOperation, token: WaiterToken) {
        self.operation = operation
        self.token = token
    }
}

extension Waiter {
    @inlinable
    func callBack(with value: Value) {
        queue.enqueue { [handler] in handler(.success(value)) }
    }
}
