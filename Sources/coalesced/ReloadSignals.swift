import Coalescing
import Libevent

/// The signals that ask for a reload: the first one is followed at once, those that come closely behind it are combined.
/// The file is read on the loop that also answers health checks, so a burst must not have it read for each; but it is
/// read once more after the last.
///
/// ```
/// quiet ─signal→ reload → burst ─signal→ gathering ─quiet again, or maxWait→ reload → burst;   burst ─coalesceWait→ quiet
/// ```
///
/// Owned by the watch for the signal, confined to the daemon's loop.
final class ReloadSignals {
    /// Between the signals of a burst, and after a reload, passes less than this. A script that sends one for each of many
    /// files takes a few milliseconds for it; who waits for a reload should not notice.
    static let coalesceWait = Duration.milliseconds(20)
    /// A burst without end has the file read this often.
    static let maxWait = Duration.milliseconds(250)

    /// What follows a signal, at once or later.
    private final class Reloading {
        let reload: () -> Void
        /// When the last signal came, or the last reload was over.
        var latest: Duration?

        init(_ reload: @escaping () -> Void) { self.reload = reload }

        func perform() {
            reload()
            // A signal that came while the file was read, which may take long, is not the first of another burst.
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

    /// It would act on what it has gathered.
    deinit { burst.cancel() }

    /// One has come. On the loop's thread.
    func arrived() {
        let now = LoopTimers.now
        let isFirst = reloading.latest.map { now - $0 >= Self.coalesceWait } ?? true
        reloading.latest = now
        guard isFirst else { return burst.add(()) }
        // Something is left there only if its timer is late.
        burst.cancel()
        reloading.perform()
    }
}

/// A loop's timers for what knows no loops.
private struct LoopTimers: TimerSource {
    let loop: LoopBound<EventLoop>

    /// Not the loop's time, which stands still during an iteration, however long.
    static var now: Duration { .microseconds(System.monotonicMicroseconds()) }
    var now: Duration { Self.now }

    func schedule(after delay: Duration, _ fire: @escaping @Sendable () -> Void) {
        loop.handle.enqueue { [loop] in loop.value.schedule(after: delay.nanoseconds, fire) }
    }
}
