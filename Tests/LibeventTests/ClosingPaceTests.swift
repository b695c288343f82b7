import Testing

@testable import Libevent

/// How fast a crowd of connections is closed, in ticks and iterations instead of time.
@Suite struct ClosingPaceTests {
    struct Outcome: Equatable {
        var ticks = 0
        /// Closed in one iteration, at most.
        var mostAtOnce = 0
    }

    /// So many idle connections are due at the same tick, of which each ends or asks again in the next one.
    /// - Parameter work: what the loop has to do for others in each iteration, in microseconds; a tick has 100,000, and
    ///   closing one takes 10.
    private func endIdle(_ connections: Int, work: Int) -> Outcome {
        var pace = ClosingPace(tick: 100_000)
        var (idle, waiting, now, outcome) = (connections, 0, 0, Outcome())
        while idle + waiting > 0, outcome.ticks < 10_000 {
            for _ in 0..<idle {
                if pace.postpones(behind: waiting, at: Int64(now)) { continue }
                idle -= 1
                waiting += 1
            }
            outcome.ticks += 1
            while now < outcome.ticks * 100_000 { now += work + 10 * close(&waiting, at: &pace, &outcome) }
        }
        return outcome
    }

    /// One iteration.
    /// - Returns: how many were closed.
    @discardableResult
    private func close(_ waiting: inout Int, at pace: inout ClosingPace, _ outcome: inout Outcome) -> Int {
        var closed = 0
        while waiting > 0, pace.closesMore(of: waiting) {
            pace.noteClosed()
            (waiting, closed) = (waiting - 1, closed + 1)
        }
        pace.iterationEnds(leaving: waiting)
        outcome.mostAtOnce = max(outcome.mostAtOnce, closed)
        return closed
    }

    // With 256 a tick and four an iteration: 391, 391, 1,250.
    @Test(arguments: [(5, 15), (1_000, 96), (5_000, 440)])
    func `a hundred thousand idle connections are gone soon, and sooner the less else there is to do`(
        work: Int, ticks: Int
    ) {
        let outcome = endIdle(100_000, work: work)
        #expect(outcome.ticks <= ticks && outcome.mostAtOnce <= 40, "\(outcome)")
    }

    @Test func `few idle connections end at once, ten thousand by four in an iteration`() {
        #expect(endIdle(256, work: 1_000) == Outcome(ticks: 1, mostAtOnce: ClosingPace.least))
        let (idle, busy) = (endIdle(10_000, work: 5), endIdle(10_000, work: 1_000))
        #expect(idle.ticks <= 6 && busy.ticks <= 27, "\(idle) \(busy)")
        #expect(idle.mostAtOnce == ClosingPace.least && busy.mostAtOnce == ClosingPace.least)
    }

    @Test(arguments: [(10_000, 2_500, 4), (100_000, 8_600, 40)])
    func `of a crowd that leaves by itself few are closed in an iteration, of a huge one a share`(
        crowd: Int, iterations: Int, atOnce: Int
    ) {
        var pace = ClosingPace(tick: 100)
        var (waiting, outcome, needed) = (crowd, Outcome(), 0)
        while waiting > 0, needed < 100_000 {
            close(&waiting, at: &pace, &outcome)
            needed += 1
        }
        #expect(needed <= iterations && outcome.mostAtOnce <= atOnce, "\(needed) \(outcome)")
    }

    @Test func `as many are closed as were opened`() {
        var pace = ClosingPace(tick: 100)
        for _ in 0..<30 { pace.noteOpened() }
        var (waiting, outcome) = (100, Outcome())
        close(&waiting, at: &pace, &outcome)
        close(&waiting, at: &pace, &outcome)
        #expect(waiting == 66)
    }
}
