/// The one deadline of a connection, which moves with every byte but is looked at only now and then.
///
/// Moving it later only notes the time; the wheel finds out when the old time comes. So activity costs two stores and
/// no call, since all of this is inlinable. `Kind` says what is waited for.
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

    /// From now on `kind` is waited for, until `time`.
    @inlinable
    public mutating func set(_ kind: Kind, at time: Int64, for target: DeadlineTarget, on wheel: DeadlineWheel) {
        self.kind = kind
        dueAt = time
        if armedAt == .max {
            deadline = wheel.arm(target, at: time)
        } else if time < armedAt {
            wheel.move(deadline, to: time)
        } else {
            return
        }
        armedAt = time
    }

    /// Nothing is waited for; what is armed runs out by itself.
    @inlinable
    public mutating func clear() {
        kind = nil
        dueAt = .max
    }

    /// Nothing is waited for, and the wheel releases the target.
    @inlinable
    public mutating func cancel(on wheel: DeadlineWheel) {
        clear()
        if armedAt != .max { wheel.cancel(&deadline) }
        armedAt = .max
    }

    /// The wheel has called: what that means. Return the time of `later` to the wheel, otherwise `nil`.
    @inlinable
    public mutating func reached(at now: Int64) -> Reached {
        guard let kind else {
            deadline = .none
            armedAt = .max
            return .nothing
        }
        if dueAt > now {
            armedAt = dueAt
            return .later(dueAt)
        }
        clear()
        deadline = .none
        armedAt = .max
        return .due(kind)
    }
}
