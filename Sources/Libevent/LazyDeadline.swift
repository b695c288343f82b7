/// The one deadline of a connection, which moves with every byte but is looked at only now and then.
///
/// Moving it later only notes the time; the wheel finds out when the old time comes. So activity costs two stores and
/// no call, since all of this is inlinable. `Kind` says what is waited for.
///
/// What changes it consumes a copy and gives the new value, as in `deadline = deadline.awaiting(…)`: if other code might
/// be called while the value stands open in an object's property, each use of that property would have its exclusivity
/// checked at run time. Only `clear` changes it in place.
public struct LazyDeadline<Kind> {
    /// What a call from the wheel means.
    public enum Reached {
        case due(Kind)
        /// Not yet: arm again for this time (nanoseconds like `EventLoop.now`).
        case later(Int64)
        /// Nothing is waited for now.
        case nothing
    }

    @usableFromInline var deadline = Deadline.none
    @usableFromInline var kind: Kind?
    @usableFromInline var dueAt = Int64.max
    /// When the wheel will call; `.max` while it will not.
    @usableFromInline var armedAt = Int64.max

    @inlinable public init() {}

    /// What is waited for, if anything.
    @inlinable public var waitsFor: Kind? { kind }

    /// Until when (nanoseconds like `EventLoop.now`); `.max` if for nothing.
    @inlinable public var time: Int64 { dueAt }

    /// The deadline by which `kind` is waited for, until `time`.
    @inlinable
    public consuming func awaiting(
        _ kind: Kind, until time: Int64, for target: DeadlineTarget, on wheel: DeadlineWheel
    ) -> Self {
        self.kind = kind
        dueAt = time
        if armedAt == .max {
            deadline = wheel.arm(target, at: time)
        } else if time < armedAt {
            wheel.move(deadline, to: time)
        } else {
            return self
        }
        armedAt = time
        return self
    }

    /// The deadline by which nothing is waited for. The wheel has released the target.
    @inlinable
    public consuming func cancelled(on wheel: DeadlineWheel) -> Self {
        if armedAt != .max { wheel.cancel(deadline) }
        return Self()
    }

    /// Nothing is waited for; what is armed runs out by itself.
    @inlinable
    public mutating func clear() {
        kind = nil
        dueAt = .max
    }

    /// The wheel has called: what that means, and the deadline that is left. Return the time of `later` to the wheel,
    /// otherwise `nil`.
    @inlinable
    public consuming func reached(at now: Int64) -> (Reached, left: Self) {
        guard let kind else { return (.nothing, left: Self()) }
        guard dueAt > now else { return (.due(kind), left: Self()) }
        armedAt = dueAt
        return (.later(dueAt), left: self)
    }
}
