internal import Bytes

/// A moment in UTC by the proleptic Gregorian calendar. Only for log lines; HTTP's own dates are `HTTPSemantics`' business.
struct CivilTime: Equatable {
    var year: Int, month: Int, day: Int, hour: Int, minute: Int, second: Int

    /// Leap seconds do not exist here, as in POSIX time.
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
struct LogDateFormatter: Sendable {
    let format: LogFormat
    private var second = Int64.min
    private var cached: [UInt8] = []

    init(format: LogFormat) { self.format = format }

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
        cached.removeAll(keepingCapacity: true)
        let time = CivilTime(unixSeconds: second)
        switch format {
        case .combined:
            cached.append("[")
            cached.append(decimal: time.day, width: 2)
            cached.append("/\(Self.months[time.month - 1])/")
            cached.append(decimal: time.year, width: 4)
            cached.append(":")
        case .json:
            cached.append(decimal: time.year, width: 4)
            cached.append("-")
            cached.append(decimal: time.month, width: 2)
            cached.append("-")
            cached.append(decimal: time.day, width: 2)
            cached.append("T")
        }
        cached.append(decimal: time.hour, width: 2)
        cached.append(":")
        cached.append(decimal: time.minute, width: 2)
        cached.append(":")
        cached.append(decimal: time.second, width: 2)
        if format == .combined { cached.append(" +0000]") }
    }

    private static let months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]
}
