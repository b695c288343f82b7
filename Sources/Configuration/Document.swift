import YAML

/// A configuration file as a tree of nodes with their positions.
struct Document {
    struct SyntaxError: Error {
        var position: Position
        var message: String
    }

    /// `nil` if the file is empty or contains only comments.
    let root: Node?
    private let text: Lines

    /// Whether `key` is in the group `group`, whatever its value.
    func states(_ key: String, in group: String) -> Bool { root?[group]?[key] != nil }

    /// Where the value of a key is, or what is around it; the beginning of the file if there is nothing of it.
    func position(ofKey key: String, among places: [String: Node.Place]) -> Position {
        places[key]?.value ?? root?.position(ofKey: key) ?? Position(line: 1, column: 1)
    }

    /// The advice for a value whose first character YAML takes for the start of a tag, or a value that YAML takes for
    /// an anchor as a whole. `nil` for any other value.
    func indicatorAdvice(for node: Node) -> String? {
        guard let start = text.offset(of: node.position) else { return nil }
        let scalars = text.scalars
        switch scalars[start] {
        case "&" where node.isNothing: break
        // Tags with two exclamation marks are YAML's own, such as `!!str`.
        case "!" where !scalars[(start + 1)...].starts(with: CollectionOfOne("!")): break
        default: return nil
        }
        return Indicator.advice(at: start, in: scalars)
    }

    static func parse(_ text: String) -> Result<Document, SyntaxError> {
        let lines = Lines(text)
        do throws(ParseError) {
            return .success(Document(root: try Node.parse(text), text: lines))
        } catch {
            return .failure(SyntaxError(error, in: lines))
        }
    }
}

/// A text, addressed by line and column.
struct Lines {
    let scalars: [Unicode.Scalar]
    /// The offsets of the lines in `scalars`.
    private let starts: [Int]

    init(_ text: String) {
        let scalars = Array(text.unicodeScalars)
        self.scalars = scalars
        starts = [0] + scalars.indices.filter { scalars[$0] == "\n" }.map { $0 + 1 }
    }

    /// The offset in `scalars` of the character at `position`; `nil` if there is none.
    func offset(of position: Position) -> Int? {
        guard starts.indices.contains(position.line - 1) else { return nil }
        let offset = starts[position.line - 1] + position.column - 1
        return scalars.indices.contains(offset) ? offset : nil
    }
}

extension Document.SyntaxError {
    init(_ error: ParseError, in text: Lines) {
        position = Position(error.mark)
        message = "not YAML: \(error.problem)"
        if error.isForbiddenCharacter {
            message += "; remove this character"
            return
        }
        // libyaml rejects an alias, an anchor or a tag after its first character, and other values at their first
        // character.
        let beginning = error.context.map { Position($0.mark) } ?? position
        if Self.concernsIndicator(error.problem, error.context?.text ?? ""), let start = text.offset(of: beginning),
            let advice = Indicator.advice(at: start, in: text.scalars)
        {
            (position, message) = (beginning, "not YAML: \(advice)")
            return
        }
        if let context = error.context, !context.text.isEmpty {
            message += ", \(context.text) that begins on line \(context.mark.line)"
        }
        if let offset = text.offset(of: position), let value = Self.valueWithVariable(at: offset, in: text.scalars) {
            message =
                "not YAML: `{` within braces begins a map; put the value with `${` in quotes: `\"\(Spelling.shown(value))\"`"
        } else if let offset = text.offset(of: position), text.scalars[offset] == "\t" {
            message += "; this is a tab, use spaces"
        } else {
            message += "; look at the colons, quotes and indentation here and just above"
        }
    }

    /// The value in which `${` stands, if the `{` at `brace` belongs to such a variable (`Template`).
    private static func valueWithVariable(at brace: Int, in text: [Unicode.Scalar]) -> String? {
        guard text[brace] == "{", brace > 0, text[brace - 1] == "$" else { return nil }
        let ends: [Unicode.Scalar] = [" ", "\n", ",", "[", "]", "{", "}"]
        var (start, end) = (brace - 1, brace)
        while start > 0, !ends.contains(text[start - 1]) { start -= 1 }
        while text[end] == "{", let close = text[end...].firstIndex(of: "}") {
            end = close + 1
            while end < text.count, !ends.contains(text[end]) { end += 1 }
            guard end < text.count else { break }
        }
        var value = String.UnicodeScalarView()
        value.append(contentsOf: text[start..<end])
        return String(value)
    }

    /// Whether, by libyaml's message, the value's first character may have been taken for an indicator.
    private static func concernsIndicator(_ problem: String, _ context: String) -> Bool {
        ["cannot start any token", "undefined alias"].contains { problem.contains($0) }
            || ["scanning an alias", "scanning an anchor", "scanning a tag", "parsing a tag", "scanning a directive"]
                .contains { context.contains($0) }
    }
}

extension Position {
    init(_ mark: Mark) { self.init(line: mark.line, column: mark.column) }
}
