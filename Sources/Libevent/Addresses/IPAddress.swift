public import Bytes
import Glibc

/// An IPv4 or IPv6 address. An IPv4 address equals its IPv4-mapped IPv6 address (RFC 4291 §2.5.5.2), which the kernel
/// reports for a listener of both families.
public struct IPAddress: Hashable, Sendable {
    let high: UInt64
    let low: UInt64

    init(high: UInt64, low: UInt64) { (self.high, self.low) = (high, low) }

    /// The IPv4-mapped IPv6 address of `address`.
    public init(_ address: IPv4Address) { (high, low) = (0, 0xFFFF_0000_0000 | UInt64(address.bits)) }
    /// The same address.
    public init(_ address: IPv6Address) { (high, low) = (address.high, address.low) }

    /// Whether this is an IPv4-mapped address.
    var isIPv4: Bool { high == 0 && low >> 32 == 0xFFFF }

    /// `nil` for a Unix socket.
    public init?(_ address: SocketAddress) {
        switch address {
        case .ipv4(let address, _): self.init(address)
        case .ipv6(let address, _, _): self.init(address)
        case .unix: return nil
        }
    }

    /// The address by which a client is counted. The addresses of one IPv6 subnet, a /64 (RFC 4291 §2.5.1), count as
    /// one, since a client may take any of them.
    public var ofClient: IPAddress { isIPv4 ? self : IPAddress(high: high, low: 0) }

    /// A hash of the address and of `other`.
    public func hash(with other: UInt64, under hash: KeyedHash) -> UInt64 { hash.hash(high, low, other) }

    /// Reads `192.0.2.1` or `2001:db8::1`, without port, brackets or scope. Allocates nothing.
    public init?(_ text: Span<UInt8>) {
        // The longest text has 45 bytes; `inet_pton` needs a zero after it.
        guard text.count < Int(INET6_ADDRSTRLEN) else { return nil }
        var characters = InlineArray<46, UInt8>(repeating: 0)
        var hasColon = false
        for index in text.indices {
            // A zero byte would end the text early.
            guard text[index] != 0 else { return nil }
            characters[index] = text[index]
            if text[index] == UInt8(ascii: ":") { hasColon = true }
        }
        // In network byte order; an IPv4 address takes the first four bytes.
        var words = InlineArray<2, UInt64>(repeating: 0)
        let isRead = unsafe characters.span.withUnsafeBytes { text in
            var target = words.mutableSpan
            return unsafe target.withUnsafeMutableBytes { memory in
                guard let start = text.baseAddress, let target = memory.baseAddress else { return false }
                // `inet_pton` writes at most sixteen bytes, and a zero ends the text.
                return unsafe inet_pton(
                    hasColon ? AF_INET6 : AF_INET, start.assumingMemoryBound(to: CChar.self), target) == 1
            }
        }
        guard isRead else { return nil }
        let (first, second) = (UInt64(bigEndian: words[0]), UInt64(bigEndian: words[1]))
        if hasColon {
            self.init(IPv6Address(high: first, low: second))
        } else {
            self.init(IPv4Address(bits: UInt32(truncatingIfNeeded: first >> 32)))
        }
    }
}

extension IPAddress: CustomStringConvertible {
    /// The address as text; an IPv4-mapped one as IPv4.
    public var description: String {
        isIPv4
            ? IPv4Address(bits: UInt32(truncatingIfNeeded: low)).description
            : IPv6Address(high: high, low: low).description
    }
}

extension IPAddress: Comparable {
    /// Compares the 128 bits. An IPv4 address sorts as its IPv4-mapped IPv6 address.
    public static func < (left: IPAddress, right: IPAddress) -> Bool {
        left.high == right.high ? left.low < right.low : left.high < right.high
    }
}
