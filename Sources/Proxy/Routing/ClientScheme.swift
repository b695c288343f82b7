import Bytes
import HTTPSemantics

/// How a client asked, as its URL says it (RFC 9110 §4.2): `https` if it asked a proxy before this one that terminates
/// TLS. Part of the key, so that neither gets what the origin made for the other.
enum ClientScheme: Sendable, CaseIterable {
    case http, https

    /// What a trusted proxy says in `X-Forwarded-Proto`; nobody else is believed.
    ///
    /// Only the last word of it counts: what stands before may be the client's own. `wss` is how some proxies write https
    /// in a WebSocket's request.
    init(of fields: FieldView, isFromTrustedProxy: Bool) {
        self = isFromTrustedProxy && fields.present.contains(.xForwardedProto) ? Self.said(in: fields) : .http
    }

    private static func said(in fields: FieldView) -> ClientScheme {
        var isSecure = false
        var members = ListIterator(fields, .xForwardedProto)
        while let member = members.next() {
            isSecure = member.isEqualIgnoringCase(to: "https") || member.isEqualIgnoringCase(to: "wss")
        }
        return isSecure ? .https : .http
    }

    var name: StaticString {
        switch self {
        case .http: "http"
        case .https: "https"
        }
    }

    /// The port of a URL that names none.
    var defaultPort: UInt16 {
        switch self {
        case .http: 80
        case .https: 443
        }
    }

    var isSecure: Bool { self == .https }
}
