import Bytes
public import HTTPSemantics
public import Libevent

/// The proxies in front of this one, such as a TLS terminator, whose `X-Forwarded-For` is trusted to name the client.
public struct TrustedProxies: Sendable {
    private let addresses: AddressSet

    /// Trusts these peers.
    package init(_ proxies: [AddressPattern] = []) { addresses = AddressSet(proxies) }

    /// Whether the peer of a connection is a trusted proxy.
    public func include(_ peer: SocketAddress) -> Bool { addresses.contains(IPAddress(peer)) }

    /// The address of the client of a request, which limits and lists of addresses are about: the address that the
    /// access log shows. `nil` for the client of a Unix socket.
    /// - Parameter isProxied: whether the peer is a trusted proxy.
    public func client(of peer: SocketAddress, isProxied: Bool, _ fields: FieldView) -> IPAddress? {
        guard isProxied, let named = IPAddress(client(in: fields)) else { return IPAddress(peer) }
        return named
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
                guard addresses.contains(address) else { return found }
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
