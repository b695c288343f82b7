import Bytes

/// Hosts, as requests name them, that are served or that a route is for: one name or address, or `*.` and a name, which
/// stands for all names below that one, however deep, but not for itself.
public struct HostPattern: Sendable, Hashable, ExpressibleByStringLiteral {
    /// The host, or what its names end with, from the dot on.
    private let bytes: ByteSlice
    let isWildcard: Bool

    /// - Parameter text: in lower case, without a port; IPv6 addresses in brackets.
    public init(_ text: String) {
        isWildcard = text.hasPrefix("*.")
        bytes = ByteSlice(isWildcard ? String(text.dropFirst()) : text)
    }

    public init(stringLiteral text: String) { self.init(text) }

    /// The host, or what its names end with.
    var lowercased: [UInt8] { String(bytes).utf8.map(\.lowercasedASCII) }

    /// The pattern as it was given.
    public var text: String { (isWildcard ? "*" : "") + String(bytes) }

    /// - Parameter host: valid, without a port; letters of either case. Allocates nothing.
    func matches(_ host: Span<UInt8>) -> Bool {
        let bytes = bytes
        guard isWildcard else { return bytes.span.isEqualIgnoringCase(to: host) }
        return host.count > bytes.count && host.extracting(last: bytes.count).isEqualIgnoringCase(to: bytes.span)
    }

    /// Whether all hosts that `other` stands for are among these.
    public func covers(_ other: HostPattern) -> Bool {
        guard other.isWildcard else { return matches(other.bytes.span) }
        return isWildcard && (self == other || matches(other.bytes.span))
    }

    /// All that cover this one: itself, and the wildcards of the names above it.
    public var covering: [HostPattern] {
        let text = String(bytes)
        let above = text.indices.dropFirst().filter { text[$0] == "." }
        return [self] + above.map { HostPattern("*\(text[$0...])") }
    }
}
