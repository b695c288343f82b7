import Bytes
import HTTPSemantics
import Routing
import YAML

/// The syntax of `request-headers` and `response-headers`: `{set: {a: b}, add: {c: d}, remove: [e]}`.
extension ValueSyntax<FieldChanges> {
    /// The messages that the changes are for.
    enum Message {
        case request, response
    }

    static func fieldChanges(of message: Message) -> Self {
        let value = ScalarSyntax<Template>.template(
            "the value of a field, such as `max-age=31536000` or `\"${client}\"`",
            allowing: message == .request ? Template.Variable.ofRequests : Template.Variable.allCases)
        let form = "{set: {a: b}, add: {c: d}, remove: [e]}"
        @Sendable func read(_ node: Node, _ name: String, _ reader: inout Reader) -> FieldChanges? {
            if node.isNothing { return FieldChanges() }
            guard case .mapping(let mapping) = node else {
                reader.note(node.position, "`\(name)` is not \(node.kind); give `\(form)`")
                return nil
            }
            var changes = FieldChanges()
            let reading = Reading(message: message, value: ValueSyntax<Template>(value))
            for (verb, position, node) in reader.entries(of: mapping) {
                switch verb {
                case "set": changes.set = reading.lines(node, verb, &reader)
                case "add": changes.add = reading.lines(node, verb, &reader)
                case "remove": changes.remove = reading.names(node, &reader)
                default: reader.note(position, advice(against: verb, in: name))
                }
            }
            let written = Set(changes.set.map { $0.name.lowercased() })
            for node in node["remove"]?.elements ?? [] {
                guard let name = node.string, written.contains(name.lowercased()) else { continue }
                reader.warn(
                    node.position,
                    "`remove: \(Spelling.shown(name))` has no effect, since `set` writes this field; take it out of one of the two"
                )
            }
            return changes
        }
        return ValueSyntax(
            range: form, write: { [text(of: $0, value)] },
            parse: { text throws(ValueMistake) in
                // The text of a variable is YAML, too.
                guard case .success(let document) = Document.parse(text), let root = document.root else {
                    throw ValueMistake(description: "not understood; give it as in the file: `\(form)`")
                }
                var reader = Reader(document)
                guard let changes = read(root, "the value", &reader), reader.notes.isEmpty else {
                    throw ValueMistake(description: reader.notes.map(\.message).joined(separator: "; "))
                }
                return changes
            }, read: read)
    }

    private static func text(of changes: FieldChanges, _ value: ScalarSyntax<Template>) -> String {
        func lines(_ lines: [FieldChanges.Line]) -> String? {
            let texts = lines.map { "\(quoted($0.name)): \(quoted(value.write($0.value)))" }
            return texts.isEmpty ? nil : "{\(texts.joined(separator: ", "))}"
        }
        let names = changes.remove.map { quoted($0) }.joined(separator: ", ")
        let parts = [
            lines(changes.set).map { "set: \($0)" }, lines(changes.add).map { "add: \($0)" },
            names.isEmpty ? nil : "remove: [\(names)]",
        ]
        return "{\(parts.compactMap { $0 }.joined(separator: ", "))}"
    }

    private static func advice(against verb: String, in name: String) -> String {
        let shown = Spelling.shown(verb)
        if let near = Spelling.nearest(to: verb, among: ["set", "add", "remove"]) {
            return "`\(shown)` is not known; did you mean `\(near)`?"
        }
        return
            "`\(shown)` is none of `set`, `add` and `remove`; for a field of this name write `\(name): {set: {\(shown): …}}`"
    }

    /// Reads one such map.
    private struct Reading {
        let message: Message
        let value: ValueSyntax<Template>

        func lines(_ node: Node, _ verb: String, _ reader: inout Reader) -> [FieldChanges.Line] {
            if node.isNothing { return [] }
            guard case .mapping(let mapping) = node else {
                reader.note(node.position, "`\(verb)` must be names and values (`{x-from: proxy}`), not \(node.kind)")
                return []
            }
            guard mapping.pairs.count <= FieldChanges.most else {
                reader.note(
                    node.position,
                    "`\(verb)` has \(mapping.pairs.count) entries; give at most \(FieldChanges.most)")
                return []
            }
            var (lines, known) = ([FieldChanges.Line](), Set<String>())
            for (name, position, node) in reader.entries(of: mapping) {
                let shown = Spelling.shown(name)
                guard HostSyntax.isToken(name) else {
                    reader.note(
                        position,
                        "`\(verb)` has `\(shown)`, which is not the name of a field; give one such as `x-from`")
                    continue
                }
                if let reason = Self.reason(against: name, in: message, isWritten: true) {
                    reader.note(position, "`\(verb): \(shown)`: \(reason)")
                } else if !known.insert(name.lowercased()).inserted {
                    reader.note(position, "`\(verb)` has `\(shown)` twice, in other letters; remove one of them")
                }
                if let value = value.read(node, name, &reader) { lines.append(FieldChanges.Line(name, value)) }
            }
            return lines
        }

        func names(_ node: Node, _ reader: inout Reader) -> [String] {
            if node.isNothing { return [] }
            for node in node.elements {
                guard let name = node.string, HostSyntax.isToken(name),
                    let reason = Self.reason(against: name, in: message, isWritten: false)
                else { continue }
                reader.note(node.position, "`remove: \(Spelling.shown(name))`: \(reason)")
            }
            return ValueSyntax<[String]>.list(of: .fieldName, atMost: FieldChanges.most)
                .read(node, "remove", &reader) ?? []
        }

        /// Why no rule may be about this field, with the remedy; `nil` if one may.
        private static func reason(against name: String, in message: Message, isWritten: Bool) -> String? {
            let field = KnownField.recognise(ByteSlice(name).span)
            switch (field, message) {
            case (.contentLength, _), (.transferEncoding, _):
                return "the proxy writes how long each message is; remove this"
            case (.proxyStatus, .response): return "turn `forwarding.proxy-status` on or off instead"
            case (.connection, _), (.keepAlive, _), (.te, _), (.trailer, _), (.upgrade, _), (.http2Settings, _):
                return "it is for one connection only, and the proxy writes its own; remove this"
            case _ where name.lowercased().hasPrefix("proxy-"):
                return "it is for one connection only, and the proxy writes its own; remove this"
            case (.via, _): return "set `forwarding.via` instead"
            case (_, .request): return reason(againstRequest: field, isWritten: isWritten)
            case (_, .response): return reason(againstResponse: field)
            }
        }

        private static func reason(againstRequest field: KnownField, isWritten: Bool) -> String? {
            switch field {
            case .host: "set `host` of the upstream instead"
            case .expect: "the proxy itself waits for the upstream's 100; remove this"
            case .range, .ifRange, .ifMatch, .ifNoneMatch, .ifModifiedSince, .ifUnmodifiedSince:
                "the proxy asks for what it has not stored, and the answer must be to its own question; remove this"
            case .maxForwards: "the proxy counts it down; remove this"
            case .cdnLoop: "the proxy sees in it whether an upstream leads back here; remove this"
            case .acceptEncoding where isWritten:
                "clients that do not accept these codings would get them too; only `remove` is possible"
            default: nil
            }
        }

        private static func reason(againstResponse field: KnownField) -> String? {
            switch field {
            case .age, .date: "every cache computes from it how old the response is; remove this"
            case .vary:
                "it says which requests the stored response answers; have the upstream send it, or name the field in `key.headers` of the route"
            case .etag, .lastModified:
                "every cache compares it to know whether it has the same bytes; have the upstream send it"
            case .contentEncoding, .contentRange, .acceptRanges, .contentDigest, .contentMD5:
                "it describes the bytes of the body, which no rule changes; have the upstream send it"
            case .cacheStatus: "turn `forwarding.cache-status` on or off instead"
            default: nil
            }
        }
    }
}
