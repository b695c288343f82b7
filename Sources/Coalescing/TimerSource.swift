/// A clock with timers: an event loop, a manual clock in a test, or `TaskTimers`.
public protocol TimerSource: Sendable {
    /// The time since some fixed moment; never goes back.
    var now: Duration { get }

    /// Calls `fire` once, `delay` from now or a little later, on a thread of the source's choosing, never on the
    /// caller's stack. A timer cannot be cancelled: `fire` must do nothing if it comes too late.
    func schedule(after delay: Duration, _ fire: @escaping @Sendable () -> Void)
}

/// Timers of Swift's concurrency runtime, for a server without an event loop of its own.
public struct TaskTimers: TimerSource {
    private let start = ContinuousClock.now

    public init() {}

    /// The time since the source was made, on a clock that never steps.
    public var now: Duration { start.duration(to: .now) }

    /// Calls `fire` on a task of its own, not before `delay`.
    public func schedule(after delay: Duration, _ fire: @escaping @Sendable () -> Void) {
        Task.detached {
            try? await Task.sleep(for: delay)
            fire()
        }
    }
}
