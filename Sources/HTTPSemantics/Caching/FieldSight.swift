import Bytes

/// What an origin sees of one request field. Only that may tell requests apart, in keys and among variants: what it
/// does not see makes no difference to its answer, and what it sees besides would be shared by clients that it told
/// apart.
enum FieldSight {
    /// What the client sent.
    case asSent
    /// Nothing, or the same for all requests that have one key.
    case sameForAll
    /// More than the client's field: its address (`X-Forwarded-For`, and `X-Real-IP` where some proxies may say it),
    /// its version of HTTP (`Via`), or something of its connection.
    case more
}

extension CachingPolicy {
    /// What becomes of a field that requests may have, on its way through `RequestForwarding`.
    /// - Parameter name: in any case.
    func sight(of name: Span<UInt8>) -> FieldSight {
        let field = KnownField.recognise(name)
        switch field {
        // Written from what the route's key holds, or for one connection only (RFC 9110 §7.6.1); of these two something
        // may be said to the origin.
        case .host, .contentLength, .transferEncoding, .connection, .keepAlive, .proxyConnection, .http2Settings:
            return .sameForAll
        case .te, .upgrade: return .more
        case .via: return writesVia ? .more : .asSent
        case .xForwardedFor: return writesForwarded ? .more : .asSent
        case .other where !forwardsOddNames && !name.isPlainName: return .sameForAll
        case .other where writesForwarded && forwardsSenders && KeyedForwarding.namesSender(name):
            return keyedFields.contains { $0.span.isEqualIgnoringCase(to: name) } ? .sameForAll : .more
        default: return writesForwarded && KeyedForwarding.isClientsWord(name, field) ? .sameForAll : .asSent
        }
    }
}
