import Bytes
import HTTPSemantics
import Libevent
import Routing

/// Decides whether a request to the admin listener may come from a web page. A browser on this machine can send
/// requests to a listener that only this machine reaches: for a page of another site, or for a page whose name was made
/// to resolve to this address (DNS rebinding).
enum RequestSource {
    /// The answer to a request that is refused; `nil` if it is allowed.
    /// - Parameters:
    ///   - address: the address at which the connection was accepted.
    ///   - isSecure: whether the client speaks TLS.
    ///   - token: `nil`: the listener asks for none.
    static func refusal(
        _ head: RequestHead, _ fields: FieldView, at address: SocketAddress, isSecure: Bool, hosts: [HostPattern],
        token: AdminToken?
    ) -> AdminPage? {
        let authority = fields.bytes.extracting(head.authority.range)
        let host = String(authority.extracting(first: head.host.map { Int($0.host.upper) } ?? 0))
        let isRead = head.method == .get || head.method == .head
        let path = fields.bytes.extracting(head.target.path.range)
        // From these two paths, a web page learns only that a program listens here, as it would from a refusal. Health
        // checks use any name as Host.
        if isRead, path.isEqual(to: "/healthz") || path.isEqual(to: "/readyz") { return nil }
        // At other addresses, the names are names of a network, which the proxy does not know unless they are in
        // `hosts`. A request from a page under such a name is refused because of its `Origin`.
        let isKnown = isOwn(host) || hosts.contains { $0.matches(authority.extracting(first: host.utf8.count)) }
        if address.isLoopback || !hosts.isEmpty, !host.isEmpty, !isKnown {
            return AdminPage(
                status: .forbidden,
                text:
                    "The Host '\(host)' is not accepted by this admin listener; use its address, \(address), or localhost, or add the name to admin.hosts.\n"
            )
        }
        if let token {
            let line = fields.firstIndex(of: .authorization)
            guard let line, token.isIn(fields.value(at: line)) else {
                var page = AdminPage(
                    status: Status(401),
                    text: "This admin listener asks for 'Authorization: Bearer' with the token in admin.token-file.\n")
                page.challenge = "Bearer"
                return page
            }
        }
        if isRead { return nil }
        if let line = fields.firstIndex(named: Array("sec-fetch-site".utf8).span) {
            let site = String(fields.value(at: line))
            guard ["same-origin", "none"].contains(site) else { return refused }
        }
        if let line = fields.firstIndex(of: .origin) {
            let scheme = isSecure ? "https" : "http"
            guard isKnown,
                String(fields.value(at: line)).lowercased() == "\(scheme)://\(String(authority).lowercased())"
            else { return refused }
        }
        return nil
    }

    private static let refused = AdminPage(
        status: .forbidden, text: "Requests from other web sites are refused.\n")

    /// Whether `host` is an address, or a name that means this machine everywhere (RFC 6761 §6.3). Such a host is not a
    /// name that another site made to resolve to this address.
    private static func isOwn(_ host: String) -> Bool {
        let name = host.lowercased()
        let labels = name.hasSuffix(".") ? name.dropLast() : name[...]
        if labels == "localhost" || labels.hasSuffix(".localhost") || IPv4Address(host) != nil { return true }
        return host.hasPrefix("[") && host.hasSuffix("]") && IPv6Address(String(host.dropFirst().dropLast())) != nil
    }
}
