/// The one deadline of a connection. It moves with every byte but is looked at only now and then.
///
/// Moving the deadline later only notes the time; the wheel finds out when the old time comes. So activity costs two
/// stores and no call, since all methods are inlinable. `Kind` names the awaited event.
///
/// The methods that change the deadline consume a copy and return the new value, for assignments such as
/// `deadline = deadline.awaiting(…)`. If they changed an object's property in place, other code might be called
/// meanwhile, so each use of the property would have its exclusivity checked at run time. Only `clear` changes the
/// value in place.
public struct LazyDeadline<Kind> {
    /// The meaning of a call from the wheel.
    public enum Reached {
        case due(Kind)
        /// Not due yet: arm again for this time (nanoseconds like `EventLoop.now`).
        case later(Int64)
        /// No event is awaited now.
        case nothing
    }

    @usableFromInline var deadline = Deadline.none
    @usableFromInline var kind: Kind?
    @usableFromInline var dueAt = Int64.max
    /// The time at which the wheel will call; `.max` if the deadline is not armed.
    @usableFromInline var armedAt = Int64.max

    @inlinable public init() {}

    /// The awaited event, if any.
    @inlinable public var waitsFor: Kind? { kind }

    /// The time until which the event is awaited (nanoseconds like `EventLoop.now`); `.max` if no event is awaited.
    @inlinable public var time: Int64 { dueAt }

    /// The deadline that awaits `kind` until `time`.
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

    /// The deadline that awaits no event. The wheel has released the target.
    @inlinable
    public consuming func cancelled(on wheel: DeadlineWheel) -> Self {
        if armedAt != .max { wheel.cancel(deadline) }
        return Self()
    }

    /// Stops awaiting the event. A deadline that is armed in the wheel runs out by itself.
    @inlinable
    public mutating func clear() {
        kind = nil
        dueAt = .max
    }

    /// The meaning of a call from the wheel, and the remaining deadline. Return the time of `later` to the wheel,
    /// otherwise `nil`.
    @inlinable
    public consuming func reached(at now: Int64) -> (Reached, left: Self) {
        guard let kind else { return (.nothing, left: Self()) }
        guard dueAt > now else { return (.due(kind), left: Self()) }
        armedAt = dueAt
        return (.later(dueAt), left: self)
    }
}
