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
        /// The number of further callers that share the seat (see `join(behind:)`).
        @usableFromInline var behind: UInt32 = 0

        @inlinable
        init(_ waiter: consuming Waiter<Value>?) { self.waiter = waiter }
    }

    @usableFromInline var phase = Phase.gathering
    @usableFromInline var isClosed = false
    @usableFromInline var seats = SlotList<Seat>()
    /// The sum of `Seat.behind` over all seats.
    @usableFromInline var behind = 0
    @usableFromInline var limit = Int.max
    @usableFromInline var lastLeavePolicy = LastLeavePolicy.goOn

    @inlinable
    init() {}

    /// The number of waiters and followers. Every caller that shares a seat is counted.
    @inlinable var count: Int { seats.count + behind }

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
        switch phase {
        case .ended:
            return .refused(.finished)
        case .gathering:
            if isClosed, !leads { return .refused(.closed) }
            guard let waiter else { return .joined(.none) }
            if count >= limit, !leads { return .refused(.full) }
            return .joined(seats.append(Seat(waiter)))
        case .delivered(let value):
            if isClosed, !leads { return .refused(.closed) }
            guard let waiter else { return .joined(.none) }
            if !leads, !waiter.takes(value) { return .refused(.notAccepted) }
            if count >= limit, !leads { return .refused(.full) }
            return .late(seats.append(Seat(nil)), value)
        }
    }

    /// Lets one more caller share a seat whose waiter still waits. False if that stay has ended, or if no waiter is let
    /// in.
    @inlinable
    mutating func join(behind token: SlotToken) -> Bool {
        guard case .gathering = phase, !isClosed, count < limit else { return false }
        // In this phase every seat has a waiter.
        let isThere = seats.update(token) { $0?.behind += 1 }
        if isThere { behind += 1 }
        return isThere
    }

    /// Lets in the only waiter that there will ever be. `nil` if there is a value already, or if the operation has
    /// ended.
    @inlinable
    mutating func seatAlone(_ waiter: consuming Waiter<Value>?) -> SlotToken? {
        guard case .gathering = phase else { return nil }
        isClosed = true
        guard let waiter else { return SlotToken.none }
        return seats.append(Seat(waiter))
    }

    /// Takes in the value and returns the callbacks that are due. `nil` if there was a value before, or if the
    /// operation has ended.
    @inlinable
    mutating func deliver(_ value: Value) -> Callbacks<Value>? {
        switch phase {
        case .gathering:
            let callbacks = serve(value)
            phase = .delivered(value)
            return callbacks
        case .delivered, .ended:
            return nil
        }
    }

    /// Makes followers of the waiters that accept the value, and releases all others, all at this moment, so that the
    /// released waiters go on side by side.
    @inlinable
    mutating func serve(_ value: Value) -> Callbacks<Value> {
        var callbacks = Callbacks<Value>()
        var gone = 0
        seats.update { seat in
            guard let others = seat?.behind, let waiter = seat?.waiter.take() else { return }
            let isServed = waiter.takes(value)
            if !isServed {
                gone += Int(others)
                seat = nil
            }
            callbacks.append(
                Callback(waiter, isServed ? .success(value) : .failure(.released)),
                released: isServed ? 0 : 1 + Int(others))
        }
        behind -= gone
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

        @usableFromInline let seat: Seat?
        @usableFromInline let wasWaiting: Bool
        @usableFromInline let next: Next

        @inlinable
        init(seat: consuming Seat, next: Next) {
            wasWaiting = seat.waiter != nil
            self.seat = consume seat
            self.next = next
        }

        /// The departure of one of several callers that share a seat.
        @inlinable
        init(wasWaiting: Bool) {
            seat = nil
            self.wasWaiting = wasWaiting
            next = .goOn
        }
    }

    /// Ends the stay that `token` names; `nil` if there is no such stay.
    @inlinable
    mutating func leave(_ token: SlotToken) -> Departure? {
        if behind > 0, let departure = leaveShared(token) { return departure }
        guard let seat = seats.remove(token) else { return nil }
        guard seats.isEmpty else { return Departure(seat: seat, next: .goOn) }
        switch lastLeavePolicy {
        case .goOn:
            return Departure(seat: seat, next: .tell)
        case .cancel:
            finishPhase()
            return Departure(seat: seat, next: .tellAndCancel)
        }
    }

    /// Ends the stay like `leave` if it is still waiting; otherwise `nil`, and nothing changed.
    @inlinable
    mutating func stopWaiting(_ token: SlotToken) -> Departure? {
        switch phase {
        // In this phase every seat has a waiter.
        case .gathering: leave(token)
        case .delivered, .ended: nil
        }
    }

    /// Ends the stay of one of several callers that share a seat; `nil` if the seat is not shared.
    @inlinable
    mutating func leaveShared(_ token: SlotToken) -> Departure? {
        var departure: Departure?
        seats.update(token) { seat in
            guard let others = seat?.behind, others > 0 else { return }
            seat?.behind = others - 1
            departure = Departure(wasWaiting: seat?.waiter != nil)
        }
        if departure != nil { behind -= 1 }
        return departure
    }

    /// Ends the audience if it is empty: from then on no waiter is let in. True if this call ended it.
    @inlinable
    mutating func endIfEmpty() -> Bool {
        guard seats.isEmpty else { return false }
        switch phase {
        case .ended: return false
        case .gathering, .delivered:
            finishPhase()
            return true
        }
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
        seats = SlotList()
        behind = 0
        return callbacks
    }

    /// Ends the audience of a value that was delivered. False, and nothing changed, if there is no value.
    @inlinable
    mutating func endStream() -> Bool {
        guard hasValue else { return false }
        finishPhase()
        seats = SlotList()
        behind = 0
        return true
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
        switch phase {
        case .gathering: close()
        case .delivered, .ended: false
        }
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
    var hasValue: Bool {
        switch phase {
        case .gathering, .ended(nil): false
        case .delivered, .ended(.some): true
        }
    }

    @inlinable
    var isLive: Bool {
        switch phase {
        case .gathering, .delivered: true
        case .ended: false
        }
    }
}
