public import Bytes

/// Timestamps in fields (RFC 9110 §5.6.7), as seconds since 1970-01-01 00:00:00 UTC.
public enum HTTPDate {
    /// Bytes of an IMF-fixdate.
    public static let length = 29

    /// The second that `text` names in any of the three formats, or `nil`.
    ///
    /// Letters match in either case (RFC 9111 §4.2). The day's name must be one, but is not held against the date: it
    /// says nothing that the date does not, and a sender who computes it wrongly still means the date. A two-digit
    /// year more than 50 years ahead of `now` is in the past. `23:59:60` is the first second of the next day.
    public static func parse(_ text: Span<UInt8>, now: Int64) -> Int64? {
        var reader = DateReader(text)
        guard let nameLength = reader.dayName() else { return nil }
        if nameLength > 3 { return text.count == nameLength + 24 ? reader.rfc850(now: now) : nil }
        return text.count == length ? reader.fixdate() : text.count == 24 ? reader.asctime() : nil
    }

    /// Appends `seconds` as IMF-fixdate. Years outside 0...9999 have no such form and are held to its ends.
    public static func append(_ seconds: Int64, to buffer: ByteBuffer) {
        let seconds = min(max(seconds, -62_167_219_200), 253_402_300_799)
        let (days, time) = seconds.flooredQuotientAndRemainder(dividingBy: 86_400)
        let date = CivilDate(days: days)
        buffer.append(dayNames[Int((days + 4).flooredQuotientAndRemainder(dividingBy: 7).remainder)])
        buffer.append(", ")
        buffer.appendTwoDigits(date.day)
        buffer.append(monthNames[Int(date.month) - 1])
        buffer.appendTwoDigits(date.year / 100)
        buffer.appendTwoDigits(date.year % 100)
        buffer.append(" ")
        buffer.appendTwoDigits(time / 3600)
        buffer.append(":")
        buffer.appendTwoDigits(time / 60 % 60)
        buffer.append(":")
        buffer.appendTwoDigits(time % 60)
        buffer.append(" GMT")
    }

    static let dayNames: [StaticString] = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"]
    static let monthNames: [StaticString] = [
        " Jan ", " Feb ", " Mar ", " Apr ", " May ", " Jun ", " Jul ", " Aug ", " Sep ", " Oct ", " Nov ", " Dec ",
    ]
}

/// A day of the proleptic Gregorian calendar. Source: Howard Hinnant, "chrono-compatible low-level date algorithms".
struct CivilDate {
    let year: Int64
    let month: Int64
    let day: Int64

    /// `nil` if there is no such day.
    init?(year: Int64, month: Int64, day: Int64) {
        let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
        let length: Int64 = switch month {
        case 2: leap ? 29 : 28
        case 4, 6, 9, 11: 30
        default: 31
        }
        guard 1...12 ~= month, 1...length ~= day else { return nil }
        self.year = year
        self.month = month
        self.day = day
    }

    /// The day `days` after 1970-01-01.
    init(days: Int64) {
        let (era, dayOfEra) = (days + 719_468).flooredQuotientAndRemainder(dividingBy: 146_097)
        let yearOfEra = (dayOfEra - dayOfEra / 1460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
        let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
        let shifted = (5 * dayOfYear + 2) / 153
        day = dayOfYear - (153 * shifted + 2) / 5 + 1
        month = shifted < 10 ? shifted + 3 : shifted - 9
        year = yearOfEra + era * 400 + (month <= 2 ? 1 : 0)
    }

    /// Days since 1970-01-01.
    var days: Int64 {
        let shiftedYear = month <= 2 ? year - 1 : year
        let (era, yearOfEra) = shiftedYear.flooredQuotientAndRemainder(dividingBy: 400)
        let dayOfYear = (153 * (month > 2 ? month - 3 : month + 9) + 2) / 5 + day - 1
        let dayOfEra = yearOfEra * 365 + yearOfEra / 4 - yearOfEra / 100 + dayOfYear
        return era * 146_097 + dayOfEra - 719_468
    }
}

extension Int64 {
    func flooredQuotientAndRemainder(dividingBy divisor: Int64) -> (quotient: Int64, remainder: Int64) {
        let (quotient, remainder) = quotientAndRemainder(dividingBy: divisor)
        return remainder < 0 ? (quotient - 1, remainder + divisor) : (quotient, remainder)
    }
}

extension ByteBuffer {
    func appendTwoDigits(_ number: Int64) {
        append(0x30 &+ UInt8(truncatingIfNeeded: number / 10))
        append(0x30 &+ UInt8(truncatingIfNeeded: number % 10))
    }
}
