import Bytes
import Libevent

/// One of many objects that are due at the same time, and may be served now or in a later turn.
protocol TurnTaker: AnyObject {
    /// Serves this taker now. Called on the loop; also if the taker no longer needs the turn.
    func turnCame()
}

/// Serves many waiters in turns: when thousands of waiters get their response at once, the loop serves its other
/// clients between two turns.
///
/// Confined to its loop. The first takers of an iteration are served at once, so that ordinary traffic is not deferred.
final class Turns {
    /// Takers served in one turn, before the loop's other work: they take some 150 µs.
    static let turn = 8

    private let loop: EventLoop
    /// Complete turns, in order; the turns before `next` have been served. The turn after the last of them is
    /// `filling`, which is not complete yet.
    private var full: [[any TurnTaker]] = []
    private var next = 0
    private let filling = Exclusive<[any TurnTaker]>([])
    /// Whether a later turn is scheduled. Until it has run, no taker is served at once, ahead of the takers that wait
    /// for it.
    private var isWaiting = false
    private var served = 0
    /// Takers that are served at the end of this iteration.
    private let soon = Exclusive<[any TurnTaker]>([])
    private var hasHook = false

    init(loop: EventLoop) { self.loop = loop }

    /// Serves the taker at once, or in a later turn.
    func serve(_ taker: any TurnTaker) {
        if takeTurn() { taker.turnCame() } else { put(taker) }
    }

    /// Whether the caller may be served at once, which is then counted; if not, the caller must `put` itself into a
    /// later turn.
    func takeTurn() -> Bool {
        guard !isWaiting, served < Self.turn else { return false }
        hookOnce()
        served += 1
        return true
    }

    /// Serves the taker when all sockets that are ready in this iteration have been read.
    func putSoon(_ taker: any TurnTaker) {
        hookOnce()
        soon.use { $0.append(taker) }
    }

    private func hookOnce() {
        guard !hasHook else { return }
        hasHook = true
        loop.atIterationEnd { [self] in iterationEnds() }
    }

    private func iterationEnds() {
        var due: [any TurnTaker] = []
        soon.use { swap(&due, &$0) }
        for taker in due { serve(taker) }
        due.removeAll(keepingCapacity: true)
        served = 0
        hasHook = false
        let isDone = soon.use { soon in
            guard soon.isEmpty else { return false }
            // Reuse the array's storage.
            swap(&due, &soon)
            return true
        }
        if !isDone { hookOnce() }
    }

    /// Serves the taker in a later turn.
    func put(_ taker: any TurnTaker) {
        let turn = filling.use { filling -> [any TurnTaker]? in
            filling.append(taker)
            guard filling.count == Self.turn else { return nil }
            var turn: [any TurnTaker] = []
            swap(&turn, &filling)
            filling.reserveCapacity(Self.turn)
            return turn
        }
        if let turn { full.append(turn) }
        if !isWaiting { goOnLater() }
    }

    /// Gives the taker a turn of its own, behind the takers that wait now. In it, the taker serves up to `turn` waiters
    /// itself.
    func putAlone(_ taker: any TurnTaker) {
        var turn: [any TurnTaker] = []
        filling.use { swap(&turn, &$0) }
        if !turn.isEmpty { full.append(turn) }
        full.append([taker])
        if !isWaiting { goOnLater() }
    }

    /// Runs `job` in a later turn, behind the takers that wait now.
    func put(_ job: @escaping () -> Void) { put(Job(job)) }

    private final class Job: TurnTaker {
        private let job: () -> Void

        init(_ job: @escaping () -> Void) { self.job = job }

        func turnCame() { job() }
    }

    private func goOnLater() {
        let bound = LoopBound(self, on: loop)
        isWaiting = loop.handle.post { bound.value.goOn() }
        if !isWaiting { letGo() }
    }

    /// The loop ends and runs no later turn: releases all waiting takers.
    private func letGo() {
        let former = (full, filling.use { $0 })
        (full, next) = ([], 0)
        filling.use { $0 = [] }
        // Release the takers here, not while `filling` is being changed: a `deinit` may call `put`.
        withExtendedLifetime(former) {}
    }

    private func goOn() {
        var due: [any TurnTaker] = []
        if next < full.count { takeNext(&due) } else { filling.use { swap(&due, &$0) } }
        isWaiting = false
        if next < full.count || filling.use({ !$0.isEmpty }) { goOnLater() }
        for taker in due { taker.turnCame() }
    }

    private func takeNext(_ turn: inout [any TurnTaker]) {
        swap(&turn, &full[next])
        next += 1
        if next == full.count || next > 1024 && next > full.count / 2 {
            full.removeFirst(next)
            next = 0
        }
    }
}
