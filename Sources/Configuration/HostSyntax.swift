import Bytes
import Libevent

/// The syntax of hosts and of authorities (RFC 3986 §3.2).
enum HostSyntax {
    /// Limits of RFC 1035 §2.3.4, in bytes.
    private static let (longestHost, longestLabel) = (253, 63)

    /// A registered name, an IPv4 address, or an IPv6 address in brackets (which are removed), in lower case.
    static func host(_ text: Substring) -> String? {
        if text.hasPrefix("["), text.hasSuffix("]") {
            let address = String(text.dropFirst().dropLast())
            return IPv6Address(address) != nil ? address.lowercased() : nil
        }
        guard text.utf8.count <= longestHost, isToken(text), !text.contains(where: { "!#$%&'*+^`|~".contains($0) })
        else { return nil }
        var labels = text.split(separator: ".", omittingEmptySubsequences: false)
        // Remove the empty label of the root.
        if labels.count > 1, labels.last?.isEmpty == true { labels.removeLast() }
        guard let last = labels.last,
            labels.allSatisfy({ 1...longestLabel ~= $0.utf8.count && !$0.hasPrefix("-") && !$0.hasSuffix("-") })
        else { return nil }
        // No top-level domain is a number: such a host is meant to be an address (RFC 3696 §2).
        guard !isDigits(last) || IPv4Address(String(text)) != nil else { return nil }
        return text.lowercased()
    }

    /// The host and the port. Port 0 is valid only for listening.
    static func authority(_ text: Substring) -> (host: String, port: UInt16?)? {
        var hostEnd = text.lastIndex(of: ":") ?? text.endIndex
        if let bracket = text.lastIndex(of: "]") {
            hostEnd = text.index(after: bracket)
            guard hostEnd == text.endIndex || text[hostEnd] == ":" else { return nil }
        }
        guard let host = host(text[..<hostEnd]) else { return nil }
        guard hostEnd != text.endIndex else { return (host, nil) }
        let digits = text[text.index(after: hostEnd)...]
        guard isDigits(digits), let port = UInt16(digits), port > 0 else { return nil }
        return (host, port)
    }

    /// Whether `text` is a token (RFC 9110 §5.6.2).
    static func isToken(_ text: some StringProtocol) -> Bool { !text.isEmpty && text.utf8.allSatisfy(\.isToken) }
}
