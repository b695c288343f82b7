/// A clock with timers: an event loop, a manual clock in a test, or any `Clock` (`ClockTimers`).
public protocol TimerSource: Sendable {
    /// The time since some fixed moment; never goes back.
    var now: Duration { get }

    /// Calls `fire` once, `delay` from now or a little later, on a thread of the source's choosing, never on the
    /// caller's stack. A timer cannot be cancelled: `fire` must do nothing if it comes too late.
    func schedule(after delay: Duration, _ fire: @escaping @Sendable () -> Void)
}
