import Bytes
import Telemetry

/// Writes JSON (RFC 8259), member by member, each on a line of its own.
struct JSONText {
    let bytes = ByteBuffer(capacity: 4096)
    private var needsComma = false
    private var depth = 0

    mutating func object(_ name: StaticString? = nil, _ members: (inout JSONText) -> Void) {
        nest(name, "{", "}", members)
    }

    mutating func array<Element>(_ name: StaticString, _ elements: [Element], _ each: (inout JSONText, Element) -> Void)
    {
        nest(name, "[", "]") { json in for element in elements { each(&json, element) } }
    }

    mutating func member(_ name: StaticString, _ number: Int) {
        begin(name)
        bytes.append(decimal: number)
    }

    mutating func member(_ name: StaticString, _ truth: Bool) {
        begin(name)
        bytes.append(truth ? "true" : "false")
    }

    mutating func member(_ name: StaticString, _ string: String) {
        begin(name)
        append(string)
    }

    mutating func value(_ string: String) {
        begin(nil)
        append(string)
    }

    private mutating func nest(
        _ name: StaticString?, _ open: StaticString, _ close: StaticString, _ body: (inout JSONText) -> Void
    ) {
        begin(name)
        bytes.append(open)
        needsComma = false
        depth += 1
        body(&self)
        depth -= 1
        // There was a member: its line ends here.
        if needsComma { beginLine() }
        bytes.append(close)
        needsComma = true
    }

    /// - Parameter name: a name of the program's own, without characters to escape.
    private mutating func begin(_ name: StaticString?) {
        if needsComma { bytes.append(",") }
        needsComma = true
        if depth > 0 { beginLine() }
        guard let name else { return }
        bytes.append("\"")
        bytes.append(name)
        bytes.append("\": ")
    }

    private func beginLine() {
        bytes.append("\n")
        for _ in 0..<depth { bytes.append("  ") }
    }

    private func append(_ string: String) {
        let text = string.utf8
        bytes.append(jsonString: text.span)
    }
}
