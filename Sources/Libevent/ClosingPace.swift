/// How many of the sockets that have ended a loop closes in one iteration, and whether one more may be ended by us. Pure:
/// counts and times are arguments.
///
/// A few in an iteration, so that others hardly wait; more, in proportion, of a crowd of more than ten thousand, which
/// would take a minute else. Those whose peers are still there and who could be ended later wait outside: as many are
/// let in as were closed since the last such crowd asked, a tick ago, or twice as many if that left nobody waiting. So a
/// loop with nothing else to do ends them as fast as it can, and none of them stays open, unread, for longer than about
/// two ticks.
struct ClosingPace {
    /// Closed in one iteration if fewer were opened: some 40 µs.
    static let least = 4
    /// How many sockets wait for each one that an iteration closes.
    static let share = 2_500
    /// How many may wait in any case: some hundredths of a second, on a busy loop.
    static let many = 256

    private let tick: Int64
    /// How many were opened and closed in this iteration.
    private var opened = 0
    private var closed = 0
    /// How many were closed and put off since the tick in which somebody asked last.
    private var closedSince = 0
    private var postponedSince = 0
    private var askedAt: Int64?
    /// How many may wait.
    private var most = ClosingPace.many
    /// How many were put off last time they asked, until all that waited is closed.
    private var crowd = 0

    /// - Parameter tick: how often those ask who were put off; nanoseconds.
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

    /// Whether one that could be ended now is to ask again in a tick.
    mutating func postpones(behind waiting: Int, at now: Int64) -> Bool {
        if askedAt.map({ now - $0 >= tick / 2 }) ?? true {
            // What was closed long ago tells nothing of now.
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
