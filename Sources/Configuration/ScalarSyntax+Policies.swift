import Bytes
import HTTPSemantics

/// Values for the caching rules, which use whole seconds and compare bytes.
extension ScalarSyntax where Value == ByteSlice {
    static var cookieName: Self { bytes(of: .cookieName) }
    static var fieldName: Self { bytes(of: .fieldName) }

    /// The name of a response field whose values name tags.
    static var tagField: Self {
        let names = fieldName
        return ScalarSyntax(names.form, write: names.write) { text in
            names.parse(text).then { name in reason(againstTagsIn: name).map { .refused($0) } ?? .value(name) }
        }
    }

    private static func reason(againstTagsIn name: ByteSlice) -> String? {
        let remedy = "name a field such as `surrogate-key`"
        switch KnownField.recognise(name.span) {
        case .cacheGroups: return "it names tags on every route; remove it here"
        case .setCookie: return "each of its values is for one client; \(remedy)"
        case .connection, .keepAlive, .te, .trailer, .upgrade, .http2Settings, .transferEncoding:
            return "it is for one connection only, so no stored response has it; \(remedy)"
        case _ where String(name).hasPrefix("proxy-"):
            return "it is for one connection only, so no stored response has it; \(remedy)"
        // An operator may purge by the values of these.
        case .other, .contentType, .contentLanguage, .server: return nil
        default: return "its values are no tags; \(remedy)"
        }
    }

    /// The tag of a language that a look-up may find (RFC 4647 §3.4): subtags of letters and digits, of which the last
    /// is no single one.
    static var languageTag: Self {
        ScalarSyntax("the tag of a language such as `en` or `pt-BR`", write: { String($0) }) { text in
            if text == "*" { return .refused("`*` is no language; name each, or leave the key out") }
            let subtags = text.split(separator: "-", omittingEmptySubsequences: false)
            let isTag = subtags.allSatisfy { subtag in
                (1...8).contains(subtag.utf8.count)
                    && subtag.utf8.allSatisfy {
                        (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0)
                            || (UInt8(ascii: "a")...UInt8(ascii: "z")).contains($0 | 0x20)
                    }
            }
            guard isTag, subtags.first?.utf8.count ?? 0 > 1, subtags.last?.utf8.count ?? 0 > 1, text.utf8.count <= 35
            else { return .malformed }
            return .value(ByteSlice(text))
        }
    }

    fileprivate static func bytes(of text: ScalarSyntax<String>) -> Self {
        text.mapped(to: { ByteSlice($0) }, from: { String($0) })
    }
}

extension ScalarSyntax where Value == CookiePattern {
    /// The name of a cookie, or a prefix of names followed by `*`.
    static var cookiePattern: Self {
        pattern(
            "the name of a cookie such as `sessionid`, or the beginning of names such as `wordpress_logged_in_*`",
            of: .cookieName, every: .value(CookiePattern(.empty, isPrefix: true)),
            to: { CookiePattern($0, isPrefix: $1) }, from: { ($0.name, $0.isPrefix) })
    }
}

extension ScalarSyntax where Value == ParameterPattern {
    /// The name of a query parameter, or a prefix of names followed by `*`.
    static var parameterPattern: Self {
        pattern(
            "the name of a query parameter such as `page`, or the beginning of names such as `utm_*`",
            of: .bytes(of: .parameter),
            every: .refused("`*` alone is every parameter; write `query: none` to drop all, `query: all` to keep them"),
            to: { ParameterPattern($0, isPrefix: $1) }, from: { ($0.name, $0.isPrefix) })
    }
}

extension ScalarSyntax {
    /// A name, or a prefix of names followed by `*`.
    /// - Parameter every: the result for `*` alone.
    fileprivate static func pattern(
        _ form: String, of names: ScalarSyntax<ByteSlice>, every: Parsed,
        to make: @escaping @Sendable (_ name: ByteSlice, _ isPrefix: Bool) -> Value,
        from parts: @escaping @Sendable (Value) -> (name: ByteSlice, isPrefix: Bool)
    ) -> Self {
        ScalarSyntax(form, write: { String(parts($0).name) + (parts($0).isPrefix ? "*" : "") }) { text in
            let isPrefix = text.hasSuffix("*")
            let name = isPrefix ? String(text.dropLast()) : text
            guard !name.contains("*") else {
                return .refused("`*` is only allowed at the end of a name")
            }
            if name.isEmpty, isPrefix { return every }
            return names.parse(name).then { .value(make($0, isPrefix)) }
        }
    }
}

extension ScalarSyntax where Value == Duration {
    /// A lifetime of up to a year; fractions of a second are allowed.
    static var lifetime: Self { duration(.zero ... .seconds(365 * 86_400)) }
}

extension ScalarSyntax where Value == UInt32 {
    /// A percentage: `10%`.
    static var share: Self {
        ScalarSyntax<Int>.percent(0...100).mapped(to: { UInt32(clamping: $0) }, from: { Int($0) })
    }

    /// A duration of whole seconds, since delta-seconds in messages have no fractions (RFC 9111 §1.2.2).
    static var secondsUpToAYear: Self {
        let durations = ScalarSyntax<Duration>.lifetime
        return ScalarSyntax(
            "a duration in whole seconds such as `30s` or `5m`", range: durations.range,
            write: { durations.write(.seconds($0)) }
        ) { text in
            durations.parse(text).then {
                $0.components.attoseconds == 0 ? .value(UInt32(clamping: $0.components.seconds)) : .malformed
            }
        }
    }
}

extension ScalarSyntax where Value == RequestDirectivePolicy {
    static var requestDirectives: Self { oneOf([("honour", .honoursAll), ("ignore", .protectsOrigin)]) }
}
