import Bytes

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
