/// The field names that the proxy acts on. A name is recognised once, when its line is parsed; from then on it is a
/// number.
///
/// The raw value is the bit in a `FieldSet`.
public enum KnownField: UInt8, Sendable, CaseIterable, BitwiseCopyable {
    case other = 0
    // Framing and connection (RFC 9112, RFC 9110 §7.6)
    case connection, contentLength, transferEncoding, te, trailer, upgrade, expect, keepAlive, proxyConnection,
        http2Settings, host
    // Caching (RFC 9111 and friends)
    case age, cacheControl, cdnCacheControl, expires, date, pragma, warning, vary, noVarySearch, cacheStatus
    case cacheGroups, cacheGroupInvalidation
    // Validation (RFC 9110 §8.8, §13)
    case etag, lastModified, ifMatch, ifNoneMatch, ifModifiedSince, ifUnmodifiedSince, ifRange
    // Ranges and representation
    case range, acceptRanges, contentRange, contentType, contentEncoding, contentLanguage, contentLocation, location
    // The content of one message (RFC 9530 §2; RFC 2616 §14.15)
    case contentDigest, contentMD5
    // Access and users
    case authorization, proxyAuthorization, proxyAuthenticate, proxyAuthenticationInfo, setCookie, cookie
    // Path of the message
    case via, cdnLoop, forwarded, xForwardedFor, xForwardedProto, xForwardedHost, proxyStatus, maxForwards
    case retryAfter, server, xRequestID
    // Common nominees of `Vary`
    case accept, acceptEncoding, acceptLanguage, userAgent, referer, origin
}

/// A set of known fields, one bit each.
public struct FieldSet: OptionSet, Sendable, Hashable {
    public let rawValue: UInt64
    @inlinable public init(rawValue: UInt64) { self.rawValue = rawValue }
    /// The set with only `field`.
    @inlinable public init(_ field: KnownField) { rawValue = 1 << UInt64(field.rawValue) }
    /// One bit test, without a temporary set.
    @inlinable public func contains(_ field: KnownField) -> Bool { rawValue & 1 << UInt64(field.rawValue) != 0 }
    @inlinable public mutating func insert(_ field: KnownField) { self = union(FieldSet(field)) }
    /// The set with `field` as well. A constant that is made with this operator is computed by the compiler; a list of
    /// fields would be gone through at run time.
    @inlinable
    public static func | (set: FieldSet, field: KnownField) -> FieldSet { set.union(FieldSet(field)) }
}
