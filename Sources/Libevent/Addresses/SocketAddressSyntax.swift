import Glibc

/// The reasons why a text is not a socket address.
public enum AddressSyntaxError: String, Error, Sendable {
    case empty = "it is empty"
    case url = "it is a URL"
    case missingPort = "the port is missing"
    case missingHost = "the address before the port is missing; use 0.0.0.0 or [::] for all addresses"
    case localhost = "localhost is a name; write 127.0.0.1 or [::1]"
    case badPort = "the port is not a number from 0 to 65535"
    case badHost = "not an IP address"
    case missingBracket = "an IPv6 address must be in brackets: [::1]:80"
    case badPath = "the path is empty, too long or contains a NUL byte"
}

extension SocketAddress {
    /// Reads `127.0.0.1:8080`, `[::1]:80`, `[fe80::1%eth0]:80` or `unix:/path`. Names are not looked up.
    /// - Throws: the reason why the text is not an address.
    public init(parsing text: String) throws(AddressSyntaxError) {
        guard !text.isEmpty else { throw .empty }
        if text.hasPrefix("unix:") {
            let path = String(text.dropFirst(5))
            guard !path.isEmpty, path.utf8.count <= Self.longestPath, !path.utf8.contains(0) else { throw .badPath }
            self = .unix(path: path)
            return
        }
        guard !text.contains("://") else { throw .url }
        if text.hasPrefix("[") {
            guard let bracket = text.lastIndex(of: "]") else { throw .missingBracket }
            let rest = text[text.index(after: bracket)...]
            guard rest.first == ":" else { throw .missingPort }
            let port = try Self.port(rest.dropFirst())
            let host = String(text[text.index(after: text.startIndex)..<bracket])
            guard case .ipv6(let address, _, let scope)? = SocketAddress(literal: host, port: port) else {
                throw .badHost
            }
            self = .ipv6(address, port: port, scope: scope)
            return
        }
        guard let colon = text.lastIndex(of: ":") else { throw UInt16(text) == nil ? .missingPort : .missingHost }
        guard text.firstIndex(of: ":") == colon else { throw .missingBracket }
        let port = try Self.port(text[text.index(after: colon)...])
        let host = text[..<colon]
        guard !host.isEmpty, host != "*" else { throw .missingHost }
        guard let address = IPv4Address(String(host)) else {
            throw host.lowercased() == "localhost" ? .localhost : .badHost
        }
        self = .ipv4(address, port: port)
    }

    /// An IP address without brackets, like `127.0.0.1`, `::1` or `fe80::1%eth0`; `nil` for any other text.
    public init?(literal host: String, port: UInt16) {
        if let address = IPv4Address(host) {
            self = .ipv4(address, port: port)
            return
        }
        let parts = host.split(separator: "%", maxSplits: 1, omittingEmptySubsequences: false)
        guard let first = parts.first, let address = IPv6Address(String(first)) else { return nil }
        var scope: UInt32 = 0
        if parts.count == 2 {
            scope = unsafe UInt32(parts[1]) ?? if_nametoindex(String(parts[1]))
            guard scope != 0 else { return nil }
        }
        self = .ipv6(address, port: port, scope: scope)
    }

    private static func port(_ text: Substring) throws(AddressSyntaxError) -> UInt16 {
        guard !text.isEmpty else { throw .missingPort }
        guard text.utf8.allSatisfy({ $0 >= 0x30 && $0 <= 0x39 }), let port = UInt16(text) else { throw .badPort }
        return port
    }
}
