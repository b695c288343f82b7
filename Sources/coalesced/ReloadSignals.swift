import Coalescing
import Libevent

/// The signals that ask for a reload. The first signal of a burst reloads at once; later ones are combined. The loop
/// that reads the file also answers health checks, so a burst must not read the file once per signal. But the file is
/// read once more after the burst's last signal.
///
/// ```
/// quiet ─signal→ reload → burst ─signal→ gathering ─quiet again, or maxWait→ reload → burst
///                         burst ─coalesceWait→ quiet
/// ```
///
/// The signal's watch owns this object, which is confined to the daemon's loop.
final class ReloadSignals {
    /// The longest pause between the signals of a burst, and after a reload. A script that sends a signal for each of
    /// many files needs a few milliseconds; an operator who waits for a reload should not notice.
    static let coalesceWait = Duration.milliseconds(20)
    /// The time between reloads in an endless burst.
    static let maxWait = Duration.milliseconds(250)

    /// Performs the reload, at once or later.
    private final class Reloading {
        let reload: () -> Void
        /// The time of the last signal or of the end of the last reload.
        var latest: Duration?

        init(_ reload: @escaping () -> Void) { self.reload = reload }

        func perform() {
            reload()
            // Reading the file may take long. A signal that came meanwhile is not the first of another burst.
            latest = LoopTimers.now
        }
    }

    private let reloading: Reloading
    private let burst: CoalescingExecutor<Void>

    /// - Parameter reload: called on the loop.
    init(on loop: EventLoop, reload: @escaping () -> Void) {
        let reloading = Reloading(reload)
        self.reloading = reloading
        let bound = LoopBound(reloading, on: loop)
        burst = CoalescingExecutor(
            coalesceWait: Self.coalesceWait, maxWait: Self.maxWait, timers: LoopTimers(loop: LoopBound(loop, on: loop)),
            on: InlineQueue.shared, combine: { _, _ in }, act: { bound.value.perform() })
    }

    /// Without this, the executor would perform the reload it has gathered.
    deinit { burst.cancel() }

    /// Notes a signal. On the loop's thread.
    func arrived() {
        let now = LoopTimers.now
        let isFirst = reloading.latest.map { now - $0 >= Self.coalesceWait } ?? true
        reloading.latest = now
        guard isFirst else { return burst.add(()) }
        // The executor holds a signal here only if its timer is late.
        burst.cancel()
        reloading.perform()
    }
}

/// A loop's timers, for types that know no loops.
private struct LoopTimers: TimerSource {
    let loop: LoopBound<EventLoop>

    /// Not `EventLoop.now`, which stands still during an iteration, however long the iteration takes.
    static var now: Duration { .microseconds(System.monotonicMicroseconds()) }
    var now: Duration { Self.now }

    func schedule(after delay: Duration, _ fire: @escaping @Sendable () -> Void) {
        loop.handle.enqueue { [loop] in loop.value.schedule(after: delay.nanoseconds, fire) }
    }
}
