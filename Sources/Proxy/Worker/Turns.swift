import Bytes
import Libevent

/// One of many that are due at the same time, and can be served now or in a later turn.
protocol TurnTaker: AnyObject {
    /// Serves this taker now. Called on the loop; also if it has left meanwhile.
    func turnCame()
}

/// Serves crowds in turns: when thousands of waiters get their response at once, the loop's other clients are served in
/// between.
///
/// Confined to its loop. The first of an iteration are served on the spot, so that ordinary traffic is not put off.
final class Turns {
    /// Served before the loop's other work: some 150 µs of it.
    static let turn = 8

    private let loop: EventLoop
    /// Complete turns, in order; those before `next` have been served. The last one, `filling`, is not complete yet.
    private var full: [[any TurnTaker]] = []
    private var next = 0
    private let filling = Exclusive<[any TurnTaker]>([])
    /// Whether a later turn is scheduled: until it has come, nobody goes before those who wait for it.
    private var isWaiting = false
    private var served = 0
    /// Takers that are served at the end of this iteration.
    private let soon = Exclusive<[any TurnTaker]>([])
    private var hasHook = false

    init(loop: EventLoop) { self.loop = loop }

    /// Serves it on the spot, or in a later turn.
    func serve(_ taker: any TurnTaker) {
        if takeTurn() { taker.turnCame() } else { put(taker) }
    }

    /// Whether the caller may be served on the spot, which is counted; if not, it is to be `put` off.
    func takeTurn() -> Bool {
        guard !isWaiting, served < Self.turn else { return false }
        hookOnce()
        served += 1
        return true
    }

    /// Serves it when all sockets that are ready in this iteration have been read.
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

    /// Serves it in a later turn.
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

    /// Gives it a turn to itself, behind those who wait now: it serves up to `turn` of its own there.
    func putAlone(_ taker: any TurnTaker) {
        var turn: [any TurnTaker] = []
        filling.use { swap(&turn, &$0) }
        if !turn.isEmpty { full.append(turn) }
        full.append([taker])
        if !isWaiting { goOnLater() }
    }

    /// Runs `job` in a later turn, behind those who wait now.
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

    /// The loop ends: no later turn comes, and nobody is held for one.
    private func letGo() {
        let former = (full, filling.use { $0 })
        (full, next) = ([], 0)
        filling.use { $0 = [] }
        // Let go of here, not while it is changed: that may put somebody.
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
