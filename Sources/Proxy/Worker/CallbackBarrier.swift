import Bytes
import Libevent
import Synchronization

/// Tells when all callbacks that are on their way at this moment have been made, on every loop.
///
/// One for all loops, used from any thread. Each loop joins as it is made; one that has ended keeps nobody waiting.
final class CallbackBarrier: Sendable {
    private let loops = Guarded<[LoopBound<Turns>]>([])

    /// From now on callbacks of this loop are waited for too. On its thread.
    func add(_ turns: Turns, on loop: EventLoop) {
        let turns = LoopBound(turns, on: loop)
        loops.withLock { $0.append(turns) }
    }

    /// Runs `job`, on any thread, once every loop has made the callbacks that were posted to it before, or are just
    /// being posted by what runs there.
    func whenAllAreCalledBack(_ job: @escaping @Sendable () -> Void) {
        let loops = loops.withLock { $0 }
        let last = LastOfSeveral(loops.count, job)
        for turns in loops {
            // The first comes when what runs now is done, so that the second is behind all it posts; and some of those
            // are put off to later turns.
            let comes = turns.handle.post {
                if !turns.handle.post({ turns.value.put { last.done() } }) { last.done() }
            }
            // A loop that has ended calls nobody back.
            if !comes { last.done() }
        }
    }
}

/// Calls back when the last of several things is done, on the thread where that is.
private final class LastOfSeveral: Sendable {
    private let left: Atomic<Int>
    private let job: @Sendable () -> Void

    init(_ count: Int, _ job: @escaping @Sendable () -> Void) {
        left = Atomic(count)
        self.job = job
    }

    func done() {
        if left.subtract(1, ordering: .acquiringAndReleasing).newValue == 0 { job() }
    }
}
