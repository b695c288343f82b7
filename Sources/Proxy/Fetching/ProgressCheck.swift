import Libevent

/// Checks from time to time whether the origin of a shared fetch stands still: then the next request starts another
/// fetch. Belongs to one fetch, on its loop.
struct ProgressCheck {
    /// When the origin last made progress, in nanoseconds of the loop's clock.
    var last: Int64 = 0
    private var deadline = LazyDeadline<Void>()

    /// How long the origin may stand still, in nanoseconds: at least a tick, the resolution of the wheel; with less, an
    /// origin that sends all the time would seem to stand still at each check.
    private static func patience(with fetch: Fetch) -> Int64 {
        max(fetch.worker.settings.coalescing.overtakeAfter.nanoseconds, DeadlineWheel.Settings.tick)
    }

    /// Arms the first check. `Fetch.deadlineReached` calls `reached`.
    mutating func begin(for fetch: Fetch) { arm(after: Self.patience(with: fetch), for: fetch) }

    private mutating func arm(after nanoseconds: Int64, for fetch: Fetch) {
        deadline = deadline.awaiting(
            (), until: fetch.worker.now + nanoseconds, for: fetch, on: fetch.worker.deadlines)
    }

    mutating func cancel(on wheel: DeadlineWheel) { deadline = deadline.cancelled(on: wheel) }

    enum Outcome {
        /// The wheel is to call again at this time, if it is set.
        case goesOn(Int64?)
        /// The origin has made no progress for too long.
        case standsStill
    }

    /// - Parameter isPaused: whether the origin cannot show progress, since it is held back.
    mutating func reached(for fetch: Fetch, isPaused: Bool) -> Outcome {
        let (reached, left) = deadline.reached(at: fetch.worker.now)
        deadline = left
        switch reached {
        case .nothing: return .goesOn(nil)
        case .later(let time): return .goesOn(time)
        case .due: break
        }
        let (stillFor, patience) = (isPaused ? 0 : fetch.worker.now - last, Self.patience(with: fetch))
        guard stillFor < patience else { return .standsStill }
        arm(after: patience - stillFor, for: fetch)
        return .goesOn(nil)
    }
}
