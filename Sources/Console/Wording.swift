/// Short texts of figures, for people.
enum Wording {
    /// `512 B`, `1.5 MiB`, `219 MiB`.
    static func bytes(_ count: Double) -> String {
        var (value, units) = (max(0, count), ["B", "KiB", "MiB", "GiB", "TiB", "PiB"][...])
        while value >= 999.5, units.count > 1 {
            value /= 1024
            units.removeFirst()
        }
        return "\(units.first == "B" ? whole(value) : short(value)) \(units.first ?? "")"
    }

    /// `0`, `0.4`, `37`, `1842`, `19k`.
    static func rate(_ perSecond: Double) -> String {
        let value = max(0, perSecond)
        return value < 10_000 ? short(value) : value < 10_000_000 ? whole(value / 1000) + "k" : whole(value / 1e6) + "M"
    }

    /// `31s`, `12m`, `4h 12m`, `3d 4h`.
    static func duration(_ seconds: Double) -> String {
        let seconds = count(seconds)
        let (minutes, hours, days) = (seconds / 60, seconds / 3600, seconds / 86_400)
        if seconds < 100 { return "\(seconds)s" }
        if hours == 0 { return "\(minutes)m" }
        return days == 0 ? "\(hours)h \(minutes % 60)m" : "\(days)d \(hours % 24)h"
    }

    /// Milliseconds: `<0.1`, `0.4`, `37`, `1842`.
    static func milliseconds(_ seconds: Double) -> String {
        // Times below 0.1 ms are not measured any closer.
        seconds < 0.0001 ? "<0.1" : short(seconds * 1000)
    }

    /// `91.3%`; `-` if `all` is 0.
    static func share(_ part: Double, of all: Double) -> String {
        all > 0 ? "\(tenths(part / all * 100))%" : "-"
    }

    static func whole(_ number: Double) -> String { "\(count(number))" }

    static func count(_ number: Double) -> Int { Int(exactly: min(max(0, number), 1e15).rounded()) ?? 0 }

    /// Writes `number` with one digit after the point if it is below ten.
    private static func short(_ number: Double) -> String {
        number == 0 || number >= 9.95 ? whole(number) : tenths(number)
    }

    private static func tenths(_ number: Double) -> String {
        let tenths = count(number * 10)
        return "\(tenths / 10).\(tenths % 10)"
    }

    /// A name of at most `width` characters. Dots replace the middle of a longer name, since names differ at their
    /// ends.
    static func name(_ text: String, width: Int) -> String {
        guard text.count > width, width > 3 else { return text }
        let kept = width - 3
        return "\(text.prefix(kept / 2))...\(text.suffix(kept - kept / 2))"
    }

    /// A line of at most `width` characters. Characters from outside cannot move the cursor, and take one column each.
    static func line(_ text: String, width: Int) -> String {
        let plain = text.unicodeScalars.map { 0x20..<0x7F ~= $0.value ? Character($0) : "?" }
        return plain.count <= width ? String(plain) : String(plain.prefix(max(0, width - 1))) + (width > 0 ? "…" : "")
    }
}

/// Rows with aligned columns: words to the left, figures to the right.
struct TextTable {
    var rows: [[String]]
    /// The columns with figures.
    var figures: Range<Int>

    var lines: [String] {
        let columns = rows.map(\.count).max() ?? 0
        let widths = (0..<columns).map { column in rows.map { column < $0.count ? $0[column].count : 0 }.max() ?? 0 }
        return rows.map { row in
            let cells = row.enumerated().map { column, cell in
                let space = String(repeating: " ", count: widths[column] - cell.count)
                if figures.contains(column) { return space + cell }
                return column == columns - 1 ? cell : cell + space
            }
            return cells.joined(separator: "  ")
        }
    }
}
