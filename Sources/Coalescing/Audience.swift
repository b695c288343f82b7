/// The waiters for one operation's value, and the followers of the value while it grows. Pure: `CoalescibleOperation`
/// holds the lock and performs the returned actions.
@usableFromInline
struct Audience<Value: Sendable>: Sendable {
    /// ```
    /// gathering ─deliver→ delivered
    ///     │                   │
    ///     └───────end─────────┴──→ ended
    /// ```
    /// *gathering*: waiters wait. *delivered*: the waiters were served and now follow; late ones are served at once.
    /// *ended*: no waiter is let in; the value, if there was one, stays readable. `isClosed` is separate: no new waiter
    /// is let in, in any phase.
    @usableFromInline
    enum Phase: Sendable {
        case gathering
        case delivered(Value)
        case ended(Value?)
    }

    @usableFromInline
    struct Seat: Sendable {
        /// The waiter; `nil` once it was served and is a follower.
        @usableFromInline var waiter: Waiter<Value>?
        /// The queue whose callers share the seat; `nil` for the seat of one waiter.
        @usableFromInline let queue: ObjectIdentifier?
        /// The number of callers that the seat counts for.
        @usableFromInline var callers: UInt32 = 1

        @inlinable
        init(_ waiter: consuming Waiter<Value>?, sharedOn queue: ObjectIdentifier? = nil) {
            self.waiter = waiter
            self.queue = queue
        }
    }

    @usableFromInline var phase = Phase.gathering
    @usableFromInline var isClosed = false
    @usableFromInline var seats = SlotList<Seat>()
    /// The number of waiters and followers: the callers of all seats and those at home.
    @usableFromInline var count = 0
    /// The queue whose callers have no seat: the operation's own work tells them.
    @usableFromInline let home: ObjectIdentifier?
    /// The number of callers on that queue.
    @usableFromInline var callersAtHome = 0
    @usableFromInline var limit: Int
    @usableFromInline var lastLeavePolicy: LastLeavePolicy

    @inlinable
    init(home: ObjectIdentifier? = nil, limit: Int = .max, lastLeavePolicy: LastLeavePolicy = .goOn) {
        self.home = home
        self.limit = limit
        self.lastLeavePolicy = lastLeavePolicy
    }

    @usableFromInline
    enum Join: Sendable {
        case joined(SlotToken)
        /// Call the waiter back with the value. It is already a follower.
        case late(SlotToken, Value)
        case refused(Refusal)
    }

    /// - Parameters:
    ///   - waiter: `nil` only asks whether the audience is open: the caller wants the work done, but no callback.
    ///   - leads: the operation was made for this waiter. Only the operation's end keeps it out.
    @inlinable
    mutating func join(_ waiter: Waiter<Value>?, leads: Bool = false) -> Join {
        guard let waiter else { return canJoin(leads: leads, ifFull: true) { _ in true } ?? .joined(.none) }
        if let refusal = canJoin(leads: leads, accepts: { waiter.takes($0) }) { return refusal }
        count += 1
        if leads, waiter.handler == nil, waiter.accepts == nil, !hasValue {
            callersAtHome += 1
            return .joined(.home)
        }
        if case .delivered(let value) = phase { return .late(seats.append(Seat(nil)), value) }
        return .joined(seats.append(Seat(waiter)))
    }

    /// - Returns: the refusal, if there is one.
    @inlinable
    func canJoin(leads: Bool, ifFull: Bool = false, accepts: (Value) -> Bool) -> Join? {
        if !isLive { return .refused(.finished) }
        if leads { return nil }
        if isClosed { return .refused(.closed) }
        if case .delivered(let value) = phase, !accepts(value) { return .refused(.notAccepted) }
        return count >= limit && !ifFull ? .refused(.full) : nil
    }

    /// Lets in one more caller of `queue`, where all callers share one seat, or have none if the queue is the
    /// operation's home.
    /// - Parameters:
    ///   - leads: as in `join`.
    ///   - accepts: whether a value that is there already may serve the caller.
    ///   - waiter: makes the waiter of the seat; called only for the first caller, and only if there is no value yet.
    @inlinable
    mutating func join(
        on queue: ObjectIdentifier, leads: Bool = false, accepts: (Value) -> Bool, waiter: () -> Waiter<Value>
    ) -> Join {
        if let refusal = canJoin(leads: leads, accepts: accepts) { return refusal }
        count += 1
        let late: Value? = if case .delivered(let value) = phase { value } else { nil }
        let token: SlotToken
        if queue == home {
            callersAtHome += 1
            token = .home
        } else if let shared = seats.token(where: { $0.queue == queue }) {
            seats.update(shared) { $0?.callers += 1 }
            token = shared
        } else {
            token = seats.append(Seat(late == nil ? waiter() : nil, sharedOn: queue))
        }
        return late.map { .late(token, $0) } ?? .joined(token)
    }

    /// Lets in the only caller that there will ever be, at home. False if there is a value already, or if the operation
    /// has ended.
    @inlinable
    mutating func joinAloneAtHome() -> Bool {
        guard case .gathering = phase else { return false }
        isClosed = true
        count += 1
        callersAtHome += 1
        return true
    }

    /// Gives a caller at home a seat if it must wait, for a task that leads.
    /// - Returns: the token of its stay.
    @inlinable
    mutating func sit(_ token: SlotToken) -> SlotToken {
        guard token == .home, case .gathering = phase, callersAtHome > 0 else { return token }
        callersAtHome -= 1
        return seats.append(Seat(Waiter(accepts: nil)))
    }

    /// Gives the stay that `token` names its handler, which is called on the stack of the call that ends the wait.
    /// - Returns: whether it still waits.
    @inlinable
    mutating func wait(
        _ token: SlotToken, _ handler: @escaping @Sendable (Result<Value, OperationError>) -> Void
    ) -> Bool {
        var waits = false
        seats.update(token) { seat in
            waits = seat?.waiter != nil
            seat?.waiter?.handler = handler
        }
        return waits
    }

    /// Takes in the value and returns the callbacks that are due. `nil` if there was a value before, or if the
    /// operation has ended.
    @inlinable
    mutating func deliver(_ value: Value) -> Callbacks<Value>? {
        guard case .gathering = phase else { return nil }
        let callbacks = serve(value)
        phase = .delivered(value)
        return callbacks
    }

    /// Makes followers of the waiters that accept the value, and releases all others, all at this moment, so that the
    /// released waiters go on side by side.
    @inlinable
    mutating func serve(_ value: Value) -> Callbacks<Value> {
        var callbacks = Callbacks<Value>()
        var gone = 0
        seats.update { seat in
            guard let callers = seat?.callers, let waiter = seat?.waiter.take() else { return }
            let isServed = waiter.takes(value)
            if !isServed {
                gone += Int(callers)
                seat = nil
            }
            callbacks.append(
                Callback(waiter, isServed ? .success(value) : .failure(.released)),
                released: isServed ? 0 : Int(callers))
        }
        count -= gone
        return callbacks
    }

    /// The consequences of a departure. Keeps the vacated seat, so that the objects that the waiter's closures hold are
    /// released after the lock.
    @usableFromInline
    struct Departure: Sendable {
        @usableFromInline
        enum Next: Sendable {
            case goOn
            /// The last waiter or follower has left.
            case tell
            /// The last one has left, no waiter is let in from this moment, and the operation must be cancelled.
            case tellAndCancel
        }

        /// The seat, if its last caller has left.
        @usableFromInline let seat: Seat?
        @usableFromInline let wasWaiting: Bool
        @usableFromInline let next: Next

        @inlinable
        init(seat: consuming Seat?, wasWaiting: Bool, next: Next) {
            self.wasWaiting = wasWaiting
            self.seat = consume seat
            self.next = next
        }
    }

    /// Ends the stay that `token` names, or that of one of the callers that share the token; `nil` if there is no such
    /// stay.
    @inlinable
    mutating func leave(_ token: SlotToken) -> Departure? {
        var (wasWaiting, isLast) = (!hasValue, false)
        var seat: Seat?
        if token == .home {
            guard callersAtHome > 0 else { return nil }
            callersAtHome -= 1
        } else {
            let isThere = seats.update(token) { seat in
                wasWaiting = seat?.waiter != nil
                isLast = seat?.callers == 1
                if !isLast { seat?.callers -= 1 }
            }
            guard isThere else { return nil }
            if isLast { seat = seats.remove(token) }
        }
        count -= 1
        guard count == 0 else { return Departure(seat: seat, wasWaiting: wasWaiting, next: .goOn) }
        switch lastLeavePolicy {
        case .goOn:
            return Departure(seat: seat, wasWaiting: wasWaiting, next: .tell)
        case .cancel:
            finishPhase()
            return Departure(seat: seat, wasWaiting: wasWaiting, next: .tellAndCancel)
        }
    }

    /// Ends the stay like `leave` if it is still waiting; otherwise `nil`, and nothing changed.
    @inlinable
    mutating func stopWaiting(_ token: SlotToken) -> Departure? {
        // In this phase every seat has a waiter.
        if case .gathering = phase { leave(token) } else { nil }
    }

    /// Ends the audience if it is empty: from then on no waiter is let in. True if this call ended it.
    @inlinable
    mutating func endIfEmpty() -> Bool {
        guard count == 0, isLive else { return false }
        finishPhase()
        return true
    }

    /// Ends the audience with the operation's result. A value that arrives only now is delivered first. An error goes
    /// to the waiters that still wait.
    @inlinable
    mutating func end(_ result: Result<Value, OperationError>) -> Callbacks<Value> {
        var callbacks = Callbacks<Value>()
        switch (phase, result) {
        case (.gathering, .success(let value)):
            callbacks = serve(value)
            phase = .ended(value)
        case (.gathering, .failure(let error)):
            seats.update { seat in
                if let waiter = seat?.waiter.take() { callbacks.append(Callback(waiter, .failure(error))) }
                seat = nil
            }
            phase = .ended(nil)
        case (.delivered(let value), _):
            phase = .ended(value)
        case (.ended, _):
            break
        }
        removeAll()
        return callbacks
    }

    /// Ends the audience of a value that was delivered. False, and nothing changed, if there is no value.
    @inlinable
    mutating func endStream() -> Bool {
        guard hasValue else { return false }
        finishPhase()
        removeAll()
        return true
    }

    @inlinable
    mutating func removeAll() {
        seats = SlotList()
        (count, callersAtHome) = (0, 0)
    }

    @inlinable
    mutating func finishPhase() {
        switch phase {
        case .gathering: phase = .ended(nil)
        case .delivered(let value): phase = .ended(value)
        case .ended: break
        }
    }

    /// Closes the audience to new waiters. True if this call closed it.
    @inlinable
    mutating func close() -> Bool {
        defer { isClosed = true }
        return !isClosed && isLive
    }

    /// - Returns: whether this call closed it.
    @inlinable
    mutating func closeUnlessDelivered() -> Bool {
        if case .gathering = phase { close() } else { false }
    }

    @inlinable
    var value: Value? {
        switch phase {
        case .gathering: nil
        case .delivered(let value): value
        case .ended(let value): value
        }
    }

    @inlinable
    var hasValue: Bool { value != nil }

    @inlinable
    var isLive: Bool { if case .ended = phase { false } else { true } }
}
