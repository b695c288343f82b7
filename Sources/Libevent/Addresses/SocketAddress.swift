public import Bytes
import CLibevent
import Glibc

/// The address on which a stream socket listens or to which it connects: an IPv4 or IPv6 address with a port, or a path
/// in the file system.
public enum SocketAddress: Hashable, Sendable {
    case ipv4(IPv4Address, port: UInt16)
    /// `scope` is the interface's index for link-local addresses, otherwise 0.
    case ipv6(IPv6Address, port: UInt16, scope: UInt32 = 0)
    /// An empty path is the address of an unnamed peer.
    case unix(path: String)

    /// The longest path that the kernel takes, in bytes (`sun_path` less its terminating zero).
    public static let longestPath = 107

    /// `nil` for a Unix socket.
    public var port: UInt16? {
        switch self {
        case .ipv4(_, let port), .ipv6(_, let port, _): port
        case .unix: nil
        }
    }

    /// Whether this is an IP address that only this machine reaches.
    public var isLoopback: Bool {
        switch self {
        case .ipv4(let address, _): address.bits >> 24 == 127
        // `::1`, and 127.0.0.0/8 on a socket for both families (RFC 4291 §2.5.5.2).
        case .ipv6(let address, _, _): address == .loopback || address.high == 0 && address.low >> 24 == 0xFFFF7F
        case .unix: false
        }
    }

    /// Whether bytes sent to this address never leave the machine.
    var staysInMachine: Bool { if case .unix = self { true } else { isLoopback } }

    /// Whether a socket that listens here leaves no room for another at `other`. That is so for equal addresses, and
    /// for `0.0.0.0` or `[::]` and any address of the same family with the same port. Port 0 means any free port.
    public func covers(_ other: SocketAddress) -> Bool {
        if port == 0 { return false }
        switch (self, other) {
        case (.ipv4(.any, let port), .ipv4(_, let otherPort)), (.ipv6(.any, let port, _), .ipv6(_, let otherPort, _)):
            return port == otherPort
        case (.ipv4, _), (.ipv6, _), (.unix, _): return self == other
        }
    }

    /// Whether this is a link-local address with its interface.
    var hasScope: Bool { if case .ipv6(_, _, let scope) = self { scope != 0 } else { false } }

    /// This address with another port; a path is unchanged.
    public func withPort(_ port: UInt16) -> SocketAddress {
        switch self {
        case .ipv4(let address, _): .ipv4(address, port: port)
        case .ipv6(let address, _, let scope): .ipv6(address, port: port, scope: scope)
        case .unix: self
        }
    }

    /// The address without port or brackets, as used in `X-Forwarded-For` and logs. For a Unix socket the path,
    /// unchecked: a peer may bind to any bytes.
    public var host: String {
        switch self {
        case .ipv4(let address, _): address.description
        case .ipv6(let address, _, let scope):
            scope == 0 ? address.description : "\(address)%\(scope)"
        case .unix(let path): path
        }
    }

    /// `host` in bytes. Every connection needs it, so the common case (IPv4) makes no `String`.
    public var hostText: ByteSlice {
        guard case .ipv4(let address, _) = self else { return ByteSlice(host) }
        var text = InlineArray<15, UInt8>(repeating: UInt8(ascii: "."))
        var count = 0
        for place in 0..<4 {
            let number = UInt8(truncatingIfNeeded: address.bits >> (24 - 8 * UInt32(place)))
            if number >= 100 {
                text[count] = 0x30 + number / 100
                count += 1
            }
            if number >= 10 {
                text[count] = 0x30 + number / 10 % 10
                count += 1
            }
            text[count] = 0x30 + number % 10
            // The dot is already in `text`.
            count += place < 3 ? 2 : 1
        }
        return ByteSlice(copying: text.span.extracting(0..<count))
    }
}

extension SocketAddress: CustomStringConvertible {
    /// `127.0.0.1:8080`, `[::1]:80` or `unix:/path`, which `init(parsing:)` accepts.
    public var description: String {
        switch self {
        case .ipv4(let address, let port): "\(address):\(port)"
        case .ipv6(_, let port, _): "[\(host)]:\(port)"
        case .unix(let path): "unix:\(path)"
        }
    }
}

/// Four bytes in network order.
public struct IPv4Address: Hashable, Sendable, CustomStringConvertible {
    /// The first written byte is the most significant.
    public let bits: UInt32

    /// - Parameter bits: in host byte order.
    public init(bits: UInt32) { self.bits = bits }
    /// The address of four numbers, in the order in which they are written.
    public init(_ a: UInt8, _ b: UInt8, _ c: UInt8, _ d: UInt8) {
        bits = UInt32(a) << 24 | UInt32(b) << 16 | UInt32(c) << 8 | UInt32(d)
    }

    /// `any` stands for all addresses of this machine; only this machine reaches `loopback`.
    public static let any = IPv4Address(bits: 0)
    public static let loopback = IPv4Address(127, 0, 0, 1)

    /// Accepts `127.0.0.1`; no shorter forms, no leading zeroes.
    public init?(_ text: String) {
        var address = in_addr()
        guard unsafe inet_pton(AF_INET, text, &address) == 1 else { return nil }
        bits = UInt32(bigEndian: address.s_addr)
    }

    public var description: String { "\(bits >> 24).\(bits >> 16 & 255).\(bits >> 8 & 255).\(bits & 255)" }
}

/// Sixteen bytes in network order.
public struct IPv6Address: Hashable, Sendable, CustomStringConvertible {
    /// The two halves, in host byte order.
    public let high: UInt64
    public let low: UInt64

    public init(high: UInt64, low: UInt64) {
        self.high = high
        self.low = low
    }

    /// `any` stands for all addresses of this machine; only this machine reaches `loopback`.
    public static let any = IPv6Address(high: 0, low: 0)
    public static let loopback = IPv6Address(high: 0, low: 1)

    /// Accepts the forms of RFC 4291 §2.2, without brackets and scope.
    public init?(_ text: String) {
        var address = in6_addr()
        guard unsafe inet_pton(AF_INET6, text, &address) == 1 else { return nil }
        self.init(address)
    }

    init(_ address: in6_addr) {
        // The C union consists of sixteen bytes of plain memory.
        let words = unsafe unsafeBitCast(address, to: (UInt64, UInt64).self)
        self.init(high: UInt64(bigEndian: words.0), low: UInt64(bigEndian: words.1))
    }

    var cValue: in6_addr { unsafe unsafeBitCast((high.bigEndian, low.bigEndian), to: in6_addr.self) }

    /// The canonical form (RFC 5952).
    public var description: String {
        var address = cValue
        return unsafe withUnsafeTemporaryAllocation(of: CChar.self, capacity: Int(INET6_ADDRSTRLEN)) { buffer in
            guard let text = unsafe inet_ntop(AF_INET6, &address, buffer.baseAddress, socklen_t(buffer.count)) else {
                return "::"
            }
            return unsafe String(cString: text)
        }
    }
}
