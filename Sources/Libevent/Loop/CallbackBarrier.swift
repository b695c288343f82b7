import Bytes

/// Runs a job once every callback that is pending at this moment has been made, on every loop.
///
/// One for all loops, used on any thread. Each loop is added when it is made; a loop that has ended delays no job.
public final class CallbackBarrier: Sendable {
    private let loops = Guarded<[LoopBound<Turns>]>([])

    /// A barrier without loops.
    public init() {}

    /// Makes later jobs wait for the callbacks of this loop too. Called on its thread.
    public func add(_ turns: Turns, on loop: EventLoop) {
        let turns = LoopBound(turns, on: loop)
        loops.withLock { $0.append(turns) }
    }

    /// Runs `job`, on any thread, once every loop has made the callbacks that were posted to it before this call, or
    /// that its current callback is posting. Callbacks of a loop that ends first are dropped, and not waited for.
    public func whenAllAreCalledBack(_ job: @escaping @Sendable () -> Void) {
        let end = WhenLetGo(job)
        for turns in loops.withLock({ $0 }) {
            // The first closure runs after the loop's current callback, so that the second is queued behind all that
            // this callback posts. `putSoon` waits for the callbacks that were deferred to later turns.
            turns.handle.enqueue {
                turns.handle.enqueue { turns.value.putSoon { withExtendedLifetime(end) {} } }
            }
        }
    }
}

/// Runs `job` when the last reference to it is released: by closures that have run, or that an ended loop has dropped.
private final class WhenLetGo: Sendable {
    private let job: @Sendable () -> Void

    init(_ job: @escaping @Sendable () -> Void) { self.job = job }

    deinit { job() }
}
