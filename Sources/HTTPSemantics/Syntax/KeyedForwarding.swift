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

    private static let (forwarded, original): (StaticString, StaticString) = ("x-forwarded-", "x-original-")
    /// What some servers take for the scheme, the host or the path in place of the request's.
    private static let names: [StaticString] = [
        "x-forwarded", "x-forward-proto", "x-host", "x-real-host", "x-scheme", "x-url-scheme", "x-script-name", "x-rewrite-url",
        "x-http-host-override", "x-http-path-override", "x-http-destinationurl", "x-envoy-original-path", "x-waws-unencoded-url", "x-arr-ssl",
        "x-proxyscheme", "x-proxyhost", "x-proxyport", "x-proxycontextpath", "front-end-https", "cf-visitor", "cloudfront-forwarded-proto", "wl-proxy-ssl",
    ]
    private static let methodNames: [StaticString] = ["x-http-method-override", "x-method-override", "x-http-method"]

    /// Of `X-Forwarded-…`, `X-Original-…` and those that say more, under any alias of their names.
    private static func subject(_ name: Span<UInt8>) -> Subject? {
        guard name.count >= 6 else { return nil }
        switch name[0] | 0x20 {
        case UInt8(ascii: "x"), UInt8(ascii: "f"), UInt8(ascii: "c"), UInt8(ascii: "w"): break
        default: return nil // As nearly all do.
        }
        if name.count > forwarded.utf8CodeUnitCount, name.beginsLike(forwarded.bytes) { return .origin }
        // Whom a request is from is another matter: `X-Original-For`, `X-Original-Forwarded-For`.
        if name.count > original.utf8CodeUnitCount, name.beginsLike(original.bytes) {
            return name.extracting(last: 4).isAlias(of: ("-for" as StaticString).bytes) ? nil : .origin
        }
        for known in names where name.isAlias(of: known.bytes) { return .origin }
        for known in methodNames where name.isAlias(of: known.bytes) { return .method }
        return nil
    }
}
