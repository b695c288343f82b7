import Bytes

/// Runs a job on a loop after a delay: once, however often it is scheduled meanwhile. Any thread may schedule, also
/// before there is a loop.
///
///     idle ─schedule→ pending ─delay over→ idle;   pending without a loop ─attach→ pending
public final class OnceLater: Sendable {
    /// Runs on the loop's thread.
    public typealias Job = @Sendable () -> Void

    private struct State {
        var loop: LoopBound<EventLoop>?
        var isPending = false
        /// The job scheduled while there was no loop.
        var early: (delay: Int64, job: Job)?
    }

    private let state = Guarded(State())

    public init() {}

    /// Makes `loop` run the jobs from now on, also one scheduled before. On the loop's thread, once.
    public func attach(to loop: EventLoop) {
        let bound = LoopBound(loop, on: loop)
        let early = state.withLock { state in
            state.loop = bound
            return state.early.take()
        }
        if let early { start(on: bound, early.delay, early.job) }
    }

    /// Runs `job` once `delay` nanoseconds have passed; before `attach`, the delay begins with `attach`. Does nothing
    /// if a job is still to run. Any thread.
    public func schedule(after delay: Int64, _ job: @escaping Job) {
        let loop = state.withLock { state -> LoopBound<EventLoop>? in
            guard !state.isPending else { return nil }
            state.isPending = true
            if state.loop == nil { state.early = (delay, job) }
            return state.loop
        }
        if let loop { start(on: loop, delay, job) }
    }

    private func start(on loop: LoopBound<EventLoop>, _ delay: Int64, _ job: @escaping Job) {
        loop.handle.enqueue { [self] in
            loop.value.schedule(after: delay) { [self] in
                state.withLock { $0.isPending = false }
                job()
            }
        }
    }
}
