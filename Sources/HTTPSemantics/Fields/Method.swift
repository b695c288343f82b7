import Bytes

/// A request method (RFC 9110 §9.3, RFC 5789). Method names are case-sensitive: `get` is not `GET`.
///
/// Those that the proxy treats each in its own way have cases of their own; of all others it matters only whether they
/// are safe and idempotent. The bytes of those are the head's `methodRange`.
public enum Method: UInt8, Sendable, CaseIterable, BitwiseCopyable {
    case get, head, post, put, delete, connect, options, trace, patch
    /// Another one that is registered as safe, and so as idempotent: `QUERY`, `PROPFIND`.
    case otherSafe
    /// Another one that is registered as idempotent, but not as safe: `PROPPATCH`, `MKCOL`.
    case otherIdempotent
    /// Any other token: `LOCK`, and what nobody registered.
    case other

    /// The method that `token` names.
    public static func recognise(_ token: Span<UInt8>) -> Method {
        switch token.count {
        case 3:
            if token.isEqual(to: "GET") { return .get }
            if token.isEqual(to: "PUT") { return .put }
        case 4:
            if token.isEqual(to: "HEAD") { return .head }
            if token.isEqual(to: "POST") { return .post }
        case 5:
            if token.isEqual(to: "PATCH") { return .patch }
            if token.isEqual(to: "TRACE") { return .trace }
        case 6:
            if token.isEqual(to: "DELETE") { return .delete }
        case 7:
            if token.isEqual(to: "OPTIONS") { return .options }
            if token.isEqual(to: "CONNECT") { return .connect }
        default:
            break
        }
        return registered(token)
    }

    /// The name on the wire; empty for the others, of which a case does not tell it.
    public var wireName: StaticString {
        switch self {
        case .get: "GET"
        case .head: "HEAD"
        case .post: "POST"
        case .put: "PUT"
        case .delete: "DELETE"
        case .connect: "CONNECT"
        case .options: "OPTIONS"
        case .trace: "TRACE"
        case .patch: "PATCH"
        case .otherSafe, .otherIdempotent, .other: ""
        }
    }

    /// Whether its name is `wireName`.
    public var isNamed: Bool {
        switch self {
        case .get, .head, .post, .put, .delete, .connect, .options, .trace, .patch: true
        case .otherSafe, .otherIdempotent, .other: false
        }
    }

    /// Asks for no change of state (RFC 9110 §9.2.1). Methods we do not know are not safe.
    @inlinable
    public var isSafe: Bool {
        switch self {
        case .get, .head, .options, .trace, .otherSafe: true
        case .post, .put, .delete, .connect, .patch, .otherIdempotent, .other: false
        }
    }

    /// Sent twice does what sent once does (RFC 9110 §9.2.2), so that it may be tried again.
    @inlinable
    public var isIdempotent: Bool {
        switch self {
        case .get, .head, .options, .trace, .put, .delete, .otherSafe, .otherIdempotent: true
        case .post, .connect, .patch, .other: false
        }
    }
}

/// The version of a message (RFC 9112 §2.3). A later minor version of 1 counts as 1.1 (RFC 9110 §2.5).
public enum HTTPVersion: UInt8, Sendable, BitwiseCopyable {
    case http10, http11

    /// The version as `received-protocol` in `Via` (RFC 9110 §7.6.3).
    var shortName: StaticString {
        switch self {
        case .http10: "1.0"
        case .http11: "1.1"
        }
    }
}
