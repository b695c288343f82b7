/// A number with a unit: `30s` is 30 and `s`.
struct Quantity {
    /// `Int.max`, which is out of every range, if it is too long for an `Int`.
    let number: Int
    /// Empty if there is none.
    let unit: Substring

    /// `nil` if `text` does not begin with digits.
    init?(_ text: String) {
        let digits = text.prefix { $0.isASCII && $0.isNumber }
        guard isDigits(digits) else { return nil }
        number = Int(digits) ?? .max
        unit = text[digits.endIndex...]
    }

    /// The product, or `Int.max` on overflow.
    func times(_ factor: Int) -> Int {
        let (product, overflow) = number.multipliedReportingOverflow(by: factor)
        return overflow ? .max : product
    }

    /// The outcome for a unit that is none of `units`: a message with the unit that may be meant, if it is a word.
    func withUnknownUnit<Value>(among units: Units, instead: String) -> ScalarSyntax<Value>.Parsed {
        if unit.isEmpty { return .refused("the unit is missing; give \(instead)") }
        guard unit.unicodeScalars.allSatisfy(\.properties.isAlphabetic) else { return .malformed }
        let (written, names) = (unit.lowercased(), units.list.map(\.name))
        let meant =
            names.first { $0.lowercased().hasPrefix(written) }
            ?? names.filter { written.hasPrefix($0.lowercased()) }.max { $0.count < $1.count }
        let hint = meant.map { ", `\($0)` is" } ?? ""
        return .refused("`\(Spelling.shown(String(unit)))` is not a unit\(hint); give \(instead)")
    }
}

/// The units of sizes, or of durations, from the largest to the smallest.
struct Units: Sendable {
    let list: [(name: String, factor: Int)]

    /// In bytes.
    static let ofSizes = Units(list: [
        ("TiB", 1 << 40), ("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10),
        ("TB", 1_000_000_000_000), ("GB", 1_000_000_000), ("MB", 1_000_000), ("KB", 1_000), ("B", 1),
    ])
    /// In milliseconds.
    static let ofDurations = Units(list: [("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1_000), ("ms", 1)])

    /// The shortest text of `amount`: with the first unit that divides it.
    func text(of amount: Int) -> String {
        let unit = list.first { amount >= $0.factor && amount % $0.factor == 0 } ?? list[list.count - 1]
        return "\(amount / unit.factor)\(unit.name)"
    }
}

/// Whether `text` has nothing but ASCII digits.
func isDigits(_ text: some StringProtocol) -> Bool {
    !text.isEmpty && text.utf8.allSatisfy { $0 >= UInt8(ascii: "0") && $0 <= UInt8(ascii: "9") }
}
