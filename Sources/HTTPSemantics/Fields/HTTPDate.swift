public import Bytes

/// Timestamps in fields (RFC 9110 §5.6.7), as seconds since 1970-01-01 00:00:00 UTC.
public enum HTTPDate {
    /// Bytes of an IMF-fixdate.
    public static let length = 29

    /// The second that `text` names in any of the three formats, or `nil`.
    ///
    /// Letters match in either case (RFC 9111 §4.2). The day name must be valid, but need not match the date: it adds
    /// no information, and a sender that computes it wrongly still means the date. A two-digit year more than 50 years
    /// ahead of `now` is in the past. `23:59:60` is the first second of the next day.
    public static func parse(_ text: Span<UInt8>, now: Int64) -> Int64? {
        if let seconds = usual(text) { return seconds }
        var reader = DateReader(text)
        guard let nameLength = reader.dayName() else { return nil }
        if nameLength > 3 { return text.count == nameLength + 24 ? reader.rfc850(now: now) : nil }
        return text.count == length ? reader.fixdate() : text.count == 24 ? reader.asctime() : nil
    }

    /// Reads an IMF-fixdate in the exact form of the grammar, which nearly every date has, looking at each byte once.
    /// `nil` does not mean an invalid date: `DateReader` then reads all forms.
    private static func usual(_ text: Span<UInt8>) -> Int64? {
        guard text.count == length else { return nil }
        func word(_ at: Int) -> UInt32 { UInt32(text[at]) << 16 | UInt32(text[at + 1]) << 8 | UInt32(text[at + 2]) }
        let stands =
            text[3] == 0x2c && text[19] == 0x3a && text[22] == 0x3a
            && text[4] == 0x20 && text[7] == 0x20 && text[11] == 0x20 && text[16] == 0x20 && text[25] == 0x20
        var isOutside = false
        func digits(_ at: Int) -> Int {
            let (tens, ones) = (text[at] &- 0x30, text[at + 1] &- 0x30)
            if tens > 9 || ones > 9 { isOutside = true }
            return Int(tens) &* 10 &+ Int(ones)
        }
        let (day, century, years) = (digits(5), digits(12), digits(14))
        let (hour, minute, second) = (digits(17), digits(20), digits(23))
        guard stands, !isOutside, hour < 24, minute < 60, second < 60, word(26) == 0x474d54,
            isDayName(word(0)), let month = month(word(8)),
            let date = CivilDate(year: century &* 100 &+ years, month: month, day: day)
        else { return nil }
        return Int64(date.days &* 86_400 &+ hour &* 3600 &+ minute &* 60 &+ second)
    }

    private static func isDayName(_ letters: UInt32) -> Bool {
        switch letters {
        case 0x4d6f6e, 0x547565, 0x576564, 0x546875, 0x467269, 0x536174, 0x53756e: true
        default: false
        }
    }

    private static func month(_ letters: UInt32) -> Int? {
        switch letters {
        case 0x4a616e: 1
        case 0x466562: 2
        case 0x4d6172: 3
        case 0x417072: 4
        case 0x4d6179: 5
        case 0x4a756e: 6
        case 0x4a756c: 7
        case 0x417567: 8
        case 0x536570: 9
        case 0x4f6374: 10
        case 0x4e6f76: 11
        case 0x446563: 12
        default: nil
        }
    }

    /// Appends `seconds` as IMF-fixdate. Years outside 0...9999 have no such form, so `seconds` is clamped to that
    /// range.
    public static func append(_ seconds: Int64, to buffer: ByteBuffer) {
        let time = CivilTime(unixSeconds: min(max(seconds, -62_167_219_200), 253_402_300_799))
        let date = time.date
        buffer.append(dayNames[time.weekday])
        buffer.append(", ")
        buffer.appendTwoDigits(date.day)
        buffer.append(monthNames[date.month - 1])
        buffer.appendTwoDigits(date.year / 100)
        buffer.appendTwoDigits(date.year % 100)
        buffer.append(" ")
        buffer.appendTwoDigits(time.hour)
        buffer.append(":")
        buffer.appendTwoDigits(time.minute)
        buffer.append(":")
        buffer.appendTwoDigits(time.second)
        buffer.append(" GMT")
    }

    static let dayNames: [StaticString] = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"]
    static let monthNames: [StaticString] = [
        " Jan ", " Feb ", " Mar ", " Apr ", " May ", " Jun ", " Jul ", " Aug ", " Sep ", " Oct ", " Nov ", " Dec ",
    ]
}

extension ByteBuffer {
    fileprivate func appendTwoDigits(_ number: Int) {
        append(0x30 &+ UInt8(truncatingIfNeeded: number / 10))
        append(0x30 &+ UInt8(truncatingIfNeeded: number % 10))
    }
}
