public import Bytes

/// Some fields say how a request came before it came here (`X-Forwarded-Host`, …), or what is meant by it (`X-HTTP-Method-Override`, …).
/// Origins make links, redirects and paths of them, and others get the response: so only those go on that are part of the route's cache key.
/// Which these are stands here, immutable, in an object, so that nothing of it is copied for a request.
public final class KeyedForwarding: Sendable {
    /// Of all those fields the ones that are known.
    static let known = FieldSet(.forwarded, .xForwardedProto, .xForwardedHost)

    /// The known ones that are in the key.
    let fields: FieldSet
    private let others: [ByteSlice]

    /// - Parameter names: of the fields in the key, in any case.
    public init(_ names: [ByteSlice]) {
        var fields: FieldSet = []
        for name in names { fields.insert(KnownField.recognise(name.span)) }
        self.fields = fields.intersection(Self.known)
        others = names.filter { Self.subject($0.span) != nil }
    }

    /// Whether the field with `name`, which is not a known one, is of that kind and not in the key.
    /// - Parameter keepsMethod: whether the client may name another method: no other client gets the response.
    func drops(_ name: Span<UInt8>, keepsMethod: Bool) -> Bool {
        guard let subject = Self.subject(name), subject != .method || !keepsMethod else { return false }
        for other in others where other.span.isEqualIgnoringCase(to: name) { return false }
        return true
    }

    /// Whether `field`, of that name, is of that kind, in a key or not.
    static func isClientsWord(_ name: Span<UInt8>, _ field: KnownField) -> Bool {
        field == .other ? subject(name) != nil : known.contains(field)
    }

    /// Whether a field of the request names another method than its first line, as some servers take it.
    public static func namesMethod(_ request: FieldView) -> Bool {
        for index in 0..<request.lines.count where request.lines[index].field == .other {
            if subject(request.name(at: index)) == .method { return true }
        }
        return false
    }

    /// What such a field is about.
    private enum Subject {
        case origin
        case method
    }

    private static let prefix = Array("x-forwarded-".utf8)
    /// What some servers take for the scheme, the host or the path in place of the request's.
    private static let names = [
        "x-forwarded", "x-host", "x-scheme", "x-url-scheme", "front-end-https", "x-original-url", "x-original-host", "x-rewrite-url",
        "x-http-host-override",
    ].map { Array($0.utf8) }
    private static let methodNames = ["x-http-method-override", "x-method-override", "x-http-method"].map { Array($0.utf8) }

    /// Of `X-Forwarded-…` and those that say more; with underscores too, since both are one to CGI and its like.
    private static func subject(_ name: Span<UInt8>) -> Subject? {
        // As nearly none does.
        guard name.count >= 6, name[0] | 0x20 == UInt8(ascii: "x") || name[0] | 0x20 == UInt8(ascii: "f") else { return nil }
        if name.count > prefix.count, begins(name, with: prefix) { return .origin }
        if names.contains(where: { $0.count == name.count && begins(name, with: $0) }) { return .origin }
        return methodNames.contains { $0.count == name.count && begins(name, with: $0) } ? .method : nil
    }

    private static func begins(_ name: Span<UInt8>, with wanted: [UInt8]) -> Bool {
        for index in wanted.indices {
            let byte = name[index] == UInt8(ascii: "_") ? UInt8(ascii: "-") : name[index].lowercasedASCII
            guard byte == wanted[index] else { return false }
        }
        return true
    }
}
