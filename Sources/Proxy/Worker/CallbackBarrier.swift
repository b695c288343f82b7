import Bytes
import Libevent

/// Tells when all callbacks that are on their way at this moment have been made, on every loop.
///
/// One for all loops, used from any thread. Each loop joins as it is made; one that has ended keeps nobody waiting.
final class CallbackBarrier: Sendable {
    private let loops = Guarded<[LoopBound<Turns>]>([])

    /// Has the callbacks of this loop waited for, too, from now on. On its thread.
    func add(_ turns: Turns, on loop: EventLoop) {
        let turns = LoopBound(turns, on: loop)
        loops.withLock { $0.append(turns) }
    }

    /// Runs `job`, on any thread, once every loop has made the callbacks that were posted to it before, or are just
    /// being posted by what runs there. A loop that ends before that calls nobody back.
    func whenAllAreCalledBack(_ job: @escaping @Sendable () -> Void) {
        let end = WhenLetGo(job)
        for turns in loops.withLock({ $0 }) {
            // The first comes when what runs now is done, so that the second is behind all it posts; and some of those
            // are put off to later turns.
            turns.handle.enqueue {
                turns.handle.enqueue { turns.value.put { withExtendedLifetime(end) {} } }
            }
        }
    }
}

/// Calls back when everybody who holds it has let go of it: of what an ended loop no longer does, too, and drops.
private final class WhenLetGo: Sendable {
    private let job: @Sendable () -> Void

    init(_ job: @escaping @Sendable () -> Void) { self.job = job }

    deinit { job() }
}
