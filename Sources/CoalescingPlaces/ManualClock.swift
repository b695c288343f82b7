import Coalescing
import Synchronization

/// A clock for tests: its time passes only in `advance`, which fires the timers that come due on the caller's stack and
/// wakes the tasks that sleep. A test with it needs no sleep.
///
///     let clock = ManualClock()
///     let log = CoalescingExecutor(coalesceWait: .seconds(1), maxWait: .seconds(5), timers: clock.timers, …)
///     clock.advance(by: .seconds(1))
public final class ManualClock: Clock {
    /// A moment of a manual clock.
    public struct Instant: InstantProtocol {
        /// The time since the clock was made.
        public let sinceStart: Duration

        public func advanced(by duration: Duration) -> Instant { Instant(sinceStart: sinceStart + duration) }
        public func duration(to other: Instant) -> Duration { other.sinceStart - sinceStart }
        public static func < (a: Instant, b: Instant) -> Bool { a.sinceStart < b.sinceStart }
    }

    /// A manual clock's timers, for code that takes a `TimerSource`.
    public struct Timers: TimerSource {
        fileprivate let clock: ManualClock

        /// The time since the clock was made.
        public var now: Duration { clock.now.sinceStart }

        /// Calls `fire` from the `advance` that reaches its time.
        public func schedule(after delay: Duration, _ fire: @escaping @Sendable () -> Void) {
            clock.state.withLock { state in
                let alarm = Alarm(number: state.number(), due: state.now.advanced(by: delay)) { _ in fire() }
                state.insert(alarm)
            }
        }
    }

    private struct Alarm: Sendable {
        let number: Int
        let due: Instant
        let ring: @Sendable (_ isCancelled: Bool) -> Void
    }

    private struct State: Sendable {
        var now = Instant(sinceStart: .zero)
        /// In the order in which they ring.
        var alarms: [Alarm] = []
        private var numbers = 0

        mutating func number() -> Int {
            numbers += 1
            return numbers
        }

        mutating func insert(_ alarm: Alarm) {
            alarms.insert(alarm, at: alarms.firstIndex { $0.due > alarm.due } ?? alarms.endIndex)
        }

        mutating func remove(_ number: Int) -> Alarm? {
            alarms.firstIndex { $0.number == number }.map { alarms.remove(at: $0) }
        }

        /// The next alarm that is due at `moment`, and the clock at its time; `nil`, and the clock at `moment`, if there
        /// is none.
        mutating func next(until moment: Instant) -> Alarm? {
            guard let alarm = alarms.first, alarm.due <= moment else {
                now = max(now, moment)
                return nil
            }
            now = max(now, alarm.due)
            return alarms.removeFirst()
        }
    }

    private let state = Mutex(State())

    public init() {}

    public var now: Instant { state.withLock { $0.now } }

    /// Any duration can be told from zero.
    public var minimumResolution: Duration { .zero }

    /// This clock's timers.
    public var timers: Timers { Timers(clock: self) }

    /// The number of timers and sleeping tasks whose time has not come. Before `advance`, a test waits here for a task
    /// that is about to sleep.
    public var waiting: Int { state.withLock { $0.alarms.count } }

    /// Lets `duration` pass. Each timer fires at its own time, one after the other, and so do the timers that these
    /// schedule.
    public func advance(by duration: Duration) {
        let moment = now.advanced(by: duration)
        while let alarm = state.withLock({ $0.next(until: moment) }) { alarm.ring(false) }
    }

    /// Returns when the clock has come to `deadline`; at once if it is past.
    ///
    /// - Throws: `CancellationError` if the task is cancelled.
    public func sleep(until deadline: Instant, tolerance: Duration? = nil) async throws {
        let number = state.withLock { $0.number() }
        try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { (continuation: CheckedContinuation<Void, any Error>) in
                let alarm = Alarm(number: number, due: deadline) { isCancelled in
                    if isCancelled {
                        continuation.resume(throwing: CancellationError())
                    } else {
                        continuation.resume()
                    }
                }
                // A task that is cancelled from now on finds the alarm.
                let (isCancelled, isPast) = state.withLock { state in
                    let (isCancelled, isPast) = (Task.isCancelled, deadline <= state.now)
                    if !isCancelled && !isPast { state.insert(alarm) }
                    return (isCancelled, isPast)
                }
                if isCancelled || isPast { alarm.ring(isCancelled) }
            }
        } onCancel: {
            state.withLock { $0.remove(number) }?.ring(true)
        }
    }
}
