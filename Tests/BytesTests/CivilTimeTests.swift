import Bytes
import Testing

@Suite struct CivilTimeTests {
    @Test func `every day of eight centuries follows the one before`() {
        var expected = (year: 1600, month: 1, day: 1)
        for day in -135_140..<(-135_140 + 2 * 146_097) {
            let time = CivilTime(unixSeconds: Int64(day) * 86_400)
            guard (time.date.year, time.date.month, time.date.day) == expected else {
                Issue.record("\(time) where \(expected) was due")
                return
            }
            let isLeap = expected.year % 4 == 0 && (expected.year % 100 != 0 || expected.year % 400 == 0)
            let lengths = [31, isLeap ? 29 : 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31]
            expected.day += 1
            if expected.day > lengths[expected.month - 1] { expected = (expected.year, expected.month + 1, 1) }
            if expected.month > 12 { expected = (expected.year + 1, 1, 1) }
        }
    }
}
