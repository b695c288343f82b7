/// Writes JSON (RFC 8259), member by member.
struct JSONText {
    private(set) var text = ""
    private var needsComma = false

    mutating func object(_ name: String? = nil, _ members: (inout JSONText) -> Void) { nest(name, "{", "}", members) }

    mutating func array<Element>(_ name: String, _ elements: [Element], _ each: (inout JSONText, Element) -> Void) {
        nest(name, "[", "]") { json in for element in elements { each(&json, element) } }
    }

    mutating func member(_ name: String, _ number: Int) {
        begin(name)
        text += "\(number)"
    }

    mutating func member(_ name: String, _ string: String) {
        begin(name)
        append(string)
    }

    mutating func value(_ string: String) {
        begin(nil)
        append(string)
    }

    private mutating func nest(_ name: String?, _ open: String, _ close: String, _ body: (inout JSONText) -> Void) {
        begin(name)
        text += open
        needsComma = false
        body(&self)
        text += close
        needsComma = true
    }

    private mutating func begin(_ name: String?) {
        if needsComma { text += "," }
        needsComma = true
        guard let name else { return }
        append(name)
        text += ":"
    }

    private mutating func append(_ string: String) {
        text += "\""
        for scalar in string.unicodeScalars {
            switch scalar {
            case "\"", "\\": text += "\\\(scalar)"
            case _ where scalar.value < 0x20 || scalar.value == 0x7f:
                let digits = String(scalar.value, radix: 16)
                text += "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
            default: text.unicodeScalars.append(scalar)
            }
        }
        text += "\""
    }
}
