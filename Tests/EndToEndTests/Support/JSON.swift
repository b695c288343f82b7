/// A small strict reader of RFC 8259, enough to hold the program's JSON against the standard and look into it.
indirect enum JSON: Equatable {
    case null
    case bool(Bool)
    case number(Double)
    case string(String)
    case array([JSON])
    case object([String: JSON])

    struct Malformed: Error { let at: Substring }

    init(_ text: String) throws {
        var rest = Substring(text)
        self = try Self.value(&rest)
        Self.skipSpace(&rest)
        guard rest.isEmpty else { throw Malformed(at: rest.prefix(40)) }
    }

    subscript(key: String) -> JSON? {
        if case .object(let members) = self { members[key] } else { nil }
    }

    var string: String? { if case .string(let text) = self { text } else { nil } }
    var number: Double? { if case .number(let value) = self { value } else { nil } }
    /// Of an array; none of any other value.
    var elements: [JSON] { if case .array(let elements) = self { elements } else { [] } }

    /// That member of each element of an array.
    func each(_ member: String) -> [JSON?] { elements.map { $0[member] } }

    private static let space: [Character] = [" ", "\t", "\n", "\r", "\r\n"]

    private static func skipSpace(_ rest: inout Substring) { rest = rest.drop { space.contains($0) } }

    private static func take(_ text: String, _ rest: inout Substring) -> Bool {
        guard rest.hasPrefix(text) else { return false }
        rest = rest.dropFirst(text.count)
        return true
    }

    private static func need(_ text: String, _ rest: inout Substring) throws {
        guard take(text, &rest) else { throw Malformed(at: rest.prefix(40)) }
    }

    private static func value(_ rest: inout Substring) throws -> JSON {
        skipSpace(&rest)
        if take("null", &rest) { return .null }
        if take("true", &rest) { return .bool(true) }
        if take("false", &rest) { return .bool(false) }
        if rest.hasPrefix("\"") { return try .string(quoted(&rest)) }
        if take("[", &rest) { return try .array(list(until: "]", &rest) { try value(&$0) }) }
        if take("{", &rest) {
            let members = try list(until: "}", &rest) { rest in
                skipSpace(&rest)
                let key = try quoted(&rest)
                skipSpace(&rest)
                try need(":", &rest)
                return try (key, value(&rest))
            }
            return .object(Dictionary(members) { $1 })
        }
        let digits = rest.prefix { "+-.eE0123456789".contains($0) }
        guard let number = Double(digits) else { throw Malformed(at: rest.prefix(40)) }
        rest = rest.dropFirst(digits.count)
        return .number(number)
    }

    private static func list<Item>(
        until end: String, _ rest: inout Substring, _ item: (inout Substring) throws -> Item
    ) throws -> [Item] {
        var items: [Item] = []
        skipSpace(&rest)
        if take(end, &rest) { return items }
        while true {
            try items.append(item(&rest))
            skipSpace(&rest)
            if take(end, &rest) { return items }
            try need(",", &rest)
        }
    }

    private static func quoted(_ rest: inout Substring) throws -> String {
        try need("\"", &rest)
        var text = ""
        while let next = rest.popFirst() {
            switch next {
            case "\"": return text
            case "\\":
                guard let escaped = rest.popFirst() else { throw Malformed(at: rest) }
                switch escaped {
                case "n": text += "\n"
                case "t": text += "\t"
                case "r": text += "\r"
                case "b": text += "\u{8}"
                case "f": text += "\u{c}"
                case "u":
                    guard let code = UInt32(rest.prefix(4), radix: 16) else { throw Malformed(at: rest.prefix(40)) }
                    text.unicodeScalars.append(Unicode.Scalar(code) ?? "\u{fffd}")
                    rest = rest.dropFirst(4)
                default: text.append(escaped)
                }
            default: text.append(next)
            }
        }
        throw Malformed(at: rest)
    }
}
