/// Numbers, with and without units, and words.
extension ScalarSyntax where Value == Int {
    static func integer(_ range: ClosedRange<Int>) -> Self {
        ScalarSyntax("a whole number", range: "\(range.lowerBound) to \(range.upperBound)", write: { "\($0)" }) {
            text in
            // `Int` would accept a sign, too. A number that is too long for `Int` is out of any range.
            guard isDigits(text) else { return .malformed }
            return ranged(Int(text) ?? .max, in: range)
        }
    }

    /// A percentage: `10%`.
    static func percent(_ range: ClosedRange<Int>) -> Self {
        ScalarSyntax(
            "a share such as `10%`", range: "\(range.lowerBound)% to \(range.upperBound)%", write: { "\($0)%" }
        ) { text in
            guard text.hasSuffix("%"), isDigits(text.dropLast()) else { return .malformed }
            return ranged(Int(text.dropLast()) ?? .max, in: range)
        }
    }

    /// A size in bytes: `64KiB`, `1GB`, `512`.
    static func size(_ range: ClosedRange<Int>) -> Self {
        let form = "a size such as \(examples([64 << 10, 256 << 20], in: range, as: sizeText))"
        let allowed = "\(sizeText(range.lowerBound)) to \(sizeText(range.upperBound))"
        return ScalarSyntax(form, range: allowed, write: sizeText) { text in
            guard let (number, unit) = split(text) else { return .malformed }
            // A bare number means bytes, and `64kib` can only mean `64KiB`.
            let name = unit.isEmpty ? "b" : unit.lowercased()
            guard let factor = sizeUnits.first(where: { $0.name.lowercased() == name })?.bytes else {
                return unknownUnit(unit, among: sizeUnits.map(\.name)).map {
                    .refused("\($0); give \(form) (\(allowed))")
                }
                    ?? .malformed
            }
            if unit.isEmpty, number < range.lowerBound {
                return .refused(
                    "\(number) bytes are out of range, and the unit may be missing; give \(form) (\(allowed))")
            }
            return ranged(scaled(number, by: factor), in: range)
        }
    }

    /// From the largest to the smallest: the first unit that divides a value gives the shortest text.
    private static var sizeUnits: [(name: String, bytes: Int)] {
        [
            ("TiB", 1 << 40), ("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10),
            ("TB", 1_000_000_000_000), ("GB", 1_000_000_000), ("MB", 1_000_000), ("KB", 1_000), ("B", 1),
        ]
    }

    @Sendable private static func sizeText(_ bytes: Int) -> String {
        let unit = sizeUnits.first { bytes >= $0.bytes && bytes % $0.bytes == 0 } ?? ("B", 1)
        return "\(bytes / unit.bytes)\(unit.name)"
    }
}

extension ScalarSyntax where Value == Duration {
    /// A duration: `500ms`, `30s`, `5m`, `1h`.
    static func duration(_ range: ClosedRange<Duration>) -> Self {
        let form =
            "a duration such as \(examples([.milliseconds(500), .seconds(30), .seconds(300)], in: range, as: durationText))"
        let allowed = "\(durationText(range.lowerBound)) to \(durationText(range.upperBound))"
        return ScalarSyntax(form, range: allowed, write: durationText) { text in
            guard let (number, unit) = split(text) else { return .malformed }
            guard let factor = durationUnits.first(where: { $0.name == unit })?.milliseconds else {
                return unknownUnit(unit, among: durationUnits.map(\.name)).map {
                    .refused("\($0); give \(form) (\(allowed))")
                } ?? .malformed
            }
            let duration = Duration.milliseconds(scaled(number, by: factor))
            return range.contains(duration) ? .value(duration) : .outOfRange
        }
    }

    private static var durationUnits: [(name: String, milliseconds: Int)] {
        [("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1_000), ("ms", 1)]
    }

    @Sendable private static func durationText(_ duration: Duration) -> String {
        let milliseconds = Int(duration / .milliseconds(1))
        guard milliseconds > 0 else { return "0s" }
        let unit = durationUnits.first { milliseconds % $0.milliseconds == 0 } ?? ("ms", 1)
        return "\(milliseconds / unit.milliseconds)\(unit.name)"
    }
}

extension ScalarSyntax where Value == Bool {
    static var flag: Self {
        ScalarSyntax("`true` or `false`", words: ["true", "false"], write: { $0 ? "true" : "false" }) { text in
            switch text.lowercased() {
            case "true", "on", "yes": .value(true)
            case "false", "off", "no": .value(false)
            default: .malformed
            }
        }
    }
}

extension ScalarSyntax where Value == UInt32 {
    /// File permissions in octal: `0660`.
    static var permissions: Self {
        ScalarSyntax(
            "permissions in octal such as `0660`", range: "0000 to 0777",
            write: { "0" + String($0, radix: 8) }
        ) { text in
            guard isDigits(text), let mode = UInt32(text, radix: 8) else { return .malformed }
            return mode <= 0o777 ? .value(mode) : .outOfRange
        }
    }
}

extension ScalarSyntax where Value: RawRepresentable & CaseIterable, Value.RawValue == String {
    /// One of the raw values.
    static var word: Self {
        let words = Value.allCases.map(\.rawValue)
        return ScalarSyntax(
            "one of these words", range: words.joined(separator: ", "), words: words, write: { $0.rawValue }
        ) { text in Value(rawValue: text).map { .value($0) } ?? .malformed }
    }
}

/// The values that are in `range`, for a message: `a`, `b` or `c`.
private func examples<Value: Comparable>(_ values: [Value], in range: ClosedRange<Value>, as text: (Value) -> String)
    -> String
{
    let words = values.filter(range.contains).map { "`\(text($0))`" }
    return words.count < 2 ? words.joined() : words.dropLast().joined(separator: ", ") + " or " + words[words.count - 1]
}

private func ranged(_ number: Int, in range: ClosedRange<Int>) -> ScalarSyntax<Int>.Parsed {
    range.contains(number) ? .value(number) : .outOfRange
}

func isDigits(_ text: some StringProtocol) -> Bool {
    !text.isEmpty && text.utf8.allSatisfy { $0 >= UInt8(ascii: "0") && $0 <= UInt8(ascii: "9") }
}

/// The leading digits and the rest: `30s` is 30 and `s`.
private func split(_ text: String) -> (number: Int, unit: Substring)? {
    let digits = text.prefix { $0.isASCII && $0.isNumber }
    guard isDigits(digits) else { return nil }
    return (Int(digits) ?? .max, text[digits.endIndex...])
}

/// The message for a `unit` that is none of `units`, with the unit that may be meant; `nil` if `unit` is not a word.
private func unknownUnit(_ unit: Substring, among units: [String]) -> String? {
    if unit.isEmpty { return "the unit is missing" }
    guard unit.unicodeScalars.allSatisfy(\.properties.isAlphabetic) else { return nil }
    let written = unit.lowercased()
    let meant =
        units.first { $0.lowercased().hasPrefix(written) }
        ?? units.filter { written.hasPrefix($0.lowercased()) }.max { $0.count < $1.count }
    return "`\(Spelling.shown(String(unit)))` is not a unit" + (meant.map { ", `\($0)` is" } ?? "")
}

/// The product, or `Int.max` on overflow, which is out of every range.
private func scaled(_ number: Int, by factor: Int) -> Int {
    let (product, overflow) = number.multipliedReportingOverflow(by: factor)
    return overflow ? .max : product
}
