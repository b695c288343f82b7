import Repeatable
import Testing

@testable import Upstream

/// When places are checked: the first time at once, then at intervals that do not keep step.
struct CheckScheduleTests {
    private static let second: Int64 = 1_000_000_000

    private var schedule = CheckSchedule(interval: 10 * CheckScheduleTests.second)
    private var random = SeededGenerator(ofTest: 29)

    @Test mutating func `the first checks are spread over a tenth of the interval`() {
        schedule.change(to: [1, 2, 3, 4], at: 5 * Self.second)
        #expect(schedule.next == 5 * Self.second)
        var begun: [Int] = []
        for quarter in Int64(0)..<4 {
            let due = schedule.begin(at: 5 * Self.second + quarter * Self.second / 4, using: &random)
            #expect(due.count == 1)
            begun += due
        }
        #expect(begun == [1, 2, 3, 4])
        #expect(schedule.next == nil, "none has ended")
    }

    @Test mutating func `a check follows after the interval, give or take a tenth`() {
        schedule.change(to: [1], at: 0)
        var pauses: [Int64] = []
        var now: Int64 = 0
        for _ in 0..<200 {
            let due = schedule.begin(at: now, using: &random)
            #expect(due == [1])
            // It took a second.
            schedule.ended(1)
            guard let next = schedule.next else { break }
            let early = schedule.begin(at: next - 1, using: &random)
            #expect(early == [])
            pauses.append(next - now)
            now = next
        }
        let (least, most) = (pauses.min() ?? 0, pauses.max() ?? 0)
        #expect(pauses.count == 200)
        #expect(least >= 9 * Self.second && least < 9_200_000_000)
        #expect(most <= 11 * Self.second && most > 10_800_000_000)
    }

    @Test mutating func `a place has one check at a time, however long that takes`() {
        schedule.change(to: [1], at: 0)
        _ = schedule.begin(at: 0, using: &random)
        let meanwhile = schedule.begin(at: 60 * Self.second, using: &random)
        #expect(meanwhile == [] && schedule.next == nil)
        schedule.ended(1)
        let after = schedule.begin(at: 60 * Self.second, using: &random)
        #expect(after == [1])
    }

    @Test mutating func `a place that comes is checked at once, and one that stays keeps its time`() {
        schedule.change(to: [1, 2], at: 0)
        _ = schedule.begin(at: Self.second, using: &random)
        schedule.ended(1)
        schedule.ended(2)
        let next = schedule.next
        schedule.change(to: [1, 2, 3], at: 3 * Self.second)
        let due = schedule.begin(at: 3 * Self.second, using: &random)
        #expect(due == [3])
        #expect(schedule.next == next)
    }

    @Test mutating func `a place that has left is not checked, and its end is ignored`() {
        schedule.change(to: [1, 2], at: 0)
        _ = schedule.begin(at: 0, using: &random)
        schedule.change(to: [2], at: 0)
        schedule.ended(1)
        let due = schedule.begin(at: 60 * Self.second, using: &random)
        #expect(due == [2] && schedule.next == nil)
    }
}
