/// A JSON value (RFC 8259), as the admin pages send it.
package enum JSONValue: Equatable, Sendable {
    case null
    case truth(Bool)
    case number(Double)
    case string(String)
    case array([JSONValue])
    case object([String: JSONValue])

    /// Reads all of `text`; `nil` if it is not one JSON text.
    package init?(_ text: String) {
        var reader = JSONReader(bytes: Array(text.utf8))
        guard let value = reader.value(depth: 0), reader.isAtEnd else { return nil }
        self = value
    }

    /// A member of an object; `nil` for any other value.
    package subscript(_ name: String) -> JSONValue? {
        if case .object(let members) = self { members[name] } else { nil }
    }

    package var string: String? { if case .string(let value) = self { value } else { nil } }
    package var number: Double? { if case .number(let value) = self { value } else { nil } }
    package var isTrue: Bool { self == .truth(true) }
    /// The elements of an array; empty for any other value.
    package var elements: [JSONValue] { if case .array(let values) = self { values } else { [] } }
}

/// Reads from the front. Every method returns `nil` if the text is not JSON.
private struct JSONReader {
    /// The deepest nesting: more than any admin page has.
    private static let deepest = 32

    let bytes: [UInt8]
    private var position = 0

    init(bytes: [UInt8]) { self.bytes = bytes }

    var isAtEnd: Bool {
        mutating get {
            skipSpace()
            return position == bytes.count
        }
    }

    private var next: UInt8? { position < bytes.count ? bytes[position] : nil }

    private mutating func skipSpace() {
        while let byte = next, [0x20, 0x09, 0x0A, 0x0D].contains(byte) { position += 1 }
    }

    /// Whether `text` comes next, after white space. If so, moves behind it.
    private mutating func take(_ text: StaticString) -> Bool {
        skipSpace()
        let wanted = Array("\(text)".utf8)
        guard bytes[position...].starts(with: wanted) else { return false }
        position += wanted.count
        return true
    }

    mutating func value(depth: Int) -> JSONValue? {
        guard depth < Self.deepest else { return nil }
        if take("{") { return object(depth: depth + 1) }
        if take("[") { return array(depth: depth + 1) }
        if take("\"") { return string().map { .string($0) } }
        if take("true") { return .truth(true) }
        if take("false") { return .truth(false) }
        if take("null") { return .null }
        return number()
    }

    private mutating func object(depth: Int) -> JSONValue? {
        var members: [String: JSONValue] = [:]
        if take("}") { return .object(members) }
        repeat {
            guard take("\""), let name = string(), take(":"), let value = value(depth: depth) else { return nil }
            members[name] = value
        } while take(",")
        return take("}") ? .object(members) : nil
    }

    private mutating func array(depth: Int) -> JSONValue? {
        var values: [JSONValue] = []
        if take("]") { return .array(values) }
        repeat {
            guard let value = value(depth: depth) else { return nil }
            values.append(value)
        } while take(",")
        return take("]") ? .array(values) : nil
    }

    private mutating func number() -> JSONValue? {
        let start = position
        while let byte = next, "+-.0123456789eE".utf8.contains(byte) { position += 1 }
        return Double(String(decoding: bytes[start..<position], as: UTF8.self)).map { .number($0) }
    }

    /// Reads a string after its opening quote.
    private mutating func string() -> String? {
        var text: [UInt8] = []
        while let byte = next {
            position += 1
            switch byte {
            case UInt8(ascii: "\""): return String(decoding: text, as: UTF8.self)
            case UInt8(ascii: "\\"):
                guard let scalar = escaped() else { return nil }
                text += Array(String(scalar).utf8)
            case ..<0x20: return nil
            default: text.append(byte)
            }
        }
        return nil
    }

    /// Reads the characters after a backslash.
    private mutating func escaped() -> Unicode.Scalar? {
        guard let byte = next else { return nil }
        position += 1
        switch byte {
        case UInt8(ascii: "\""), UInt8(ascii: "\\"), UInt8(ascii: "/"): return Unicode.Scalar(byte)
        case UInt8(ascii: "b"): return "\u{8}"
        case UInt8(ascii: "f"): return "\u{C}"
        case UInt8(ascii: "n"): return "\n"
        case UInt8(ascii: "r"): return "\r"
        case UInt8(ascii: "t"): return "\t"
        case UInt8(ascii: "u"): break
        default: return nil
        }
        guard let unit = codeUnit() else { return nil }
        // Two code units make one character beyond the first plane (RFC 8259 §7).
        guard 0xD800...0xDBFF ~= unit else { return Unicode.Scalar(unit) }
        guard bytes[position...].starts(with: Array("\\u".utf8)) else { return nil }
        position += 2
        guard let second = codeUnit(), 0xDC00...0xDFFF ~= second else { return nil }
        return Unicode.Scalar(0x10000 + (unit - 0xD800) << 10 + (second - 0xDC00))
    }

    private mutating func codeUnit() -> UInt32? {
        let digits = bytes[position...].prefix(4)
        guard digits.count == 4, digits.allSatisfy({ Character(Unicode.Scalar($0)).isHexDigit }) else { return nil }
        position += 4
        return UInt32(String(decoding: digits, as: UTF8.self), radix: 16)
    }
}
