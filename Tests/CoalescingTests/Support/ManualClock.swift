import Synchronization

@testable import Coalescing
@testable import CoalescingPlaces

/// Time that passes only when told to; what comes due meanwhile fires in order, each at its own moment.
final class ManualClock: TimerSource {
    private struct Timer: Sendable {
        let due: Duration
        let fire: @Sendable () -> Void
    }

    private struct State: Sendable {
        var now = Duration.zero
        var timers: [Timer] = []
        var scheduled = 0
    }

    private let state = Protected(State())

    var now: Duration { state.withLock { $0.now } }

    /// How often anybody asked to be woken.
    var scheduled: Int { state.withLock { $0.scheduled } }

    func schedule(after delay: Duration, _ fire: @escaping @Sendable () -> Void) {
        state.withLock { state in
            state.timers.append(Timer(due: state.now + delay, fire: fire))
            state.scheduled += 1
        }
    }

    func advance(by step: Duration) {
        let end = now + step
        while let timer = takeNext(until: end) { timer.fire() }
        state.withLock { $0.now = end }
    }

    private func takeNext(until end: Duration) -> Timer? {
        state.withLock { state in
            guard let next = state.timers.indices.min(by: { state.timers[$0].due < state.timers[$1].due }),
                state.timers[next].due <= end
            else { return nil }
            state.now = state.timers[next].due
            return state.timers.remove(at: next)
        }
    }
}
