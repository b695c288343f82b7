import Coalescing
import Libevent
import Routing
import Telemetry

/// Checks from time to time whether the origin of a shared fetch stands still: then the next request starts another
/// fetch. Belongs to one fetch, on its loop. Its methods return the next value: a change in place would need a run-time
/// check of exclusive access.
struct ProgressCheck {
    /// When the origin last made progress, in nanoseconds of the loop's clock.
    var last: Int64 = 0
    private var deadline = LazyDeadline<Void>()

    /// How long the origin may stand still, in nanoseconds: at least a tick, the resolution of the wheel; with less, an
    /// origin that sends all the time would seem to stand still at each check.
    private static func patience(with fetch: Fetch) -> Int64 {
        max(fetch.context.settings.coalescing.overtakeAfter.nanoseconds, DeadlineWheel.Settings.tick)
    }

    /// The check, armed for the first time. `Fetch.deadlineReached` calls `reached`.
    consuming func begun(for fetch: Fetch) -> Self { armed(after: Self.patience(with: fetch), for: fetch) }

    private consuming func armed(after nanoseconds: Int64, for fetch: Fetch) -> Self {
        deadline = deadline.awaiting(
            (), until: fetch.context.now + nanoseconds, for: fetch, on: fetch.context.deadlines)
        return self
    }

    consuming func cancelled(on wheel: DeadlineWheel) -> Self {
        deadline = deadline.cancelled(on: wheel)
        return self
    }

    /// Lets the next request start another fetch if the origin has made no progress for too long.
    /// - Parameter isPaused: whether the origin cannot show progress, since it is held back.
    /// - Returns: when the wheel is to call again.
    consuming func reached(for fetch: Fetch, isPaused: Bool) -> (next: Int64?, left: Self) {
        let (reached, left) = deadline.reached(at: fetch.context.now)
        deadline = left
        switch reached {
        case .nothing: return (nil, self)
        case .later(let time): return (time, self)
        case .due: break
        }
        let (stillFor, patience) = (isPaused ? 0 : fetch.context.now - last, Self.patience(with: fetch))
        if stillFor < patience { return (nil, armed(after: patience - stillFor, for: fetch)) }
        // The waiters stay. An incremental response is not overtaken: each request in a quiet hour would open another
        // stream.
        if !(fetch.state.isHandedOut && fetch.isIncremental), fetch.operation?.close() == true {
            fetch.context.metrics.add(.coalescing(.overtaken))
        }
        return (nil, self)
    }
}
