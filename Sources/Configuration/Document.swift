import Yams

/// A configuration file as a tree of nodes that know where they stand.
///
/// Yams stops at the first mapping with a duplicate key. To find the other mistakes too, the earlier of the two is
/// hidden behind a placeholder of the same length, and the text is parsed again: only as often as gives the operator
/// enough mistakes to work on.
struct Document {
    /// Keys that are given again.
    private static let mostHidden = 20

    struct SyntaxError: Error {
        var position: Position
        var message: String
    }

    /// `nil`: the file is empty or holds comments only.
    let root: Node?
    /// The names of keys that are hidden because the same key comes again in their mapping.
    let hidden: [Position: String]
    private let text: [Unicode.Scalar]
    /// Where the lines begin in `text`.
    private let lines: [Int]

    private init(root: Node?, hidden: [Position: String], text: [Unicode.Scalar]) {
        (self.root, self.hidden, self.text) = (root, hidden, text)
        lines = [0] + text.indices.filter { text[$0] == "\n" }.map { $0 + 1 }
    }

    /// What to do about a value that is not what it looks like: one of which YAML takes the beginning for a tag, or all for
    /// an anchor. `nil`: it is what it looks like.
    func indicatorAdvice(for node: Node) -> String? {
        let position = node.position
        guard lines.indices.contains(position.line - 1) else { return nil }
        let start = lines[position.line - 1] + position.column - 1
        guard text.indices.contains(start) else { return nil }
        switch text[start] {
        case "&" where node.isNothing: break
        // Those with two are YAML's own, such as `!!str`.
        case "!" where !text[(start + 1)...].starts(with: CollectionOfOne("!")): break
        default: return nil
        }
        return Indicator.advice(at: start, in: text)
    }

    /// Whether `key` stands in the group `group`, with whatever value.
    func states(_ key: String, in group: String) -> Bool { root?[group]?[key] != nil }

    static func parse(_ text: String) -> Result<Document, SyntaxError> {
        var scalars = Array(text.unicodeScalars)
        var hidden: [Position: String] = [:]
        while true {
            var view = String.UnicodeScalarView()
            view.append(contentsOf: scalars)
            do {
                let root = try Parser(yaml: String(view), encoding: .utf8).singleRoot()
                return .success(Document(root: root, hidden: hidden, text: scalars))
            } catch YamlError.duplicatedKeysInMapping(let names, let context) {
                let position = Position(context.mark)
                guard hidden.count < mostHidden else {
                    return .failure(
                        SyntaxError(
                            position: position,
                            message:
                                "more than \(mostHidden) keys are given twice in one place, such as `\(names.min() ?? "")` here; remove one of each two"
                        ))
                }
                guard let name = names.sorted().first, hide(name, at: position, in: &scalars, number: hidden.count)
                else {
                    return .failure(
                        SyntaxError(
                            position: position, message: "a key is given twice in one place; remove one of the two"))
                }
                hidden[position] = name
            } catch {
                return .failure(SyntaxError(error, in: scalars))
            }
        }
    }

    /// Overwrites the key with private-use characters, which no key of ours has.
    private static func hide(_ name: String, at position: Position, in scalars: inout [Unicode.Scalar], number: Int)
        -> Bool
    {
        guard let standIn = Unicode.Scalar(0xE000 + UInt32(number)), standIn.properties.generalCategory == .privateUse,
            var start = offset(of: position, in: scalars), start < scalars.count
        else { return false }
        if scalars[start] == "\"" || scalars[start] == "'" { start += 1 }
        let end = start + name.unicodeScalars.count
        guard end <= scalars.count, scalars[start..<end].elementsEqual(name.unicodeScalars) else { return false }
        for index in start..<end { scalars[index] = standIn }
        return true
    }

    static func offset(of position: Position, in scalars: [Unicode.Scalar]) -> Int? {
        var line = 1
        var start = 0
        while line < position.line {
            guard let lineEnd = scalars[start...].firstIndex(of: "\n") else { return nil }
            start = lineEnd + 1
            line += 1
        }
        return start + position.column - 1
    }
}

extension Document.SyntaxError {
    init(_ error: any Error, in scalars: [Unicode.Scalar]) {
        position = Position(line: 1, column: 1)
        switch error as? YamlError {
        case .scanner(let context, let problem, let mark, _), .parser(let context, let problem, let mark, _),
            .composer(let context, let problem, let mark, _):
            position = Position(mark)
            // An alias, an anchor and a tag are given up behind their first character, the others at it.
            let beginning = context.map { Position($0.mark) } ?? position
            if Self.concernsIndicator(problem, context?.text ?? ""),
                let start = Document.offset(of: beginning, in: scalars),
                let advice = Indicator.advice(at: start, in: scalars)
            {
                (position, message) = (beginning, "not YAML: \(advice)")
                return
            }
            message = "not YAML: \(problem)"
            if let context, !context.text.isEmpty {
                message += ", \(context.text) that begins on line \(context.mark.line)"
            }
            if let offset = Document.offset(of: position, in: scalars), offset < scalars.count, scalars[offset] == "\t"
            {
                message += "; this is a tab, use spaces"
            } else {
                message += "; look at the colons, quotes and indentation here and just above"
            }
        case .reader(let problem, let offset, _, let yaml):
            let before = yaml.prefix(offset ?? 0)
            position.line += before.count(where: \.isNewline)
            position.column += before.reversed().prefix { !$0.isNewline }.count
            message = "not YAML: \(problem); remove this character"
        case .no, .memory, .writer, .emitter, .representer, .dataCouldNotBeDecoded, .duplicatedKeysInMapping, nil:
            message = "not YAML: \(error)"
        }
    }
}

extension Document.SyntaxError {
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
