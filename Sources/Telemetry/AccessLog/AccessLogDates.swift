import Bytes

/// Writes the dates of log lines. The text of each second is computed only once.
struct AccessLogDates {
    let format: AccessLogFormat
    private var second = Int64.min
    private let cached = ByteBuffer(capacity: 32)

    init(format: AccessLogFormat) { self.format = format }

    /// `[21/Nov/2026:05:16:44 +0000]`, or `2026-11-21T05:16:44.123Z` for JSON. `milliseconds` since 1970.
    mutating func append(_ milliseconds: Int64, to line: ByteBuffer) {
        let (second, millisecond) = Int(milliseconds).flooredQuotientAndRemainder(dividingBy: 1000)
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
        let date = time.date
        switch format {
        case .combined:
            cached.append("[")
            append(date.day)
            cached.append(Self.months[date.month - 1])
            append(date.year, width: 4)
            cached.append(":")
        case .json:
            append(date.year, width: 4)
            cached.append("-")
            append(date.month)
            cached.append("-")
            append(date.day)
            cached.append("T")
        }
        append(time.hour)
        cached.append(":")
        append(time.minute)
        cached.append(":")
        append(time.second)
        if format == .combined { cached.append(" +0000]") }
    }

    private func append(_ number: Int, width: Int = 2) {
        cached.append(decimal: UInt64(clamping: number), width: width)
    }

    private static let months: [StaticString] = [
        "/Jan/", "/Feb/", "/Mar/", "/Apr/", "/May/", "/Jun/", "/Jul/", "/Aug/", "/Sep/", "/Oct/", "/Nov/", "/Dec/",
    ]
}
