import Glibc

/// An IP address of either kind. An IPv4 address is the same as the IPv6 address that stands for it (RFC 4291
/// §2.5.5.2), which is what a listener for both kinds reports.
public struct IPAddress: Hashable, Sendable {
    let high: UInt64
    let low: UInt64

    init(high: UInt64, low: UInt64) { (self.high, self.low) = (high, low) }

    /// The IPv6 address that stands for `address`.
    public init(_ address: IPv4Address) { (high, low) = (0, 0xFFFF_0000_0000 | UInt64(address.bits)) }
    /// The address itself.
    public init(_ address: IPv6Address) { (high, low) = (address.high, address.low) }

    /// Whether it stands for an IPv4 address.
    var isIPv4: Bool { high == 0 && low >> 32 == 0xFFFF }

    /// `nil` for a Unix socket.
    public init?(_ address: SocketAddress) {
        switch address {
        case .ipv4(let address, _): self.init(address)
        case .ipv6(let address, _, _): self.init(address)
        case .unix: return nil
        }
    }

    /// Reads `192.0.2.1` or `2001:db8::1`, without port, brackets or scope. Allocates nothing.
    public init?(_ text: Span<UInt8>) {
        // The longest text has 45 bytes, and a zero ends it.
        guard text.count < Int(INET6_ADDRSTRLEN) else { return nil }
        var characters = InlineArray<46, UInt8>(repeating: 0)
        var hasColon = false
        for index in text.indices {
            // A zero byte would end it before its end.
            guard text[index] != 0 else { return nil }
            characters[index] = text[index]
            if text[index] == UInt8(ascii: ":") { hasColon = true }
        }
        // Network order; an IPv4 address takes the first four bytes.
        var words = InlineArray<2, UInt64>(repeating: 0)
        let isRead = unsafe characters.span.withUnsafeBytes { text in
            var target = words.mutableSpan
            return unsafe target.withUnsafeMutableBytes { memory in
                guard let start = text.baseAddress, let target = memory.baseAddress else { return false }
                // At most sixteen bytes are written; the text ends with a zero.
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

extension IPAddress: Comparable {
    /// By their bits; those of IPv4 stand where the IPv6 addresses that stand for them do.
    public static func < (left: IPAddress, right: IPAddress) -> Bool {
        left.high == right.high ? left.low < right.low : left.high < right.high
    }
}
