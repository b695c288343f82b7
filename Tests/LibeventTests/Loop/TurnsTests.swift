import Testing

@testable import Libevent

/// A crowd is served in turns, between which the loop does its other work.
@Suite(.timeLimit(.minutes(10))) struct TurnsTests {
    private final class Taker: TurnTaker {
        private let serve: () -> Void
        init(_ serve: @escaping () -> Void) { self.serve = serve }
        func turnCame() { serve() }
    }

    /// What happens on a loop that `body` begins and `stop` ends, as a list of words.
    private func course(
        _ body: @escaping (_ loop: EventLoop, _ turns: Turns, _ note: @escaping (String) -> Void) -> Void
    ) throws -> [String] {
        var course: [String] = []
        let loop = try EventLoop()
        loop.schedule(after: 10_000_000_000) { [unowned loop] in
            Issue.record("nothing stopped the loop")
            loop.stop()
        }
        let turns = Turns(loop: loop)
        Self.post(on: loop) { [unowned loop] in body(loop, turns) { course.append($0) } }
        loop.run()
        loop.finish()
        return course
    }

    @Test
    func `the first waiters of an iteration are served at once, the others in turns, in order`()
        throws
    {
        let most = Turns.turn
        let rest = most / 2
        let course = try course { loop, turns, note in
            for number in 0..<(3 * most + rest) {
                turns.serve(
                    Taker {
                        note("\(number)")
                        // The last one of each turn asks for something else to be done.
                        if number % most == most - 1 { Self.post(on: loop) { note("other work") } }
                        if number == 3 * most + rest - 1 { loop.stop() }
                    })
            }
            note("served so far")
        }
        var expected = (0..<most).map { "\($0)" } + ["served so far"]
        for turn in 1...3 {
            // Asked for after the next turn was put in line, and done before the one behind that.
            expected += (0..<(turn == 3 ? rest : most)).map { "\(turn * most + $0)" }
        }
        #expect(course.filter { $0 != "other work" } == expected)
        let work = course.indices.filter { course[$0] == "other work" }
        #expect(work.count >= 2)
        // Between its request and it, one turn at most.
        for (turn, index) in work.enumerated() {
            let asked = course.firstIndex(of: "\((turn + 1) * most - 1)")!
            #expect(index - asked <= most + 2, "\(index - asked) were served before")
        }
    }

    @Test func `thousands of turns of waiters are served completely and in order`() throws {
        let count = 3000 * Turns.turn + 1
        let course = try course { loop, turns, note in
            for number in 0..<count {
                turns.put(
                    Taker {
                        note("\(number)")
                        // Others come while it is served.
                        if number == count / 2 { for more in 0..<count { turns.put(Taker { note("+\(more)") }) } }
                        if number == count - 1 { turns.put { loop.stop() } }
                    })
            }
        }
        #expect(course == (0..<count).map { "\($0)" } + (0..<count).map { "+\($0)" })
    }

    @Test func `the next iteration again serves a full turn at once`() throws {
        let course = try course { loop, turns, note in
            for _ in 0..<Turns.turn { turns.serve(Taker {}) }
            let isFull = !turns.takeTurn()
            note("full: \(isFull)")
            // After the end of this iteration.
            Self.post(on: loop) {
                let isServed = turns.takeTurn()
                note("served: \(isServed)")
                loop.stop()
            }
        }
        #expect(course == ["full: true", "served: true"])
    }

    @Test func `a newcomer goes behind the waiters in the queue`() throws {
        let course = try course { loop, turns, note in
            turns.put(Taker { note("first") })
            turns.serve(Taker { note("second") })
            turns.put { note("third") }
            turns.put(
                Taker {
                    note("last")
                    loop.stop()
                })
            note("nobody yet")
        }
        #expect(course == ["nobody yet", "first", "second", "third", "last"])
    }

    @Test func `a waiter with a turn of its own goes behind the queue, and before later waiters`() throws {
        let course = try course { loop, turns, note in
            turns.put(Taker { note("first") })
            turns.putAlone(
                Taker {
                    note("alone")
                    Self.post(on: loop) { note("other work") }
                    turns.putAlone(Taker { loop.stop() })
                })
            turns.put(Taker { note("last") })
            note("nobody yet")
        }
        #expect(course == ["nobody yet", "first", "alone", "last", "other work"])
    }

    @Test func `waiters deferred to the end of the iteration are served then, in turns too`() throws {
        let most = Turns.turn
        let course = try course { loop, turns, note in
            for number in 0...most { turns.putSoon(Taker { note("\(number)") }) }
            note("nobody yet")
            Self.post(on: loop) { Self.post(on: loop) { Self.post(on: loop) { loop.stop() } } }
        }
        #expect(course == ["nobody yet"] + (0...most).map { "\($0)" })
    }

    @Test func `a waiter that comes during the end of an iteration is served at the end of the next`() throws {
        let course = try course { loop, turns, note in
            turns.putSoon(
                Taker {
                    note("first")
                    turns.putSoon(
                        Taker {
                            note("second")
                            loop.stop()
                        })
                })
        }
        #expect(course == ["first", "second"])
    }

    private static func post(on loop: EventLoop, _ job: @escaping () -> Void) {
        let bound = LoopBound(job, on: loop)
        loop.handle.post { bound.value() }
    }
}
