public import Bytes

/// Some fields state the scheme, host or path of the original request (`X-Forwarded-Host`, …), its sender (`X-Real-IP`,
/// …) or another method (`X-HTTP-Method-Override`, …). Origins derive links, redirects and paths from them, and other
/// clients get the response. So only fields in the route's cache key are forwarded; a trusted proxy may also state the
/// sender. This immutable object holds the key's fields of a route, so that a request copies none of them.
public final class KeyedForwarding: Sendable {
    /// The fields of this kind that are known fields.
    static let known = FieldSet(.forwarded) | .xForwardedProto | .xForwardedHost

    /// The fields of `known` that are in the key.
    let fields: FieldSet
    private let others: [ByteSlice]

    /// - Parameter names: the field names in the key, in any case.
    public init(_ names: [ByteSlice]) {
        var fields: FieldSet = []
        for name in names { fields.insert(KnownField.recognise(name.span)) }
        self.fields = fields.intersection(Self.known)
        others = names.filter { Self.subject($0.span) != nil }
    }

    /// Whether the field with `name`, which is not a known field, is of that kind and not in the key.
    /// - Parameters:
    ///   - keepsMethod: whether the client may override the method: no other client gets the response.
    ///   - keepsSender: whether the request may state its sender.
    func drops(_ name: Span<UInt8>, keepsMethod: Bool, keepsSender: Bool) -> Bool {
        switch Self.subject(name) {
        case nil: return false
        case .origin: break
        case .sender: if keepsSender { return false }
        case .method: if keepsMethod { return false }
        }
        for other in others where other.span.isEqualIgnoringCase(to: name) { return false }
        return true
    }

    /// Whether `field`, with this name, is of that kind, in a key or not.
    static func isClientClaim(_ name: Span<UInt8>, _ field: KnownField) -> Bool {
        field == .other ? subject(name) != nil : known.contains(field)
    }

    /// Whether a field of the request overrides the method of the request line, as some servers permit.
    public static func namesMethod(_ request: FieldView) -> Bool {
        for index in 0..<request.lines.count where request.lines[index].field == .other {
            if subject(request.name(at: index)) == .method { return true }
        }
        return false
    }

    /// The reason for dropping the field with `name`, which is not a known field and for which `drops` is true.
    static func reason(toDrop name: Span<UInt8>) -> RemovedField.Reason {
        subject(name) == .sender ? .untrusted : .notInKey
    }

    /// Whether the field with `name` states the sender of the request.
    static func namesSender(_ name: Span<UInt8>) -> Bool { subject(name) == .sender }

    /// The part of a request that such a field describes.
    private enum Subject {
        /// Scheme, host or path.
        case origin
        case sender
        case method
    }

    /// The subject of `X-Forwarded-…`, `X-Original-…` and the names in `other` and `namesAddress`, under any alias.
    private static func subject(_ name: Span<UInt8>) -> Subject? {
        guard name.count >= 5 else { return nil }
        switch name[0] | 0x20 {
        case UInt8(ascii: "x"), UInt8(ascii: "f"), UInt8(ascii: "c"), UInt8(ascii: "w"), UInt8(ascii: "p"),
            UInt8(ascii: "t"):
            break
        default: return nil // The usual case.
        }
        if name.count > 12, name.beginsLike("x-forwarded-") { return .origin }
        // `X-Original-For`, `X-Original-Forwarded-For`.
        if name.count > 11, name.beginsLike("x-original-") {
            return name.extracting(last: 4).beginsLike("-for") ? .sender : .origin
        }
        return other(name) ?? (namesAddress(name) ? .sender : nil)
    }

    /// Whether some servers take this field for the client's address in place of the peer's. `X-Forwarded-For` is not
    /// among them: each proxy appends to it.
    private static func namesAddress(_ name: Span<UInt8>) -> Bool {
        switch name.count {
        case 9: name.beginsLike("x-real-ip") || name.beginsLike("client-ip")
        case 11: name.beginsLike("x-client-ip") || name.beginsLike("x-remote-ip")
        case 13:
            name.beginsLike("x-remote-addr") || name.beginsLike("fly-client-ip") || name.beginsLike("forwarded-for")
        case 14: name.beginsLike("true-client-ip") || name.beginsLike("x-proxyuser-ip")
        case 15: name.beginsLike("proxy-client-ip")
        case 16:
            name.beginsLike("cf-connecting-ip") || name.beginsLike("fastly-client-ip")
                || name.beginsLike("x-originating-ip")
                || name.beginsLike("x-azure-clientip")
        case 18: name.beginsLike("cf-connecting-ipv6") || name.beginsLike("wl-proxy-client-ip")
        case 19: name.beginsLike("x-cluster-client-ip") || name.beginsLike("x-appengine-user-ip")
        case 24: name.beginsLike("x-envoy-external-address")
        default: false
        }
    }

    /// The subject of a field that some servers take for the scheme, the host, the path or the method in place of the
    /// request's own. The length leaves few names to compare with.
    private static func other(_ name: Span<UInt8>) -> Subject? {
        switch name.count {
        // CGI passes this field as HTTP_PROXY in the environment, and programs then send their own requests through the
        // proxy that it names.
        case 5: if name.beginsLike("proxy") { return .origin }
        case 6: if name.beginsLike("x-host") { return .origin }
        case 8: if name.beginsLike("x-scheme") { return .origin }
        case 9: if name.beginsLike("x-arr-ssl") { return .origin }
        case 10: if name.beginsLike("cf-visitor") { return .origin }
        case 11:
            if name.beginsLike("x-forwarded") || name.beginsLike("x-real-host") || name.beginsLike("x-proxyhost")
                || name.beginsLike("x-proxyport")
            {
                return .origin
            }
        case 12: if name.beginsLike("x-url-scheme") || name.beginsLike("wl-proxy-ssl") { return .origin }
        case 13:
            if name.beginsLike("x-script-name") || name.beginsLike("x-rewrite-url") || name.beginsLike("x-proxyscheme")
            {
                return .origin
            }
            if name.beginsLike("x-http-method") { return .method }
        case 15: if name.beginsLike("x-forward-proto") || name.beginsLike("front-end-https") { return .origin }
        case 17: if name.beginsLike("x-method-override") { return .method }
        case 18: if name.beginsLike("x-proxycontextpath") { return .origin }
        case 20:
            if name.beginsLike("x-http-host-override") || name.beginsLike("x-http-path-override")
                || name.beginsLike("x-waws-unencoded-url")
            {
                return .origin
            }
        case 21:
            if name.beginsLike("x-http-destinationurl") || name.beginsLike("x-envoy-original-path") { return .origin }
        case 22: if name.beginsLike("x-http-method-override") { return .method }
        case 26: if name.beginsLike("cloudfront-forwarded-proto") { return .origin }
        default: break
        }
        return nil
    }
}
