import Bytes
import HTTPSemantics
import Routing
import YAML

/// The keys of a route's own answers, and of the pages that replace an origin's error pages.
enum AnswerKeys {
    static let redirect: ValueSyntax<RedirectSettings?> = givenOnly(
        ValueSyntax<RedirectSettings?>.map("`redirect`", from: RedirectSettings(), redirectKeys, or: nothing))

    static let respond: ValueSyntax<RespondSettings?> = {
        let map = givenOnly(
            ValueSyntax<RespondSettings?>.map("`respond`", from: RespondSettings(), respondKeys, or: nothing))
        return ValueSyntax(write: map.write) { node, name, reader in
            guard let respond = map.read(node, name, &reader) else { return nil }
            if let body = node["body"], let file = node["file"] {
                reader.note(
                    max(body.position, file.position), "`respond` has `body` and `file`; remove one of them")
            } else if let content = node["body"] ?? node["file"], let status = respond?.status, status.hasNoContent {
                reader.note(
                    content.position,
                    "a response with status \(status.code) has no content; remove this, or choose another `status`")
            }
            return respond
        }
    }()

    private static let nothing = "none"

    private static let redirectKeys: [Key<RedirectSettings>] = [
        Key("to", \.target, given(ScalarSyntax<Template>.redirectTarget), isRequired: true, "The value of Location."),
        Key("status", \.status, .redirectStatus, "The status."),
    ]

    private static let respondKeys: [Key<RespondSettings>] = [
        Key("status", \.status, .respondStatus, isRequired: true, "The status."),
        Key("body", \.body, given(ScalarSyntax<String>.content), "The content."),
        Key("file", \.file, given(ScalarSyntax<NamedFile>.page), "A file with the content."),
        Key("type", \.type, given(ScalarSyntax<String>.mediaType), "The media type of the content."),
    ]

    /// A value that has no word for `nil`: a file that does not set it has no such key.
    private static func given<Value>(_ scalar: ScalarSyntax<Value>) -> ValueSyntax<Value?> {
        let syntax = ValueSyntax<Value>(scalar)
        return ValueSyntax(range: syntax.range, write: { $0.map(syntax.write) ?? [] }) { node, name, reader in
            syntax.read(node, name, &reader).map { .some($0) }
        }
    }

    /// The same syntax, but that nothing is written for `nil`: a route has at most one such key.
    private static func givenOnly<Value>(_ syntax: ValueSyntax<Value?>) -> ValueSyntax<Value?> {
        ValueSyntax(range: syntax.range, write: { $0 == nil ? [] : syntax.write($0) }, read: syntax.read)
    }
}

extension ValueSyntax<[ErrorPageSettings]> {
    /// Files by status: `{502: /etc/coalesced/502.html}`.
    static var errorPages: Self {
        let (statuses, files) = (ScalarSyntax<Status>.errorStatus, ValueSyntax<NamedFile>(.page))
        return ValueSyntax(
            range: "{STATUS: /file, …}, statuses from 400 to 599",
            write: { pages in
                let written = pages.map { "\(statuses.write($0.status)): \(files.write($0.file).joined())" }
                return ["{\(written.joined(separator: ", "))}"]
            }
        ) { node, name, reader in
            guard case .mapping(let mapping) = node else {
                reader.note(
                    node.position,
                    "`\(name)` is a file for each status, `{502: /etc/coalesced/502.html}`, not \(node.kind)")
                return nil
            }
            var pages: [ErrorPageSettings] = []
            for entry in reader.entries(of: mapping) {
                do throws(ValueMistake) {
                    let status = try statuses.value(of: entry.name)
                    if let file = files.read(entry.value, entry.name, &reader) {
                        pages.append(ErrorPageSettings(status, file))
                    }
                } catch {
                    reader.note(entry.position, "`\(name)` has `\(Spelling.shown(entry.name))`: \(error)")
                }
            }
            return pages
        }
    }
}

extension ScalarSyntax where Value == Status {
    /// The redirections that a client follows by itself (RFC 9110 §15.4).
    static var redirectStatus: Self { oneOf([301, 302, 303, 307, 308].map { ("\($0)", Status($0)) }) }

    /// A status that a response from the configuration may have.
    static var respondStatus: Self {
        status(200...599) { status in
            switch status.code {
            case 206, 416: "the proxy answers ranges only of stored responses; use 200"
            case 304: "it confirms what a client has stored, and this response has no validator; use 200"
            case 300..<400: "use `redirect` for a response that leads elsewhere"
            default: nil
            }
        }
    }

    static var errorStatus: Self { status(400...599) { _ in nil } }

    private static func status(_ range: ClosedRange<UInt16>, except reason: @escaping @Sendable (Status) -> String?)
        -> Self
    {
        let allowed = "\(range.lowerBound) to \(range.upperBound)"
        return ScalarSyntax("a status", range: allowed, write: { "\($0.code)" }) { text in
            guard isDigits(text) else { return .malformed }
            guard text.utf8.count == 3, let code = UInt16(text), range.contains(code) else { return .outOfRange }
            return reason(Status(code)).map { Parsed.refused($0) } ?? .value(Status(code))
        }
    }
}

extension ScalarSyntax where Value == String {
    static var content: Self { ScalarSyntax("a text", write: { $0 }) { .value($0) } }

    /// The value of `Content-Type` (RFC 9110 §8.3).
    static var mediaType: Self {
        ScalarSyntax("a media type such as `application/json` or `text/html; charset=utf-8`", write: { $0 }) { text in
            let type = text.prefix { $0 != ";" }
            let parts = type.split(separator: "/", omittingEmptySubsequences: false)
            let isValue = text.utf8.allSatisfy { $0 >= 0x20 && $0 < 0x7F } && !text.hasSuffix(" ")
            return parts.count == 2 && parts.allSatisfy { HostSyntax.isToken($0) } && isValue
                ? .value(text) : .malformed
        }
    }
}

extension ScalarSyntax where Value == NamedFile {
    /// The path of a file whose content is sent to clients.
    static var page: Self {
        file(such: "/etc/coalesced/502.html")
    }
}

extension ScalarSyntax where Value == ClientScheme {
    static var scheme: Self { oneOf(ClientScheme.allCases.map { ("\($0.name)", $0) }) }
}

extension ScalarSyntax where Value == Template {
    /// The value of `Location` in a redirect: a URL, or a path on the same host.
    static var redirectTarget: Self {
        let syntax = template(
            "a URL such as `https://www.example.com${target}`, or a path such as `/new/`",
            allowing: Template.Variable.ofRequests)
        return ScalarSyntax(syntax.form, write: syntax.write) { text in
            if text.isEmpty { return .refused("empty; give \(syntax.form)") }
            return syntax.parse(text)
                .then { parsed in reason(againstTarget: text).map { Parsed.refused($0) } ?? .value(parsed) }
        }
    }

    /// Why clients may not be sent to `text`: a client could choose the host that others are led to, by a link.
    private static func reason(againstTarget text: String) -> String? {
        if text.hasPrefix("/"), !text.hasPrefix("//") {
            return text.hasPrefix("/${")
                ? "`/` and a variable may begin with `//`, and then name a host; write the beginning of the path, as in `/new${target}`"
                : nil
        }
        guard let scheme = ["http://", "https://", "${scheme}://"].first(where: { text.hasPrefix($0) }) else {
            return "it must begin with `https://`, `http://`, `${scheme}://` or, for the same host, with `/`"
        }
        var rest = text.dropFirst(scheme.count)
        if rest.isEmpty || "/?#".contains(rest.first ?? "/") || isPath(rest) {
            return "the host is missing; write one such as `www.example.com`, or `${host}`"
        }
        while let first = rest.first, !"/?#".contains(first), !isPath(rest) {
            if rest.hasPrefix("${host}") {
                rest = rest.dropFirst("${host}".count)
            } else if rest.hasPrefix("${") {
                let variable = "\(rest.prefix { $0 != "}" })}"
                return "`\(variable)` would be a part of the host; put a `/` before it"
            } else {
                rest.removeFirst()
            }
        }
        return nil
    }

    /// Whether a path begins here: these two variables begin with a slash.
    private static func isPath(_ text: Substring) -> Bool { text.hasPrefix("${target}") || text.hasPrefix("${path}") }
}
