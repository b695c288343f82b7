import Bytes
import HTTPSemantics
import Libevent

/// Decides whether a request to the admin listener may come from a web page. A browser on this machine can send
/// requests to a listener that only this machine reaches: for a page of another site, or for a page whose name was made
/// to resolve to this address (DNS rebinding).
enum RequestSource {
    /// The reason for refusing the request, for its sender; `nil` if the request is allowed.
    /// - Parameter address: the address at which the connection was accepted.
    static func refusal(_ head: RequestHead, _ fields: FieldView, at address: SocketAddress) -> String? {
        let authority = fields.bytes.extracting(head.authority.range)
        let host = String(authority.extracting(first: head.host.map { Int($0.host.upper) } ?? 0))
        let isRead = head.method == .get || head.method == .head
        let path = fields.bytes.extracting(head.target.path.range)
        // From these two paths, a web page learns only that a program listens here, as it would from a refusal. Health
        // checks use any name as Host.
        if isRead, path.isEqual(to: "/healthz") || path.isEqual(to: "/readyz") { return nil }
        // At other addresses, the names are names of a network, which the proxy does not know. A request from a page
        // under such a name is refused because of its `Origin`.
        if address.isLoopback, !host.isEmpty, !isOwn(host) {
            return
                "The Host '\(host)' is not accepted by this admin listener; use its address, \(address), or localhost.\n"
        }
        if isRead { return nil }
        if let line = fields.firstIndex(named: Array("sec-fetch-site".utf8).span) {
            let site = String(fields.value(at: line))
            guard ["same-origin", "none"].contains(site) else { return refused }
        }
        if let line = fields.firstIndex(of: .origin) {
            guard isOwn(host), String(fields.value(at: line)).lowercased() == "http://\(String(authority).lowercased())"
            else { return refused }
        }
        return nil
    }

    private static let refused = "Requests from other web sites are refused.\n"

    /// Whether `host` is an address, or a name that means this machine everywhere (RFC 6761 §6.3). Such a host is not a
    /// name that another site made to resolve to this address.
    private static func isOwn(_ host: String) -> Bool {
        let name = host.lowercased()
        let labels = name.hasSuffix(".") ? name.dropLast() : name[...]
        if labels == "localhost" || labels.hasSuffix(".localhost") || IPv4Address(host) != nil { return true }
        return host.hasPrefix("[") && host.hasSuffix("]") && IPv6Address(String(host.dropFirst().dropLast())) != nil
    }
}
