import Coalescing

/// The timers of a clock: each waits in a task of its own.
///
///     let timers = ClockTimers(SuspendingClock())
public struct ClockTimers<C: Clock>: TimerSource where C.Duration == Duration {
    private let clock: C
    private let start: C.Instant

    public init(_ clock: C) {
        self.clock = clock
        start = clock.now
    }

    /// The time since these timers were made.
    public var now: Duration { start.duration(to: clock.now) }

    /// Calls `fire` from a task of its own, not before `delay` has passed.
    public func schedule(after delay: Duration, _ fire: @escaping @Sendable () -> Void) {
        let due = clock.now.advanced(by: delay)
        Task.detached { [clock] in
            // Never cancelled: the task has no owner.
            try? await clock.sleep(until: due, tolerance: nil)
            fire()
        }
    }
}
