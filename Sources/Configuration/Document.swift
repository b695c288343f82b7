import YAML

/// A configuration file as a tree of nodes that know where they stand.
struct Document {
    struct SyntaxError: Error {
        var position: Position
        var message: String
    }

    /// `nil`: the file is empty or holds comments only.
    let root: Node?
    private let text: Lines

    /// Whether `key` stands in the group `group`, with whatever value.
    func states(_ key: String, in group: String) -> Bool { root?[group]?[key] != nil }

    /// What to do about a value that is not what it looks like: one of which YAML takes the beginning for a tag, or all for
    /// an anchor. `nil`: it is what it looks like.
    func indicatorAdvice(for node: Node) -> String? {
        guard let start = text.offset(of: node.position) else { return nil }
        let scalars = text.scalars
        switch scalars[start] {
        case "&" where node.isNothing: break
        // Those with two are YAML's own, such as `!!str`.
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

/// A text by lines and columns.
struct Lines {
    let scalars: [Unicode.Scalar]
    /// Where the lines begin in `scalars`.
    private let starts: [Int]

    init(_ text: String) {
        let scalars = Array(text.unicodeScalars)
        self.scalars = scalars
        starts = [0] + scalars.indices.filter { scalars[$0] == "\n" }.map { $0 + 1 }
    }

    /// Where the character at `position` stands in `scalars`; `nil` if there is none.
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
        // libyaml gives up an alias, an anchor and a tag behind their first character, other values at it.
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
        if let offset = text.offset(of: position), text.scalars[offset] == "\t" {
            message += "; this is a tab, use spaces"
        } else {
            message += "; look at the colons, quotes and indentation here and just above"
        }
    }

    /// Whether a value may have been taken for something else by its first character, in the words of libyaml.
    private static func concernsIndicator(_ problem: String, _ context: String) -> Bool {
        ["cannot start any token", "undefined alias"].contains { problem.contains($0) }
            || ["scanning an alias", "scanning an anchor", "scanning a tag", "parsing a tag", "scanning a directive"]
                .contains { context.contains($0) }
    }
}

extension Position {
    init(_ mark: Mark) { self.init(line: mark.line, column: mark.column) }
}
