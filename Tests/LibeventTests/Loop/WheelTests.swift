import LoopTesting
import Testing

@testable import Libevent

/// The wheel without a clock.
@Suite struct WheelTests {
    /// Collects up to `tick` and takes out everything due.
    private func fire(_ wheel: inout Wheel<String>, upTo tick: Int64) -> [String] {
        var fired: [String] = []
        wheel.collect(upTo: tick)
        while let (deadline, name) = wheel.nextDue() {
            fired.append(name)
            wheel.remove(deadline)
        }
        return fired.sorted()
    }

    @Test(
        arguments: [
            // (due at, fires at): one turn is 8 ticks
            (1, 1), (7, 7), (8, 8), (9, 9), (17, 17), (1000, 1000), (0, 1), (-5, 1),
        ] as [(Int64, Int64)])
    func `an entry fires at its tick, however many revolutions away`(due: Int64, at: Int64) {
        var wheel = Wheel<String>(ringCount: 8)
        _ = wheel.insert("x", at: due)
        for tick in 1..<at { #expect(fire(&wheel, upTo: tick).isEmpty) }
        #expect(fire(&wheel, upTo: at) == ["x"])
        #expect(wheel.count == 0)
    }

    @Test(arguments: [1, 5, 8, 9, 64, 1_000_000] as [Int64])
    func `after a long delay, all due entries fire and no others`(held: Int64) {
        var wheel = Wheel<String>(ringCount: 8)
        let ticks: [Int64] = [1, 2, 5, 8, 9, 16, 63, 64, 65, 1_000_001]
        for tick in ticks { _ = wheel.insert("\(tick)", at: tick) }
        #expect(fire(&wheel, upTo: held) == ticks.filter { $0 <= held }.map { "\($0)" }.sorted())
        #expect(wheel.count == ticks.count { $0 > held })
    }

    @Test func `a removed entry does not fire, even if already collected`() {
        var wheel = Wheel<String>(ringCount: 8)
        let first = wheel.insert("first", at: 3)
        let second = wheel.insert("second", at: 3)
        let third = wheel.insert("third", at: 3)
        #expect(wheel.remove(first) == "first")
        wheel.collect(upTo: 3)
        #expect(wheel.remove(third) == "third")
        let due = wheel.nextDue()
        #expect(due?.0 == second)
        #expect(wheel.nextDue() == nil)
    }

    @Test func `a stale token is invalid when its place is reused`() {
        var wheel = Wheel<String>(ringCount: 8)
        let old = wheel.insert("old", at: 3)
        wheel.remove(old)
        let new = wheel.insert("new", at: 4)
        #expect(old.index == new.index)
        #expect(wheel.remove(old) == nil)
        let moved = wheel.move(old, to: 9)
        #expect(!moved)
        #expect(!wheel.contains(.none))
        #expect(fire(&wheel, upTo: 4) == ["new"])
    }

    @Test func `a moved entry fires only at its new tick, even if moved while firing`() {
        var wheel = Wheel<String>(ringCount: 8)
        let deadline = wheel.insert("x", at: 2)
        wheel.move(deadline, to: 20)
        #expect(fire(&wheel, upTo: 19).isEmpty)
        wheel.collect(upTo: 20)
        let due = wheel.nextDue()
        #expect(due?.0 == deadline)
        // The past counts as the next tick, so that this round ends.
        wheel.move(deadline, to: 1)
        #expect(wheel.nextDue() == nil)
        #expect(fire(&wheel, upTo: 21) == ["x"])
    }

    @Test func `thousands of random entries fire in the order of a sorted list`() {
        var generator = SystemRandomNumberGenerator()
        var wheel = Wheel<Int>(ringCount: 64)
        var expected: [Int: Int64] = [:]
        var deadlines: [Int: Deadline] = [:]
        var tick: Int64 = 0
        for round in 0..<20_000 {
            switch Int.random(in: 0..<4, using: &generator) {
            case 0, 1:
                let due = tick + Int64.random(in: 1...300, using: &generator)
                deadlines[round] = wheel.insert(round, at: due)
                expected[round] = due
            case 2:
                guard let victim = expected.keys.randomElement(using: &generator), let deadline = deadlines[victim]
                else { continue }
                if Bool.random(using: &generator) {
                    #expect(wheel.remove(deadline) == victim)
                    expected[victim] = nil
                } else {
                    let due = tick + Int64.random(in: 1...300, using: &generator)
                    let moved = wheel.move(deadline, to: due)
                    #expect(moved)
                    expected[victim] = due
                }
            default:
                tick += Int64.random(in: 1...5, using: &generator)
                wheel.collect(upTo: tick)
                var fired: [Int] = []
                while let (deadline, name) = wheel.nextDue() {
                    fired.append(name)
                    wheel.remove(deadline)
                }
                #expect(fired.sorted() == expected.filter { $0.value <= tick }.map(\.key).sorted())
                for name in fired { expected[name] = nil }
            }
            #expect(wheel.count == expected.count)
        }
    }
}
