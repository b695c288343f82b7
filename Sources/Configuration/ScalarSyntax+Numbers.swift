import Routing

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
            guard let quantity = Quantity(text) else { return .malformed }
            // A bare number means bytes, and `64kib` can only mean `64KiB`.
            let name = quantity.unit.isEmpty ? "b" : quantity.unit.lowercased()
            guard let factor = Units.ofSizes.list.first(where: { $0.name.lowercased() == name })?.factor else {
                return quantity.withUnknownUnit(among: .ofSizes, instead: "\(form) (\(allowed))")
            }
            if quantity.unit.isEmpty, quantity.number < range.lowerBound {
                return .refused(
                    "\(quantity.number) bytes are out of range, and the unit may be missing; give \(form) (\(allowed))")
            }
            return ranged(quantity.times(factor), in: range)
        }
    }

    @Sendable private static func sizeText(_ bytes: Int) -> String { Units.ofSizes.text(of: bytes) }
}

extension ScalarSyntax where Value == Duration {
    /// A duration: `500ms`, `30s`, `5m`, `1h`.
    static func duration(_ range: ClosedRange<Duration>) -> Self {
        let form =
            "a duration such as \(examples([.milliseconds(500), .seconds(30), .seconds(300)], in: range, as: durationText))"
        let allowed = "\(durationText(range.lowerBound)) to \(durationText(range.upperBound))"
        return ScalarSyntax(form, range: allowed, write: durationText) { text in
            guard let quantity = Quantity(text) else { return .malformed }
            guard let factor = Units.ofDurations.list.first(where: { $0.name == quantity.unit })?.factor else {
                return quantity.withUnknownUnit(among: .ofDurations, instead: "\(form) (\(allowed))")
            }
            let duration = Duration.milliseconds(quantity.times(factor))
            return range.contains(duration) ? .value(duration) : .outOfRange
        }
    }

    @Sendable private static func durationText(_ duration: Duration) -> String {
        duration < .milliseconds(1) ? "0s" : Units.ofDurations.text(of: Int(duration / .milliseconds(1)))
    }
}

extension ScalarSyntax where Value == RequestRate {
    /// A number of requests in a time: `20/s`, `100/m`, `1000/h`.
    static var rate: Self {
        let most = 1_000_000
        return ScalarSyntax(
            "a number of requests in a second, minute or hour such as `20/s`, `100/m` or `1000/h`",
            range: "1 to \(most)", write: { "\($0.requests)/\($0.period.unit)" }
        ) { text in
            let parts = text.split(separator: "/", omittingEmptySubsequences: false)
            guard parts.count == 2, isDigits(parts[0]),
                let period = RequestRate.Period.allCases.first(where: { $0.unit == parts[1] })
            else { return .malformed }
            guard let requests = Int(parts[0]), (1...most).contains(requests) else { return .outOfRange }
            return .value(RequestRate(requests, per: period))
        }
    }
}

extension RequestRate.Period {
    fileprivate var unit: String {
        switch self {
        case .second: "s"
        case .minute: "m"
        case .hour: "h"
        }
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

    /// A flag that is written with the other two words.
    static var onOrOff: Self {
        ScalarSyntax("`on` or `off`", words: ["on", "off"], write: { $0 ? "on" : "off" }, parse: flag.parse)
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

extension ScalarSyntax where Value: RawRepresentable & CaseIterable & Equatable, Value.RawValue == String {
    /// One of the raw values.
    static var word: Self { oneOf(Value.allCases.map { ($0.rawValue, $0) }) }
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
