public import Bytes

/// Some fields say how a request came before it came here (`X-Forwarded-Host`, …), who sent it (`X-Real-IP`, …), or
/// what is meant by it (`X-HTTP-Method-Override`, …). Origins make links, redirects and paths of them, and others get
/// the response: so only those go on that are part of the route's cache key; who sent it may also be told by a proxy
/// that is trusted. Which these are stands here, immutable, in an object, so that nothing of it is copied for a
/// request.
public final class KeyedForwarding: Sendable {
    /// The known ones among all those fields.
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
    /// - Parameters:
    ///   - keepsMethod: whether the client may name another method: no other client gets the response.
    ///   - keepsSender: whether it may name another client.
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

    /// Why the field with `name`, which is not a known one and which `drops` says does not go on, does not.
    static func reason(toDrop name: Span<UInt8>) -> RemovedField.Reason {
        subject(name) == .sender ? .untrusted : .notInKey
    }

    /// Whether the field with `name` says who sent the request.
    static func namesSender(_ name: Span<UInt8>) -> Bool { subject(name) == .sender }

    /// What such a field is about.
    private enum Subject {
        /// Scheme, host or path.
        case origin
        case sender
        case method
    }

    /// Of `X-Forwarded-…`, `X-Original-…` and those that say more, under any alias of their names.
    private static func subject(_ name: Span<UInt8>) -> Subject? {
        guard name.count >= 5 else { return nil }
        switch name[0] | 0x20 {
        case UInt8(ascii: "x"), UInt8(ascii: "f"), UInt8(ascii: "c"), UInt8(ascii: "w"), UInt8(ascii: "p"),
            UInt8(ascii: "t"):
            break
        default: return nil // As nearly all do.
        }
        if name.count > 12, name.beginsLike("x-forwarded-") { return .origin }
        // `X-Original-For`, `X-Original-Forwarded-For`.
        if name.count > 11, name.beginsLike("x-original-") {
            return name.extracting(last: 4).beginsLike("-for") ? .sender : .origin
        }
        return other(name) ?? (namesAddress(name) ? .sender : nil)
    }

    /// What some servers take for the client's address in place of the peer's. `X-Forwarded-For` is no such field: each
    /// proxy adds to it.
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

    /// What some servers take for the scheme, the host, the path or the method in place of the request's. The length
    /// leaves few to compare with.
    private static func other(_ name: Span<UInt8>) -> Subject? {
        switch name.count {
        // Programs run by CGI find it as HTTP_PROXY in their environment, and make their own requests through what it
        // names.
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
