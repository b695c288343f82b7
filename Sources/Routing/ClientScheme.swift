import Bytes
public import HTTPSemantics

/// The scheme of the URL that the client requested (RFC 9110 §4.2): `https` if this proxy, or one in front of it,
/// terminated TLS. Part of the key, so that neither scheme gets a response that the origin made for the other.
public enum ClientScheme: Sendable, CaseIterable {
    case http, https

    /// The scheme that a trusted proxy names in `X-Forwarded-Proto`, else that of the connection; from other peers the
    /// field is ignored.
    ///
    /// Only the last member counts: the client may have written the members before it. Some proxies write `wss` for
    /// https in a WebSocket request.
    @inlinable
    public init(of fields: FieldView, isFromTrustedProxy: Bool, isSecure: Bool) {
        if isFromTrustedProxy, fields.present.contains(.xForwardedProto) {
            self = Self.said(in: fields)
        } else {
            self.init(isSecure: isSecure)
        }
    }

    /// The scheme of a connection.
    @inlinable
    public init(isSecure: Bool) { self = isSecure ? .https : .http }

    @usableFromInline
    static func said(in fields: FieldView) -> ClientScheme {
        var isSecure = false
        var members = ListIterator(fields, .xForwardedProto)
        while let member = members.next() {
            isSecure = member.isEqualIgnoringCase(to: "https") || member.isEqualIgnoringCase(to: "wss")
        }
        return ClientScheme(isSecure: isSecure)
    }

    /// In lower case.
    public var name: StaticString {
        switch self {
        case .http: "http"
        case .https: "https"
        }
    }

    /// Whether a URL names this scheme.
    public func isNamed(_ name: Span<UInt8>) -> Bool { name.isEqualIgnoringCase(to: self.name) }

    /// The port of a URL that names none.
    public var defaultPort: UInt16 {
        switch self {
        case .http: 80
        case .https: 443
        }
    }

    /// Whether the client used TLS.
    public var isSecure: Bool { self == .https }
}
