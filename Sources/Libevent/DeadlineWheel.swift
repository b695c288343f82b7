/// Something that deadlines can be set for. A base class, not a protocol: reaching a deadline is then a call through
/// the class's table.
open class DeadlineTarget {
    public init() {}

    /// A deadline of this object has come. On the loop's thread.
    ///
    /// To make activity cheap, leave the deadline armed, only note the time of the activity, and return here when the
    /// deadline should really be.
    /// - Returns: when the same deadline is due again, in nanoseconds like `EventLoop.now`; `nil` if it has ended.
    open func deadlineReached() -> Int64? { nil }
}

/// Deadlines by the thousand on one loop, at constant cost each and with one libevent timer for all.
///
/// Time is coarse: a deadline is never reached before its time on the loop's clock, and normally within one tick after
/// it. Ticks are computed from the clock, so lateness does not add up. When thousands come together, each iteration of
/// the loop reaches a share of them, in the order of their ticks, and what is ready besides has its place between: the
/// last ones are late by as long as all of that takes. What is due may still be moved or cancelled until it is reached.
/// An armed deadline keeps its target alive. The timer only runs while something is armed.
///
/// After a jump of the clock, as when the process was stopped or its container frozen, no deadline is reached for a while
/// (`EventLoop.Jump`): what came meanwhile still lies in the sockets' buffers, and is read first.
///
/// ```
/// idle ─arm→ ticking ─tick with nothing due→ ticking;  nothing armed at a tick or behind a share→ idle
///               ├─tick with something due→ sharing ─job: a share, and more is due→ sharing
///               │                             └─job: a share, and nothing more is due→ ticking
///               └─tick behind a jump→ pausing ─tick, the pause is over→ ticking
/// ```
public final class DeadlineWheel {
    /// How coarse it is, and how large.
    public enum Settings {
        /// 100 ms, in nanoseconds: timeouts are given in seconds, and ten wake-ups a second cost nothing.
        public static let tick: Int64 = 100_000_000
        /// 51 s per turn: most timeouts fire in their first.
        static let rings = 512
        /// Reached in one iteration: some 0.3 ms, if each of them is answered 408. Others wait no longer for these.
        static let share = 16
    }

    /// Without the run-time exclusivity check: the wheel calls no other code, and what it held is released outside it.
    @exclusivity(unchecked) private var wheel = Wheel<DeadlineTarget>(ringCount: Settings.rings)
    private var timer: Timer?
    /// Whether a job is posted that reaches a share of what is due.
    private var isSharing = false
    /// When it last turned, in nanoseconds of the loop's clock.
    private var lastTurn: Int64 = 0
    /// Until when no deadline is reached, since the clock jumped; `nil` if it did not.
    private var pausesUntil: Int64?
    /// The loop owns its wheel.
    private unowned let loop: EventLoop
    private let origin: Int64

    init(loop: EventLoop) {
        self.loop = loop
        origin = loop.now
    }

    /// How many are armed.
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

    /// Moves an armed deadline; false if it has ended.
    @discardableResult
    public func move(_ deadline: Deadline, to time: Int64) -> Bool {
        unsafe wheel.move(deadline, to: tick(after: time))
    }

    /// Disarms and forgets; does nothing if it has ended.
    public func cancel(_ deadline: Deadline) {
        // Taken out first, so that whatever ends with it finds the wheel at rest.
        _ = unsafe wheel.remove(deadline)
    }

    /// Releases all targets: they keep the loop, which keeps this wheel.
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
    /// - Returns: whether the clock has jumped since the one before, or before that, and the sockets come first.
    private func isPausing() -> Bool {
        let now = loop.now
        let jumped = now - lastTurn >= EventLoop.Jump.least
        lastTurn = now
        if let until = pausesUntil {
            guard now >= until else { return true }
            // Not once more: where each iteration takes as long as a jump, deadlines are reached all the same.
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
        // Stopped since the last turn: the next one notices, and what is due waits for it.
        guard pausesUntil == nil, loop.now - lastTurn < EventLoop.Jump.least else { return }
        var left = Settings.share
        // A finished loop reaches nothing more, though it runs the job.
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
