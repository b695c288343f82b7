import Bytes

/// A request method (RFC 9110 §9.3, RFC 5789). Method names are case-sensitive: `get` is not `GET`.
///
/// Methods that the proxy treats differently have cases of their own; all others are only classified as safe,
/// idempotent or neither. Their names are in the head at `methodRange`.
public enum Method: UInt8, Sendable, CaseIterable, BitwiseCopyable {
    // The first seven are counted apart in the metrics.
    case get, head, options, post, put, patch, delete, connect, trace
    /// Another method that is registered as safe, and so as idempotent: `QUERY`, `PROPFIND`.
    case otherSafe
    /// Another method that is registered as idempotent, but not as safe: `PROPPATCH`, `MKCOL`.
    case otherIdempotent
    /// Any other token: `LOCK`, and every unregistered method.
    case other

    /// The method with the name `token`.
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

    /// The name on the wire; empty for the last three cases, which stand for many names.
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

    /// Whether the case stands for one name, `wireName`.
    public var isNamed: Bool {
        switch self {
        case .get, .head, .post, .put, .delete, .connect, .options, .trace, .patch: true
        case .otherSafe, .otherIdempotent, .other: false
        }
    }

    /// The method requests no change of state (RFC 9110 §9.2.1). Unknown methods count as not safe.
    @inlinable
    public var isSafe: Bool {
        switch self {
        case .get, .head, .options, .trace, .otherSafe: true
        case .post, .put, .delete, .connect, .patch, .otherIdempotent, .other: false
        }
    }

    /// Repeating the request has the effect of sending it once (RFC 9110 §9.2.2), so it may be retried.
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
    case http10, http11, http2

    /// The version as `HTTP-version` (RFC 9112 §2.3).
    public var name: StaticString {
        switch self {
        case .http10: "HTTP/1.0"
        case .http11: "HTTP/1.1"
        case .http2: "HTTP/2.0"
        }
    }

    /// The version as `received-protocol` in `Via` (RFC 9110 §7.6.3).
    var shortName: StaticString {
        switch self {
        case .http10: "1.0"
        case .http11: "1.1"
        case .http2: "2.0"
        }
    }
}

/// The registered methods (https://www.iana.org/assignments/http-methods) without a case in `Method`. `LOCK` is
/// omitted: it is neither safe nor idempotent, like an unregistered method (RFC 4918 §9.10).
extension Method {
    /// `PRI` is the first line of HTTP/2 (RFC 9113 §3.4). The others: RFC 4918, RFC 3253, RFC 5323, RFC 10008.
    static let safe: [StaticString] = ["PRI", "PROPFIND", "QUERY", "REPORT", "SEARCH"]

    /// RFC 2068, RFC 3253, RFC 3648, RFC 3744, RFC 4437, RFC 4791, RFC 4918, RFC 5842.
    static let idempotent: [StaticString] = [
        "ACL", "BASELINE-CONTROL", "BIND", "CHECKIN", "CHECKOUT", "COPY", "LABEL", "LINK", "MERGE", "MKACTIVITY",
        "MKCALENDAR", "MKCOL", "MKREDIRECTREF", "MKWORKSPACE", "MOVE", "ORDERPATCH", "PROPPATCH", "REBIND", "UNBIND",
        "UNCHECKOUT", "UNLINK", "UNLOCK", "UPDATE", "UPDATEREDIRECTREF", "VERSION-CONTROL",
    ]

    /// The case for `token` by its registration; `token` is not the name of a case.
    @inline(never) // Rare: kept out of the code of the common cases.
    static func registered(_ token: Span<UInt8>) -> Method {
        for name in safe where token.isEqual(to: name) { return .otherSafe }
        for name in idempotent where token.isEqual(to: name) { return .otherIdempotent }
        return .other
    }
}
