import Coalescing
import CoalescingPlaces
import Libevent
import Proxy

/// The signals that ask for a reload. The first signal of a burst reloads at once; later ones are combined. The loop
/// that reads the file also answers health checks, so a burst must not read the file once per signal. But the file is
/// read once more after the burst's last signal.
///
/// The signal's watch owns this object, which is confined to the daemon's loop.
final class ReloadSignals {
    /// The longest pause between the signals of a burst, and after a reload. A script that sends a signal for each of
    /// many files needs a few milliseconds; an operator who waits for a reload should not notice.
    static let coalesceWait = Duration.milliseconds(20)
    /// The time between reloads in an endless burst.
    static let maxWait = Duration.milliseconds(250)

    private let burst: CoalescingExecutor<Void>

    /// - Parameter reload: called on the loop.
    init(on loop: EventLoop, reload: @escaping () -> Void) {
        let reload = LoopBound(reload, on: loop)
        burst = CoalescingExecutor(
            coalesceWait: Self.coalesceWait, maxWait: Self.maxWait, firstAtOnce: true, timers: LoopTimers(loop),
            on: InlineQueue.shared, combine: { _, _ in }, act: { reload.value() })
    }

    /// Without this, the executor would perform the reload it has gathered.
    deinit { burst.cancel() }

    /// Notes a signal. On the loop's thread.
    func arrived() { burst.add(()) }
}
