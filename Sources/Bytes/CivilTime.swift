/// A day of the proleptic Gregorian calendar. Source: Howard Hinnant, "chrono-Compatible Low-Level Date Algorithms":
/// years begin in March, so that the leap day comes last, and are grouped in eras of 400, which all have 146 097 days.
public struct CivilDate: Sendable, Equatable {
    /// The month and the day count from 1.
    public let year: Int
    public let month: Int
    public let day: Int

    /// `nil` if the calendar has no such day.
    @inlinable
    public init?(year: Int, month: Int, day: Int) {
        let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
        let length =
            switch month {
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
    @inlinable
    public init(days: Int) {
        let (era, dayOfEra) = (days + 719_468).flooredQuotientAndRemainder(dividingBy: 146_097)
        let yearOfEra = (dayOfEra - dayOfEra / 1460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
        let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
        let marchMonth = (5 * dayOfYear + 2) / 153
        day = dayOfYear - (153 * marchMonth + 2) / 5 + 1
        month = marchMonth < 10 ? marchMonth + 3 : marchMonth - 9
        year = yearOfEra + era * 400 + (month <= 2 ? 1 : 0)
    }

    /// Days since 1970-01-01.
    @inlinable
    public var days: Int {
        let (era, yearOfEra) = (month <= 2 ? year - 1 : year).flooredQuotientAndRemainder(dividingBy: 400)
        let dayOfYear = (153 * (month > 2 ? month - 3 : month + 9) + 2) / 5 + day - 1
        let dayOfEra = yearOfEra * 365 + yearOfEra / 4 - yearOfEra / 100 + dayOfYear
        return era * 146_097 + dayOfEra - 719_468
    }
}

/// A second in UTC. There are no leap seconds, as in POSIX time.
public struct CivilTime: Sendable, Equatable {
    /// The day.
    public let date: CivilDate
    /// 0 is Sunday.
    public let weekday: Int
    public let hour: Int
    public let minute: Int
    public let second: Int

    /// - Parameter unixSeconds: since 1970-01-01 00:00:00.
    @inlinable
    public init(unixSeconds: Int64) {
        let (days, secondOfDay) = Int(unixSeconds).flooredQuotientAndRemainder(dividingBy: 86_400)
        date = CivilDate(days: days)
        weekday = (days + 4).flooredQuotientAndRemainder(dividingBy: 7).remainder
        hour = secondOfDay / 3600
        minute = secondOfDay / 60 % 60
        second = secondOfDay % 60
    }
}

extension Int {
    /// The quotient rounded down, and the remainder that goes with it: never negative for a positive divisor.
    @inlinable
    public func flooredQuotientAndRemainder(dividingBy divisor: Int) -> (quotient: Int, remainder: Int) {
        let (quotient, remainder) = quotientAndRemainder(dividingBy: divisor)
        return remainder < 0 ? (quotient - 1, remainder + divisor) : (quotient, remainder)
    }
}
