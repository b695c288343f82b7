/// An object that deadlines can be set for. A base class, not a protocol, so that reaching a deadline is a call through
/// the class's table.
open class DeadlineTarget {
    public init() {}

    /// Called on the loop's thread when a deadline of this object has come.
    ///
    /// To make activity cheap, leave the deadline armed and note only the time of the activity. Return from here the
    /// time at which the deadline should really be.
    /// - Returns: the time at which the same deadline is due again, in nanoseconds like `EventLoop.now`; `nil` ends the
    ///   deadline.
    open func deadlineReached() -> Int64? { nil }
}

/// Thousands of deadlines on one loop, at constant cost each, with one libevent timer for all.
///
/// Time is coarse: a deadline is never reached before its time on the loop's clock, and normally within one tick after
/// it. Ticks are computed from the clock, so lateness does not add up. When thousands of deadlines are due together,
/// each iteration of the loop reaches a share of them, in the order of their ticks, and serves its other events in
/// between. The last deadlines are late by the time that all of this takes. A due deadline can still be moved or
/// cancelled until it is reached. An armed deadline keeps its target alive. The timer runs only while a deadline is
/// armed.
///
/// After a jump of the clock, as when the process was stopped or its container frozen, no deadline is reached for a
/// while (`EventLoop.Jump`): the bytes that arrived meanwhile still lie in the sockets' buffers, and are read first.
///
/// ```
/// idle ─arm→ ticking ─tick with nothing due→ ticking;  nothing armed at a tick or behind a share→ idle
///               ├─tick with something due→ sharing ─job: a share, and more is due→ sharing
///               │                             └─job: a share, and nothing more is due→ ticking
///               └─tick behind a jump→ pausing ─tick, the pause is over→ ticking
/// ```
public final class DeadlineWheel {
    /// The wheel's tick and size.
    public enum Settings {
        /// 100 ms, in nanoseconds. Timeouts are given in seconds, and ten wake-ups a second cost next to nothing.
        public static let tick: Int64 = 100_000_000
        /// 51 s per turn: most timeouts fire in their first turn.
        static let rings = 512
        /// The number of deadlines reached in one iteration. Other events wait no longer than this takes: about 0.3 ms
        /// if every deadline is answered with 408.
        static let share = 16
    }

    /// No run-time exclusivity check: the wheel calls no other code, and targets are released outside of its methods.
    @exclusivity(unchecked) private var wheel = Wheel<DeadlineTarget>(ringCount: Settings.rings)
    private var timer: Timer?
    /// Whether a job is posted that will reach a share of the due deadlines.
    private var isSharing = false
    /// The time of the last turn, in nanoseconds of the loop's clock.
    private var lastTurn: Int64 = 0
    /// No deadline is reached before this time, since the clock jumped; `nil` if it did not.
    private var pausesUntil: Int64?
    /// The loop owns its wheel.
    private unowned let loop: EventLoop
    private let origin: Int64

    init(loop: EventLoop) {
        self.loop = loop
        origin = loop.now
    }

    /// The number of armed deadlines.
    public var count: Int { unsafe wheel.count }

    /// Lets `target.deadlineReached()` be called once `time` (nanoseconds like `EventLoop.now`) has come.
    public func arm(_ target: DeadlineTarget, at time: Int64) -> Deadline {
        if timer == nil {
            // The wheel did not turn while nothing was armed.
            unsafe wheel.collect(upTo: tick(before: loop.now))
            lastTurn = loop.now
            pausesUntil = nil
            timer = loop.schedule(every: Settings.tick) { [unowned self] in turn() }
        }
        return unsafe wheel.insert(target, at: tick(after: time))
    }

    /// Lets `target.deadlineReached()` be called `delay` nanoseconds after the loop's `now`.
    public func arm(_ target: DeadlineTarget, after delay: Int64) -> Deadline {
        arm(target, at: later(delay))
    }

    /// Moves an armed deadline; returns false if the deadline has ended.
    @discardableResult
    public func move(_ deadline: Deadline, to time: Int64) -> Bool {
        unsafe wheel.move(deadline, to: tick(after: time))
    }

    /// Disarms a deadline; does nothing if it has ended.
    public func cancel(_ deadline: Deadline) {
        // `remove` returns the target, so that code in the target's `deinit` runs when the wheel is no longer in use.
        _ = unsafe wheel.remove(deadline)
    }

    /// Releases all targets. A target can keep the loop alive, and the loop keeps this wheel.
    func loopEnds() {
        timer = nil
        var former = Wheel<DeadlineTarget>(ringCount: Settings.rings)
        unsafe swap(&former, &wheel)
    }

    private func turn() {
        guard !isPausing() else { return }
        unsafe wheel.collect(upTo: tick(before: loop.now))
        if unsafe wheel.hasDue { shareLater() } else { restIfEmpty() }
    }

    /// Notes a turn.
    /// - Returns: whether the sockets come first, since the clock jumped in the last turn or during the present pause.
    private func isPausing() -> Bool {
        let now = loop.now
        let jumped = now - lastTurn >= EventLoop.Jump.least
        lastTurn = now
        if let until = pausesUntil {
            guard now >= until else { return true }
            // Do not pause again at once: deadlines must be reached even if every iteration takes as long as a jump.
            pausesUntil = nil
            return false
        }
        if jumped { pausesUntil = now + EventLoop.Jump.pause }
        return jumped
    }

    private func shareLater() {
        guard !isSharing else { return }
        let bound = LoopBound(self, on: loop)
        isSharing = loop.handle.post { bound.value.reachShare() }
    }

    private func reachShare() {
        isSharing = false
        // The process was stopped after the last turn. The next turn notices the jump; the due deadlines wait for it.
        guard pausesUntil == nil, loop.now - lastTurn < EventLoop.Jump.least else { return }
        var left = Settings.share
        // A finished loop still runs this job, but reaches no more deadlines.
        while left > 0, !loop.isFinished, let (deadline, target) = unsafe wheel.nextDue() {
            left -= 1
            if let again = target.deadlineReached() {
                unsafe wheel.move(deadline, to: tick(after: again))
            } else {
                unsafe wheel.remove(deadline)
            }
        }
        if unsafe wheel.hasDue { shareLater() } else { restIfEmpty() }
    }

    private func restIfEmpty() {
        guard unsafe wheel.count == 0 else { return }
        timer?.cancel()
        timer = nil
    }

    private func later(_ delay: Int64) -> Int64 {
        let (time, overflow) = loop.now.addingReportingOverflow(delay)
        return overflow ? .max : time
    }

    /// The last tick that has begun at `time`.
    private func tick(before time: Int64) -> Int64 { (time - origin) / Settings.tick }

    /// The first tick not before `time`.
    private func tick(after time: Int64) -> Int64 {
        let elapsed = max(0, time - origin)
        return elapsed / Settings.tick + (elapsed % Settings.tick == 0 ? 0 : 1)
    }
}
