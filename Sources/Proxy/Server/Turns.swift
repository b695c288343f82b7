import Libevent
import Synchronization

/// Serves crowds in turns: when thousands of waiters get their response at once, the loop's other clients get a look-in between.
///
/// Confined to its loop. The first of an iteration are served on the spot, so that ordinary traffic is not put off.
final class Turns {
    /// Served before the loop's other work: a few milliseconds of it.
    static let turn = 256

    private let loop: EventLoop
    private var waiting: ArraySlice<() -> Void> = []
    private var served = 0

    init(loop: EventLoop) { self.loop = loop }

    /// Whether the caller may be served on the spot; if not, it is `put` off.
    func isMine() -> Bool {
        guard waiting.isEmpty, served < Self.turn else { return false }
        if served == 0 { loop.afterBatch { [self] in served = 0 } }
        served += 1
        return true
    }

    /// Serves it in a later turn.
    func put(_ job: @escaping () -> Void) {
        if waiting.isEmpty { goOnLater() }
        waiting.append(job)
    }

    private func goOnLater() {
        let bound = LoopBound(self, on: loop)
        loop.handle.post { bound.value.goOn() }
    }

    private func goOn() {
        let due = waiting.prefix(Self.turn)
        waiting = waiting.dropFirst(Self.turn)
        if waiting.isEmpty { waiting = [] } else { goOnLater() }
        for job in due { job() }
    }
}

/// The turns of one loop, for the other loops.
struct LoopOfTurns: Sendable {
    let turns: LoopBound<Turns>

    /// Runs `job` there once everybody has been called back whose callback was posted before, or is posted by what runs there at this moment.
    func afterCallbacks(_ job: @escaping @Sendable () -> Void) {
        // The first comes when what runs now is done, so that the second is behind all it posts; and some of those are put off.
        let comes = turns.handle.post { [turns] in turns.handle.post { turns.value.put(job) } }
        // A loop that has ended calls nobody back.
        if !comes { job() }
    }
}

/// Calls back when the last of several things is done, on the thread where that is.
final class LastOfSeveral: Sendable {
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
