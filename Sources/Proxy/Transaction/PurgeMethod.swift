import Bytes
import HTTPSemantics
import Routing

/// A client's `PURGE`, understood as the plug-ins that send it mean it. Varnish's configuration gives the method its
/// meaning elsewhere, so each plug-in comes with rules of its own:
///
/// | sent by | request | purged |
/// | --- | --- | --- |
/// | all | `PURGE /page` | this URL, in both schemes |
/// | Proxy Cache Purge, WP Rocket | `PURGE /blog/.*`, `X-Purge-Method: regex` | everything below `/blog/` on this host |
/// | W3 Total Cache | `PURGE /.*` | everything on this host |
/// | Proxy Cache Purge | `X-Purge-Method: tags`, `X-Cache-Tags-Pattern: p-1\|t-2` | these tags |
/// | Magento | `X-Magento-Tags-Pattern: ((^\|,)cat_p_1(,\|$))\|((^\|,)cat_p(,\|$))` | these tags |
/// | Magento | `X-Magento-Tags-Pattern: .*` | everything |
/// | Varnish's xkey, Fastly, Drupal | `xkey-purge: a b`, `Surrogate-Key: a b`, `Cache-Tags: a b` | these tags |
///
/// There are no other regular expressions: a pattern that is not in the table is refused, since a purge of something else
/// would look like success.
struct PurgeMethod {
    let request: PurgeRequest
    /// What is purged, for the log.
    let summary: String

    private static let name: StaticString = "PURGE"
    /// The fields whose value is tags; those with a pattern are read apart.
    private static let tagFields = TagFields(
        [
            "cache-tag", "surrogate-key", "xkey", "xkey-purge", xkeySoft, "cache-tags", "purge-cache-tags",
        ].map { ByteSlice($0) })
    private static let xkeySoft = "xkey-softpurge"

    /// Whether a request has this method.
    static func isMethod(of head: RequestHead, _ fields: FieldView) -> Bool {
        head.method == .other && fields.bytes.extracting(head.methodRange.range).isEqual(to: name)
    }

    /// - Throws: the response to a request that is not understood; then nothing is purged.
    init(_ head: RequestHead, _ fields: FieldView) throws(SyntheticResponse) {
        var request = PurgeRequest()
        request.isSoft = try Self.isSoft(fields)
        let lines: [String]
        if let tags = try Self.tags(in: fields) {
            request.tags = tags
            request.isOfEverything = tags.isEmpty
            lines = tags.isEmpty ? ["all"] : tags.map { "tag \(String($0))" }
        } else {
            lines = [try request.add(head, fields)]
        }
        self.request = request
        summary = "\(PurgeRequest.summary(of: lines)) (PURGE)"
    }

    private static func isSoft(_ fields: FieldView) throws(SyntheticResponse) -> Bool {
        var isSoft = !fields.values(of: xkeySoft).isEmpty
        for value in fields.values(of: "soft-purge") {
            switch value {
            case "1": isSoft = true
            case "0": break
            default: throw mistake("Soft-Purge is 1 or 0.")
            }
        }
        return isSoft
    }

    // MARK: Tags

    /// The tags that the request names; none if it is for everything, `nil` if it is for a URL.
    private static func tags(in fields: FieldView) throws(SyntheticResponse) -> [ByteSlice]? {
        let (magento, wordpress) = (
            fields.values(of: "x-magento-tags-pattern"), fields.values(of: "x-cache-tags-pattern")
        )
        guard tagFields.occur(in: fields) || !magento.isEmpty || !wordpress.isEmpty else { return nil }
        if magento.contains(".*") { return [] }
        var ranges: [Range<Int>] = []
        tagFields.forEachTag(in: fields) { ranges.append($0) }
        var tags = ranges.map { ByteSlice(copying: fields.bytes.extracting($0)) }
        for pattern in magento {
            guard let named = names(in: pattern, from: "((^|,)", to: "(,|$))") else {
                throw mistake(
                    "Of X-Magento-Tags-Pattern, only .* and tags such as ((^|,)cat_p_1(,|$)), with | between them, are understood; nothing was purged."
                )
            }
            tags += named
        }
        for pattern in wordpress {
            guard let named = names(in: pattern, from: "", to: "") else {
                throw mistake(
                    "Of X-Cache-Tags-Pattern, only the names of tags with | between them are understood; nothing was purged."
                )
            }
            tags += named
        }
        guard !tags.isEmpty else { throw mistake("The field for tags names none; nothing was purged.") }
        guard tags.count <= TagFields.mostTags, tags.allSatisfy({ $0.count <= TagFields.longestTag }) else {
            throw mistake("At most 1000 tags of 1024 bytes each can be purged at once; nothing was purged.")
        }
        return tags
    }

    /// The names in a pattern that is a list of alternatives, each a name between `start` and `end`; `nil` if it is
    /// anything else.
    private static func names(in pattern: String, from start: String, to end: String) -> [ByteSlice]? {
        var (names, rest) = ([ByteSlice](), pattern[...])
        while rest.hasPrefix(start) {
            rest = rest.dropFirst(start.count)
            let name = rest.prefix { !isSpecial($0) }
            rest = rest.dropFirst(name.count)
            guard !name.isEmpty, rest.hasPrefix(end) else { return nil }
            names.append(ByteSlice(String(name)))
            rest = rest.dropFirst(end.count)
            if rest.isEmpty { return names }
            guard rest.first == "|" else { return nil }
            rest = rest.dropFirst()
        }
        return nil
    }

    /// Whether a character has a meaning of its own in a regular expression or between tags. A dot is taken for a dot:
    /// the plug-ins do not escape it in names.
    fileprivate static func isSpecial(_ character: Character) -> Bool { "()[]{}|^$*+?\\, ".contains(character) }

    fileprivate static func mistake(_ explanation: StaticString) -> SyntheticResponse {
        SyntheticResponse(.badRequest, explanation)
    }
}

extension SyntheticResponse {
    /// The response to a `PURGE`.
    init(_ answer: PurgeAnswer) {
        switch answer {
        case .done(let text): self.init(purged: text)
        case .elsewhere:
            self.init(
                .serviceUnavailable, "Another program is taking the place of this one: send the purge again.")
        case .ending: self.init(.serviceUnavailable, "The program is ending.")
        }
    }
}

extension PurgeRequest {
    /// Adds the URL of a request, or everything below it.
    /// - Returns: a line for the log.
    fileprivate mutating func add(_ head: RequestHead, _ fields: FieldView) throws(SyntheticResponse) -> String {
        let (bytes, target) = (fields.bytes, head.target)
        let authority = String(bytes.extracting(head.authority.range))
        let path = String(bytes.extracting(target.path.range))
        let isPattern: Bool
        switch fields.values(of: "x-purge-method").last?.lowercased() {
        case nil, "default": isPattern = path.hasSuffix("/.*") && !target.hasQuery
        case "exact": isPattern = false
        case "regex": isPattern = true
        default:
            throw PurgeMethod.mistake(
                "X-Purge-Method is default, exact or regex, or tags with X-Cache-Tags-Pattern; nothing was purged.")
        }
        // The default port of https says which scheme is meant.
        var url = "\(authority.hasSuffix(":443") ? "https" : "http")://\(authority)"
        if isPattern {
            let folder = path.hasSuffix("/.*") ? String(path.dropLast(2)) : path
            guard folder.hasSuffix("/"), !folder.contains(where: PurgeMethod.isSpecial), !target.hasQuery else {
                throw PurgeMethod.mistake(
                    "Of regular expressions, only a path and .* behind it are understood, such as /.* or /blog/.*; nothing was purged."
                )
            }
            url += folder
        } else {
            url += path + (target.hasQuery ? "?\(String(bytes.extracting(target.query.range)))" : "")
        }
        guard target.form != .asterisk, !authority.isEmpty, let schemes = ParsedURL.ofEachScheme(url) else {
            throw PurgeMethod.mistake("This names no URL to purge.")
        }
        if isPattern { prefixes = schemes } else { urls = schemes }
        return isPattern ? "prefix \(url)" : url
    }
}

extension FieldView {
    /// The value of each line of a field.
    fileprivate func values(of name: String) -> [String] {
        let name = Array(name.utf8)
        var (values, start) = ([String](), 0)
        while let line = firstIndex(named: name.span, from: start) {
            values.append(String(value(at: line)))
            start = line + 1
        }
        return values
    }
}
