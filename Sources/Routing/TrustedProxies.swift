import Bytes
public import HTTPSemantics
public import Libevent

/// A proxy in front of this one, such as a TLS terminator, whose `X-Forwarded-For` is trusted to name the client.
package enum TrustedProxy: Sendable, Hashable {
    /// Every peer that connects from one of these addresses.
    case addresses(AddressBlock)
    /// Every peer that connects over a Unix socket.
    case unix
}

/// The trusted proxies, in a form for look-up by address.
public struct TrustedProxies: Sendable {
    /// Their address ranges, ascending and disjoint, for binary search.
    private let ranges: [ClosedRange<IPAddress>]
    private let hasUnix: Bool

    /// Finds `proxies`.
    package init(_ proxies: [TrustedProxy] = []) {
        let blocks = proxies.compactMap { if case .addresses(let block) = $0 { block.range } else { nil } }
        // Two blocks are either nested or disjoint.
        ranges = blocks.sorted {
            $0.lowerBound < $1.lowerBound || $0.lowerBound == $1.lowerBound && $0.upperBound > $1.upperBound
        }
        .reduce(into: []) { ranges, block in
            if let last = ranges.last, last.contains(block.lowerBound) { return }
            ranges.append(block)
        }
        hasUnix = proxies.contains(.unix)
    }

    /// Whether the peer of a connection is a trusted proxy.
    public func include(_ peer: SocketAddress) -> Bool {
        guard let address = IPAddress(peer) else { return hasUnix }
        return include(address)
    }

    private func include(_ address: IPAddress) -> Bool {
        var (lower, upper) = (0, ranges.count)
        while lower < upper {
            let middle = (lower + upper) / 2
            if ranges[middle].upperBound < address { lower = middle + 1 } else { upper = middle }
        }
        return lower < ranges.count && ranges[lower].contains(address)
    }

    /// The address of the client that a trusted proxy forwards for, as text without a port: the last address in
    /// `X-Forwarded-For` that is not a trusted proxy's. Each proxy appends the address of its own peer, so the members
    /// before that address may be made up by the client. Empty if the field names no address.
    @_lifetime(copy fields)
    public func client(in fields: FieldView) -> Span<UInt8> {
        var found = Span<UInt8>()
        for index in fields.lines.indices.reversed() where fields.lines[index].field == .xForwardedFor {
            var rest = fields.value(at: index)
            while !rest.isEmpty {
                var start = rest.count
                while start > 0, rest[start - 1] != UInt8(ascii: ",") { start -= 1 }
                let member = rest.extracting(start..<rest.count).trimmingOptionalWhitespace().withoutPort
                rest = rest.extracting(0..<max(0, start - 1))
                guard !member.isEmpty else { continue }
                guard let address = IPAddress(member) else { return found }
                found = member
                guard include(address) else { return found }
            }
        }
        return found
    }
}

extension Span where Element == UInt8 {
    /// An address without the port and the brackets that some proxies write with it: `192.0.2.1:4711`,
    /// `[2001:db8::1]:4711`.
    fileprivate var withoutPort: Span<UInt8> {
        @_lifetime(copy self)
        get {
            if !isEmpty, self[0] == UInt8(ascii: "["), let end = firstIndex(of: UInt8(ascii: "]")) {
                return extracting(1..<end)
            }
            guard let colon = firstIndex(of: UInt8(ascii: ":")),
                firstIndex(of: UInt8(ascii: ":"), from: colon + 1) == nil
            else { return self }
            return extracting(0..<colon)
        }
    }
}
