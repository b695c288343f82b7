import Bytes

/// A pattern for the hosts that are served, or that a route is for: one name or address, or `*.` and a name, which
/// matches all names below that one at any depth, but not the name itself.
package struct HostPattern: Sendable, Hashable, ExpressibleByStringLiteral {
    /// The host; of a wildcard, the suffix of its names, from the dot on.
    private let bytes: ByteSlice
    let isWildcard: Bool

    /// - Parameter text: in lower case, without a port; IPv6 addresses in brackets.
    package init(_ text: String) {
        isWildcard = text.hasPrefix("*.")
        bytes = ByteSlice(isWildcard ? String(text.dropFirst()) : text)
    }

    package init(stringLiteral text: String) { self.init(text) }

    /// The host, or the suffix of a wildcard's names, in lower case.
    var lowercased: [UInt8] { String(bytes).utf8.map(\.lowercasedASCII) }

    /// The pattern as it was given.
    package var text: String { (isWildcard ? "*" : "") + String(bytes) }

    /// - Parameter host: valid, without a port; letters of either case. Allocates nothing.
    package func matches(_ host: Span<UInt8>) -> Bool {
        let bytes = bytes
        guard isWildcard else { return bytes.span.isEqualIgnoringCase(to: host) }
        return host.count > bytes.count && host.extracting(last: bytes.count).isEqualIgnoringCase(to: bytes.span)
    }

    /// Whether this pattern matches every host that `other` matches.
    package func covers(_ other: HostPattern) -> Bool {
        guard other.isWildcard else { return matches(other.bytes.span) }
        return isWildcard && (self == other || matches(other.bytes.span))
    }

    /// All patterns that cover this one: itself, and the wildcards of the names above it.
    package var covering: [HostPattern] {
        let text = String(bytes)
        let above = text.indices.dropFirst().filter { text[$0] == "." }
        return [self] + above.map { HostPattern("*\(text[$0...])") }
    }
}
