public import Bytes

/// How an origin receives one request field. Keys and variants may depend on a field only as far as the origin receives
/// it as sent. A field that it does not receive does not affect its response; and for a field with additions, clients
/// that the origin distinguishes would share a response.
enum FieldSight {
    /// The field as the client sent it.
    case asSent
    /// No field, or a field that is the same for all requests with one key.
    case sameForAll
    /// More than the client's field: the client's address (`X-Forwarded-For`, and `X-Real-IP` if some proxies may state
    /// it), its version of HTTP (`Via`), or a property of its connection.
    case more
}

extension CachingPolicy {
    /// A request field that a rule of the operator writes.
    public struct WrittenField: Sendable, Equatable {
        /// In any case.
        let name: ByteSlice
        /// Whether it is the same for all requests with one key; otherwise it has something of the client, or of one
        /// request.
        let isSameForAll: Bool

        /// The field with this name.
        public init(name: ByteSlice, isSameForAll: Bool) { (self.name, self.isSameForAll) = (name, isSameForAll) }
    }

    /// How `RequestForwarding` forwards a request field.
    /// - Parameter name: in any case.
    func sight(of name: Span<UInt8>) -> FieldSight {
        for written in writtenFields where written.name.span.isEqualIgnoringCase(to: name) {
            return written.isSameForAll ? .sameForAll : .more
        }
        let field = KnownField.recognise(name)
        switch field {
        // Written from the contents of the route's key, or for one connection only (RFC 9110 §7.6.1). `TE` and
        // `Upgrade` are for one connection too, but this proxy may send a part of them to the origin.
        case .host, .contentLength, .transferEncoding, .connection, .keepAlive, .proxyConnection, .http2Settings:
            return .sameForAll
        case .te, .upgrade: return .more
        case .via: return writesVia ? .more : .asSent
        case .xForwardedFor: return writesForwarded ? .more : .asSent
        case .other where !forwardsOddNames && !name.isPlainName: return .sameForAll
        case .other where writesForwarded && forwardsSenders && KeyedForwarding.namesSender(name):
            return keyedFields.contains { $0.span.isEqualIgnoringCase(to: name) } ? .sameForAll : .more
        default: return writesForwarded && KeyedForwarding.isClientClaim(name, field) ? .sameForAll : .asSent
        }
    }
}
