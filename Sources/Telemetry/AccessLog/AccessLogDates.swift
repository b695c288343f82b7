internal import Bytes

/// A moment in UTC by the proleptic Gregorian calendar. Only for log lines: HTTP's dates are in `HTTPSemantics`.
struct CivilTime: Equatable {
    var year: Int, month: Int, day: Int, hour: Int, minute: Int, second: Int

    /// Without leap seconds, as in POSIX time.
    init(unixSeconds: Int64) {
        let (days, secondOfDay) = floorDivide(Int(unixSeconds), by: 86_400)
        hour = secondOfDay / 3600
        minute = secondOfDay / 60 % 60
        second = secondOfDay % 60
        // Howard Hinnant, "chrono-Compatible Low-Level Date Algorithms", civil_from_days: years begin in March, so that
        // the leap day comes last, and are grouped in eras of 400, which all have 146 097 days.
        let (era, dayOfEra) = floorDivide(days + 719_468, by: 146_097)
        let yearOfEra = (dayOfEra - dayOfEra / 1460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
        let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
        let marchMonth = (5 * dayOfYear + 2) / 153
        day = dayOfYear - (153 * marchMonth + 2) / 5 + 1
        month = marchMonth < 10 ? marchMonth + 3 : marchMonth - 9
        year = yearOfEra + era * 400 + (month <= 2 ? 1 : 0)
    }
}

/// Quotient rounded down and the remainder, never negative, that goes with it.
func floorDivide(_ dividend: Int, by divisor: Int) -> (quotient: Int, remainder: Int) {
    let (quotient, remainder) = dividend.quotientAndRemainder(dividingBy: divisor)
    return remainder < 0 ? (quotient - 1, remainder + divisor) : (quotient, remainder)
}

/// Writes the dates of log lines, and computes each second only once.
struct AccessLogDates {
    let format: AccessLogFormat
    private var second = Int64.min
    private let cached = ByteBuffer(capacity: 32)

    init(format: AccessLogFormat) { self.format = format }

    /// `[21/Nov/2026:05:16:44 +0000]`, or `2026-11-21T05:16:44.123Z` for JSON. `milliseconds` since 1970.
    mutating func append(_ milliseconds: Int64, to line: ByteBuffer) {
        let (second, millisecond) = floorDivide(Int(milliseconds), by: 1000)
        if second != self.second { cache(Int64(second)) }
        line.append(cached.span)
        guard format == .json else { return }
        line.append(UInt8(ascii: "."))
        line.append(decimal: UInt64(millisecond), width: 3)
        line.append(UInt8(ascii: "Z"))
    }

    private mutating func cache(_ second: Int64) {
        self.second = second
        cached.removeAll()
        let time = CivilTime(unixSeconds: second)
        switch format {
        case .combined:
            cached.append("[")
            append(time.day)
            cached.append(Self.months[time.month - 1])
            append(time.year, width: 4)
            cached.append(":")
        case .json:
            append(time.year, width: 4)
            cached.append("-")
            append(time.month)
            cached.append("-")
            append(time.day)
            cached.append("T")
        }
        append(time.hour)
        cached.append(":")
        append(time.minute)
        cached.append(":")
        append(time.second)
        if format == .combined { cached.append(" +0000]") }
    }

    private func append(_ number: Int, width: Int = 2) { cached.append(decimal: UInt64(clamping: number), width: width) }

    private static let months: [StaticString] = [
        "/Jan/", "/Feb/", "/Mar/", "/Apr/", "/May/", "/Jun/", "/Jul/", "/Aug/", "/Sep/", "/Oct/", "/Nov/", "/Dec/",
    ]
}
