import Bytes
import HTTPSemantics
import Routing
import YAML

/// The syntax of a value in the file: reads a node, noting mistakes, and writes lines of YAML.
struct ValueSyntax<Value: Sendable>: Sendable {
    /// The allowed values, for the shipped file.
    let range: String?
    /// `name` is the key, used in notes.
    let read: @Sendable (Node, _ name: String, inout Reader) -> Value?
    /// A single line is written after its key, several lines below it.
    let write: @Sendable (Value) -> [String]
    /// Reads the text of an environment variable; `nil` if the value takes more than one line.
    let parse: (@Sendable (String) throws(ValueMistake) -> Value)?

    init(
        range: String? = nil,
        write: @escaping @Sendable (Value) -> [String],
        parse: (@Sendable (String) throws(ValueMistake) -> Value)? = nil,
        read: @escaping @Sendable (Node, _ name: String, inout Reader) -> Value?
    ) {
        self.range = range
        self.read = read
        self.write = write
        self.parse = parse
    }

    /// A single value.
    init(_ scalar: ScalarSyntax<Value>) {
        self.init(
            range: scalar.range, write: { [quoted(scalar.write($0))] },
            parse: { text throws(ValueMistake) in try scalar.value(of: text) }
        ) { node, name, reader in
            if case .scalar = node, let advice = reader.indicatorAdvice(for: node) {
                reader.note(node.position, advice)
                return nil
            }
            guard case .scalar(let text) = node, !node.isNothing else {
                reader.note(node.position, "`\(name)` is \(scalar.form), not \(node.kind)")
                return nil
            }
            do throws(ValueMistake) {
                return try scalar.value(of: text.string)
            } catch {
                let isText = !text.string.unicodeScalars.contains("\u{FFFD}")
                reader.note(
                    node.position,
                    "`\(name): \(Spelling.shown(text.string))`: \(isText ? "\(error)" : "not valid UTF-8; save the file as UTF-8")"
                )
                return nil
            }
        }
    }
}

extension ValueSyntax {
    /// A list of single values. A single value needs no list.
    /// - Parameter maximum: a bound for lists whose values are all compared with each request, which takes time for
    ///   each.
    static func list<Element>(
        of scalar: ScalarSyntax<Element>, atLeast minimum: Int = 0, atMost maximum: Int = .max
    ) -> ValueSyntax<[Element]>
    where Value == [Element], Element: Hashable & Sendable {
        let element = ValueSyntax<Element>(scalar)
        return ValueSyntax(
            range: scalar.range,
            write: { values in
                ["[\(values.map { quoted(scalar.write($0)) }.joined(separator: ", "))]"]
            },
            parse: { text throws(ValueMistake) in
                if text.hasPrefix("["), text.hasSuffix("]"), text.contains(",") {
                    throw ValueMistake(description: "a list has no brackets here; give its entries separated by commas")
                }
                let words = text.isEmpty ? [] : text.split(separator: ",", omittingEmptySubsequences: false)
                guard words.count >= minimum else {
                    throw ValueMistake(description: "empty; give at least \(minimum), separated by commas")
                }
                guard words.count <= maximum else {
                    throw ValueMistake(description: "\(words.count) entries; give at most \(maximum)")
                }
                var values: [Element] = []
                for word in words {
                    let value = try scalar.value(of: String(word.trimmingSpaces))
                    guard !values.contains(value) else {
                        throw ValueMistake(
                            description: "`\(Spelling.shown(scalar.write(value)))` is there twice; remove one of them")
                    }
                    values.append(value)
                }
                return values
            }
        ) { node, name, reader in
            let nodes = node.elements
            if nodes.count < minimum {
                reader.note(node.position, "`\(name)` is empty; give at least \(minimum)")
                return nil
            }
            if nodes.count > maximum {
                reader.note(node.position, "`\(name)` has \(nodes.count) entries; give at most \(maximum)")
                return nil
            }
            var values: [Element] = []
            var known: Set<Element> = []
            for node in nodes {
                guard let value = element.read(node, name, &reader) else { continue }
                if known.insert(value).inserted {
                    values.append(value)
                } else {
                    reader.note(
                        node.position,
                        "`\(name)` has `\(Spelling.shown(scalar.write(value)))` twice; remove one of them")
                }
            }
            return values
        }
    }

    /// Makes the lines of a group into an item of a list: the dash stands before its first key.
    private static func dashed(_ lines: [String]) -> [String] {
        let first = lines.firstIndex { !$0.hasPrefix("#") }
        return lines.enumerated().map { index, line in
            if index == first { "- " + line } else if line.isEmpty { "" } else { "  " + line }
        }
    }

    /// A list of groups of keys.
    /// - Parameters:
    ///   - title: names one of the groups in a message.
    ///   - blank: a group before its keys are read.
    ///   - identity: the name of a group, which must be unique; empty if the name is missing.
    ///   - check: notes the mistakes that are not about one key of a group.
    static func groups<Element: Sendable>(
        _ title: String, from blank: Element, _ keys: [Key<Element>],
        named identity: (@Sendable (Element) -> String)? = nil,
        check: (@Sendable (Node, inout Reader) -> Void)? = nil
    ) -> ValueSyntax<[Element]> where Value == [Element] {
        ValueSyntax(
            write: { elements in
                guard !elements.isEmpty else { return ["[]"] }
                return elements.flatMap { dashed(DefaultFile.lines(of: keys, in: $0)) }
            }
        ) { node, name, reader in
            guard case .list(let list) = node else {
                reader.note(node.position, "`\(name)` is a list (`- …`), not \(node.kind)")
                return nil
            }
            var elements: [Element] = []
            var known: Set<String> = []
            for node in list.items {
                var element = blank
                if node.isNothing {
                    reader.note(node.position, "\(title) is empty; fill it in or remove the dash")
                    continue
                }
                reader.read(node, as: keys, into: &element, called: title)
                check?(node, &reader)
                if let name = identity?(element), !name.isEmpty, !known.insert(name).inserted {
                    reader.note(node.position, "\(title) named `\(name)` already exists above; use another name")
                }
                elements.append(element)
            }
            return elements
        }
    }

}

extension ValueSyntax {
    /// The syntax of `syntax`, or a word for `nil`.
    static func optional<Wrapped>(_ syntax: ValueSyntax<Wrapped>, _ word: String) -> Self where Value == Wrapped? {
        ValueSyntax(range: syntax.range, write: { $0.map(syntax.write) ?? [word] }) { node, name, reader in
            if node.string == word { return .some(nil) }
            return syntax.read(node, name, &reader).map { .some($0) }
        }
    }
}

extension ValueSyntax {
    /// A group of keys written as one value, `{a: 1, b: 2}`, or a word for `nil`.
    /// - Parameters:
    ///   - title: names the group in a message.
    ///   - blank: the group before its keys are read.
    static func map<Element: Sendable>(
        _ title: String, from blank: Element, _ keys: [Key<Element>], or word: String
    ) -> Self where Value == Element? {
        ValueSyntax(
            write: { element in
                guard let element else { return [word] }
                let given = keys.map { ($0.name, $0.write(element)) }.filter { !$0.1.isEmpty }
                return ["{\(given.map { "\($0): \($1.joined(separator: " "))" }.joined(separator: ", "))}"]
            }
        ) { node, name, reader in
            if node.string == word { return .some(nil) }
            guard case .mapping = node else {
                let names = keys.map { "\($0.name): …" }.joined(separator: ", ")
                reader.note(node.position, "`\(name)` is `{\(names)}` or `\(word)`, not \(node.kind)")
                return nil
            }
            var element = blank
            reader.read(node, as: keys, into: &element, called: title)
            return element
        }
    }
}

extension ValueSyntax<String?> {
    /// Whose requests a limit counts apart: `client`, or `{header: NAME}`; `nil` is `client`.
    static var rateKey: Self {
        let names = ValueSyntax<String>(.fieldName)
        return ValueSyntax(write: { [$0.map { "{header: \($0)}" } ?? "client"] }) { node, name, reader in
            if node.string == "client" { return .some(nil) }
            if case .mapping(let mapping) = node, mapping.pairs.count == 1, let pair = mapping.pairs.first,
                pair.key.string == "header"
            {
                return names.read(pair.value, "header", &reader)
            }
            reader.note(node.position, "`\(name)` is `client`, or `{header: NAME}` with the name of a request field")
            return nil
        }
    }
}

extension ValueSyntax<StatusLifetimes> {
    private static var duration: ScalarSyntax<Duration> { .lifetime }

    /// One lifetime for all responses that state none, or lifetimes by status: `{200: 10m, 404: 1m, other: 0s}`.
    static var lifetimes: Self {
        byStatus(
            or: duration.mapped(to: { StatusLifetimes(other: $0) }, from: { $0.other ?? .zero }),
            example: "{200: 10m, 404: 1m, other: 0s}", unnamed: .zero, refusal: refusalOfDefault,
            write: { text(of: $0, other: $0.other ?? .zero) })
    }

    /// One lifetime for all responses in place of their own, or lifetimes by status: `{200: 10m, 500: 1s}`; or `none`.
    static var fixedLifetimes: Self {
        byStatus(
            or: ScalarSyntax<Duration?>.optional(duration, "none")
                .mapped(to: { $0.map { StatusLifetimes(other: $0) } ?? StatusLifetimes() }, from: \.other),
            example: "{200: 10m, 500: 1s}", unnamed: nil, refusal: refusalOfReplacement,
            write: { $0.isEmpty ? "none" : text(of: $0, other: $0.other) })
    }

    /// - Parameters:
    ///   - single: the syntax of one value for all statuses.
    ///   - unnamed: the lifetime of other statuses where a map has none for them.
    ///   - refusal: why a status may not be named, and what to do; `nil` for one that may.
    private static func byStatus(
        or single: ScalarSyntax<StatusLifetimes>, example: String, unnamed: Duration?,
        refusal: @escaping @Sendable (Status) -> String?,
        write: @escaping @Sendable (StatusLifetimes) -> String
    ) -> Self {
        let others = "other"
        let (all, one) = (ValueSyntax<StatusLifetimes>(single), ValueSyntax<Duration>(duration))
        return ValueSyntax(
            range: single.range.map { "\($0); also by status, as \(example)" },
            write: { [write($0)] }, parse: all.parse
        ) { node, name, reader in
            guard case .mapping(let mapping) = node else { return all.read(node, name, &reader) }
            var lifetimes = StatusLifetimes(other: unnamed)
            if mapping.pairs.isEmpty {
                let words = single.words.map { " `\($0)`," }.joined()
                reader.note(node.position, "`\(name)` is empty; give a duration,\(words) or one for a status")
            }
            for entry in reader.entries(of: mapping) {
                let duration = one.read(entry.value, entry.name, &reader) ?? .zero
                if entry.name == others {
                    lifetimes.other = duration
                } else if let status = status(entry.name, of: name, at: entry.position, refusal, &reader) {
                    lifetimes.named.append(StatusLifetimes.Lifetime(status, duration))
                }
            }
            return lifetimes
        }
    }

    private static func text(of lifetimes: StatusLifetimes, other: Duration?) -> String {
        let rest = other.map { duration.write($0) }
        if lifetimes.named.isEmpty, let rest { return rest }
        let named = lifetimes.named.map { "\($0.status.code): \(duration.write($0.duration))" }
        return "{\((named + (rest.map { ["other: \($0)"] } ?? [])).joined(separator: ", "))}"
    }

    /// Reads a status of a map.
    private static func status(
        _ text: String, of name: String, at position: Position, _ refusal: (Status) -> String?,
        _ reader: inout Reader
    ) -> Status? {
        guard isDigits(text), text.utf8.count == 3, let code = UInt16(text), code >= 100 else {
            reader.note(
                position,
                "`\(name)` has `\(Spelling.shown(text))`, which is not a status; use one such as `404`, or `other` for the rest"
            )
            return nil
        }
        let status = Status(code)
        if let refusal = refusal(status) { reader.note(position, "`\(name)` has \(code), which \(refusal)") }
        return status
    }

    private static var isPart: String { "is a part of a 200 response; use 200" }
    private static var isForOneRequest: String { "is about one request and answers no other one; remove it" }

    @Sendable private static func refusalOfDefault(_ status: Status) -> String? {
        if status == .partialContent { return isPart }
        if status.concernsRequest { return isForOneRequest }
        if StatusLifetimes.mayHave(status) { return nil }
        return "is stored only if the response itself states a lifetime (RFC 9111 section 3); "
            + "remove it, or have the upstream send Cache-Control"
    }

    @Sendable private static func refusalOfReplacement(_ status: Status) -> String? {
        if status == .partialContent { return isPart }
        if StatusLifetimes.mayReplace(status) { return nil }
        return status == .notModified
            ? "only confirms a stored response; use the status of that one, such as 200"
            : status.isInformational ? "is no final response; remove it" : isForOneRequest
    }
}

extension ValueSyntax<[ByteSlice]> {
    /// Names of request fields for a key. Whether a key may contain them is checked when the whole file has been read.
    static var keyFields: Self {
        let names = Self.list(of: .fieldName, atMost: KeyPolicy.mostNames)
        return ValueSyntax(range: names.range, write: names.write) { node, name, reader in
            let nodes = node.elements
            for node in nodes {
                // A text that is not a name gets its note in `names.read`.
                if let field = node.string, case .value = ScalarSyntax<String>.fieldName.parse(field) {
                    reader.refer(toKeyField: field, at: node.position)
                }
            }
            return names.read(node, name, &reader)
        }
    }
}

extension ValueSyntax<KeyPolicy.Query> {
    /// `all`, `none`, `{keep: [a, b]}` or `{drop: [c, d_*]}`.
    static var queryPolicy: Self {
        let names = ValueSyntax<[ParameterPattern]>.list(of: .parameterPattern, atLeast: 1)
        return ValueSyntax(
            range: "all, none, {keep: [a, b]}, {drop: [c, d_*]}",
            write: { policy in
                switch policy {
                case .asSent: ["all"]
                case .dropped: ["none"]
                case .keeping(let kept): ["{keep: \(names.write(kept).joined())}"]
                case .dropping(let dropped): ["{drop: \(names.write(dropped).joined())}"]
                }
            }
        ) { node, name, reader in
            if case .scalar(let text) = node {
                if text.string == "all" { return .asSent }
                if text.string == "none" { return .dropped }
            } else if case .mapping(let mapping) = node, mapping.pairs.count == 1, let pair = mapping.pairs.first {
                if pair.key.string == "keep" {
                    return names.read(pair.value, "keep", &reader).map { .keeping($0) }
                }
                if pair.key.string == "drop" {
                    return names.read(pair.value, "drop", &reader).map { .dropping($0) }
                }
            }
            reader.note(node.position, "`\(name)` is `all`, `none`, `{keep: [a, b]}` or `{drop: [c]}`")
            return nil
        }
    }
}

/// `text` as a scalar of YAML, in quotes if it would mean something else without them, also within a list in brackets.
func quoted(_ text: String) -> String {
    let isPlain =
        !text.isEmpty && !text.unicodeScalars.contains(where: \.isControl)
        && !"*&!%@`\"'#?|>-{}[],: ".contains(text.first ?? " ") && text.last != " " && text.last != ":"
        && !text.contains { ",[]{}".contains($0) } && !text.contains(": ") && !text.contains(" #")
        && !["~", "null"].contains(text)
    return isPlain ? text : "\"\(text.unicodeScalars.map(\.escaped).joined())\""
}

extension Unicode.Scalar {
    fileprivate var isControl: Bool { value < 0x20 || value == 0x7F }

    /// The character as it stands between double quotes.
    fileprivate var escaped: String {
        switch self {
        case "\\", "\"": "\\\(self)"
        case "\n": "\\n"
        case _ where isControl: "\\x\(value < 16 ? "0" : "")\(String(value, radix: 16))"
        default: String(self)
        }
    }
}

extension Substring {
    fileprivate var trimmingSpaces: Substring {
        let start = drop { $0 == " " }
        return start.lastIndex { $0 != " " }.map { start[...$0] } ?? ""
    }
}
