import Bytes

/// Reads the parts of a timestamp from left to right; every part is `nil` if the text does not match.
struct DateReader: ~Escapable {
    private let text: Span<UInt8>
    private var position = 0

    @_lifetime(copy text)
    init(_ text: Span<UInt8>) { self.text = text }

    /// Reads a short or a long day name.
    /// - Returns: its length in bytes.
    mutating func dayName() -> Int? {
        for (short, rest) in Self.days where skip(short) { return skip(rest) ? 3 + rest.utf8CodeUnitCount : 3 }
        return nil
    }

    /// Reads the text after the day name: `, 06 Nov 1994 08:49:37 GMT`.
    mutating func fixdate() -> Int64? {
        guard skip(", "), let day = number(2), skip(" "), let month = month(), skip(" "), let year = number(4),
            skip(" "), let time = timeOfDay(), skip(" gmt")
        else { return nil }
        return Self.seconds(year, month, day, time)
    }

    /// Reads the text after the day name: `, 06-Nov-94 08:49:37 GMT`.
    mutating func rfc850(now: Int64) -> Int64? {
        guard skip(", "), let day = number(2), skip("-"), let month = month(), skip("-"), let short = number(2),
            skip(" "), let time = timeOfDay(), skip(" gmt")
        else { return nil }
        // The latest year with these two digits that is at most 50 years ahead. `now` is clamped to the years 1970 to
        // 9999.
        let today = CivilDate(days: Int(min(max(now, 0), 253_402_300_799) / 86_400))
        var year = today.year - today.year % 100 + 100 + short
        while year > today.year + 50 { year -= 100 }
        guard let result = Self.seconds(year, month, day, time) else { return nil }
        guard year == today.year + 50, let limit = Self.fiftyYears(after: now, today), result > limit else {
            return result
        }
        return Self.seconds(year - 100, month, day, time)
    }

    /// Reads the text after the day name: ` Nov  6 08:49:37 1994`.
    mutating func asctime() -> Int64? {
        guard skip(" "), let month = month(), skip(" "), let day = skip(" ") ? number(1) : number(2),
            skip(" "), let time = timeOfDay(), skip(" "), let year = number(4)
        else { return nil }
        return Self.seconds(year, month, day, time)
    }

    private mutating func timeOfDay() -> Int? {
        guard let hour = number(2), skip(":"), let minute = number(2), skip(":"), let second = number(2) else {
            return nil
        }
        // 60 is a leap second, which is allowed only at the end of a day.
        guard hour < 24, minute < 60, second < 60 || (second == 60 && minute == 59 && hour == 23) else { return nil }
        return hour * 3600 + minute * 60 + second
    }

    private mutating func month() -> Int? {
        for (index, name) in Self.months.enumerated() where skip(name) { return index + 1 }
        return nil
    }

    private mutating func number(_ digits: Int) -> Int? {
        guard text.count - position >= digits else { return nil }
        guard let value = text.extracting(position..<position + digits).decimal(saturatingAt: UInt64(Int64.max)) else {
            return nil
        }
        position += digits
        return Int(value)
    }

    private mutating func skip(_ lowercase: StaticString) -> Bool {
        let length = lowercase.utf8CodeUnitCount
        guard text.count - position >= length,
            text.extracting(position..<position + length).isEqualIgnoringCase(to: lowercase)
        else { return false }
        position += length
        return true
    }

    private static func seconds(_ year: Int, _ month: Int, _ day: Int, _ time: Int) -> Int64? {
        CivilDate(year: year, month: month, day: day).map { Int64($0.days * 86_400 + time) }
    }

    private static func fiftyYears(after now: Int64, _ today: CivilDate) -> Int64? {
        // 29 February does not exist in a common year; use the day before.
        let day = today.month == 2 && today.day == 29 ? 28 : today.day
        return seconds(today.year + 50, today.month, day, Int(now % 86_400))
    }

    private static let days: [(StaticString, StaticString)] = [
        ("sun", "day"), ("mon", "day"), ("tue", "sday"), ("wed", "nesday"), ("thu", "rsday"), ("fri", "day"),
        ("sat", "urday"),
    ]
    private static let months: [StaticString] = [
        "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec",
    ]
}
