import CoalescingPlaces
package import Libevent

/// A loop's timers, for types that know no loops.
package struct LoopTimers: TimerSource {
    private let loop: LoopBound<EventLoop>
    private let start = ContinuousClock.now

    /// On the loop's thread.
    package init(_ loop: EventLoop) { self.loop = LoopBound(loop, on: loop) }

    /// The time since this was made. Not `EventLoop.now`, which stands still during an iteration, however long the
    /// iteration takes.
    package var now: Duration { start.duration(to: .now) }

    /// Calls `fire` on the loop's thread.
    package func schedule(after delay: Duration, _ fire: @escaping @Sendable () -> Void) {
        loop.handle.enqueue { [loop] in loop.value.schedule(after: delay.nanoseconds, fire) }
    }
}
