public import HTTPSemantics
public import Libevent

/// Which clients may send `PURGE`. Nobody, unless the configuration names addresses.
public struct PurgeAccess: Sendable {
    /// Why a request is refused, with 403.
    public enum Refusal: String, Sendable {
        /// A browser sent it for a web page.
        case webPage = "web-page"
        /// A proxy sent it for somebody, and is not trusted to say for whom.
        case forwarded
        /// A trusted proxy sent it for somebody, and names no address.
        case unnamed
        /// The client's address is not in `purge.methods-from`.
        case unlisted

        /// One sentence for the client.
        public var explanation: StaticString {
            switch self {
            case .webPage: "A web page may not purge."
            case .forwarded: "This came through a proxy that is not in clients.trusted-proxies."
            case .unnamed: "The proxy does not say for which address this is."
            case .unlisted: "This address may not purge; see purge.methods-from."
            }
        }
    }

    private let clients: AddressSet
    private let proxies: TrustedProxies

    init(_ clients: [AddressPattern], _ proxies: TrustedProxies) {
        self.clients = AddressSet(clients)
        self.proxies = proxies
    }

    /// Why a `PURGE` is refused; `nil` if it is allowed.
    /// - Parameter isProxied: whether the peer is a trusted proxy.
    public func refusal(of peer: SocketAddress, isProxied: Bool, _ fields: FieldView) -> Refusal? {
        // Browsers send both fields with each request of this method, which is not CORS-safelisted (Fetch §2.2.1): a page
        // of the site itself, or of another site that the origin's answer to OPTIONS admits, could purge otherwise.
        if fields.contains(.origin) || Self.has("sec-fetch-site", in: fields) { return .webPage }
        if isProxied {
            if fields.contains(.xForwardedFor), IPAddress(proxies.client(in: fields)) == nil { return .unnamed }
        } else if fields.contains(.xForwardedFor) || fields.contains(.forwarded) || Self.has("x-real-ip", in: fields) {
            return .forwarded
        }
        return clients.contains(proxies.client(of: peer, isProxied: isProxied, fields)) ? nil : .unlisted
    }

    private static func has(_ name: String, in fields: FieldView) -> Bool {
        let name = Array(name.utf8)
        return fields.firstIndex(named: name.span) != nil
    }
}
