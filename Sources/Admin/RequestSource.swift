import Bytes
import HTTPSemantics
import Libevent

/// Whether a request to the admin listener may come from a page in somebody's browser, which can send requests to what
/// only this machine reaches: from a page of another site, or from one whose name was made to resolve to this address
/// (DNS rebinding).
enum RequestSource {
    /// Why a request is refused, for its sender; `nil` if it is not.
    /// - Parameter address: where it was accepted.
    static func refusal(_ head: RequestHead, _ fields: FieldView, at address: SocketAddress) -> String? {
        let authority = fields.bytes.extracting(head.authority.range)
        let host = String(authority.extracting(first: head.host.map { Int($0.host.upper) } ?? 0))
        let isRead = head.method == .get || head.method == .head
        let path = fields.bytes.extracting(head.target.path.range)
        // From these a page learns no more than that somebody listens, as it would from a refusal; and health checks
        // ask by any name.
        if isRead, path.isEqual(to: "/healthz") || path.isEqual(to: "/readyz") { return nil }
        // Elsewhere names are those of a network, which we do not know; a page by such a name is then refused because
        // of its `Origin`.
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

    /// Not a name that others could make resolve here: an address, or a name that means this machine everywhere (RFC
    /// 6761 §6.3).
    private static func isOwn(_ host: String) -> Bool {
        let name = host.lowercased()
        let labels = name.hasSuffix(".") ? name.dropLast() : name[...]
        if labels == "localhost" || labels.hasSuffix(".localhost") || IPv4Address(host) != nil { return true }
        return host.hasPrefix("[") && host.hasSuffix("]") && IPv6Address(String(host.dropFirst().dropLast())) != nil
    }
}
