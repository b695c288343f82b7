/// Decides how many ended sockets a loop closes in one iteration, and whether the program may end one more connection
/// now. Pure: counts and times are arguments.
///
/// An iteration closes only a few sockets, so that other sockets hardly wait. If more than ten thousand sockets wait,
/// it closes a proportional share; otherwise closing them would take a minute. Connections whose peers are still there,
/// and which the program could end later, wait outside the queue (`postpones`). Per tick, as many of them may end as
/// were closed in the tick before, or twice as many if the queue became empty. So a loop with nothing else to do ends
/// them as fast as it can, and none of them stays open, unread, for longer than about two ticks.
struct ClosingPace {
    /// The number of sockets closed in one iteration even if fewer were opened. Closing them takes about 40 µs.
    static let least = 4
    /// One socket is closed in an iteration for this many waiting sockets.
    static let share = 2_500
    /// The number of sockets that may always wait: some hundredths of a second on a busy loop.
    static let many = 256

    private let tick: Int64
    /// The numbers of sockets opened and closed in this iteration.
    private var opened = 0
    private var closed = 0
    /// The numbers of sockets closed and postponed since `askedAt`, the start of the tick of the last question.
    private var closedSince = 0
    private var postponedSince = 0
    private var askedAt: Int64?
    /// The number of sockets that may wait in the queue before further ones are postponed.
    private var most = ClosingPace.many
    /// The number of sockets that were postponed in the tick before; 0 once the queue is empty.
    private var crowd = 0

    /// - Parameter tick: the time after which a postponed connection asks again; nanoseconds.
    init(tick: Int64) { self.tick = tick }

    mutating func noteOpened() { opened += 1 }

    mutating func noteClosed() {
        closed += 1
        closedSince += 1
    }

    func closesMore(of waiting: Int) -> Bool { closed < max(Self.least, opened, (waiting + crowd) / Self.share) }

    mutating func iterationEnds(leaving waiting: Int) {
        (opened, closed) = (0, 0)
        if waiting == 0 { crowd = 0 }
    }

    /// Whether a connection that could end now must ask again a tick later.
    mutating func postpones(behind waiting: Int, at now: Int64) -> Bool {
        if askedAt.map({ now - $0 >= tick / 2 }) ?? true {
            // The count of an older tick says nothing about the present rate.
            let isRecent = askedAt.map { now - $0 <= 2 * tick } ?? false
            most = isRecent ? max(Self.many, waiting == 0 ? 2 * closedSince : closedSince) : Self.many
            crowd = postponedSince
            (closedSince, postponedSince, askedAt) = (0, 0, now)
        }
        guard waiting >= most else { return false }
        postponedSince += 1
        return true
    }
}
