import Bytes

/// One of many objects that are due at the same time, and may be served now or in a later turn.
public protocol TurnTaker: AnyObject {
    /// Serves this taker now. Called on the loop; also if the taker no longer needs the turn.
    func turnCame()
}

/// Serves many waiters in turns: when thousands of waiters get their response at once, the loop serves its other
/// clients between two turns.
///
/// Confined to its loop. The first takers of an iteration are served at once, so that ordinary traffic is not deferred.
public final class Turns {
    /// Takers served in one turn, before the loop's other work: they take some 150 µs.
    public static let turn = 8

    private let loop: EventLoop
    /// Takers of later turns, in order, each with its share of a turn. Those before `next` have been served.
    private let later = Exclusive<[(taker: (any TurnTaker)?, share: Int)]>([])
    private var next = 0
    /// Whether a later turn is scheduled. Until it has run, no taker is served at once, ahead of the takers that wait
    /// for it.
    private var isWaiting = false
    private var served = 0
    /// Takers that are served at the end of this iteration.
    private let soon = Exclusive<[any TurnTaker]>([])
    private var hasHook = false

    /// Turns on this loop, without takers.
    public init(loop: EventLoop) { self.loop = loop }

    /// Serves the taker at once, or in a later turn.
    public func serve(_ taker: any TurnTaker) {
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
    public func putSoon(_ taker: any TurnTaker) {
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
    func put(_ taker: any TurnTaker) { put(taker, share: 1) }

    /// Gives the taker a turn of its own, behind the takers that wait now. In it, the taker serves up to `turn` waiters
    /// itself.
    public func putAlone(_ taker: any TurnTaker) { put(taker, share: Self.turn) }

    private func put(_ taker: any TurnTaker, share: Int) {
        later.use { $0.append((taker, share)) }
        if !isWaiting { goOnLater() }
    }

    /// Runs `job` in a later turn, behind the takers that wait now.
    public func put(_ job: @escaping () -> Void) { put(Job(job)) }

    /// Runs `job` behind the takers that wait now, for the end of the iteration or for a later turn.
    public func putSoon(_ job: @escaping () -> Void) { putSoon(Job(job)) }

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
        var former: [(taker: (any TurnTaker)?, share: Int)] = []
        later.use { swap(&former, &$0) }
        next = 0
        // Release the takers here, not while `later` is being changed: a `deinit` may call `put`.
        withExtendedLifetime(former) {}
    }

    private func goOn() {
        var due: [any TurnTaker] = []
        due.reserveCapacity(Self.turn)
        let isDone = later.use { later in
            var room = Self.turn
            while next < later.count, later[next].share <= room, let taker = later[next].taker.take() {
                due.append(taker)
                room -= later[next].share
                next += 1
            }
            if next == later.count {
                // Release the memory of a rare burst.
                later.removeAll(keepingCapacity: later.capacity <= 1024)
                next = 0
            } else if next > 1024, next > later.count / 2 {
                later.removeFirst(next)
                next = 0
            }
            return later.isEmpty
        }
        isWaiting = false
        if !isDone { goOnLater() }
        for taker in due { taker.turnCame() }
    }
}
