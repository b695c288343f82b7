public import Bytes

/// The primary cache key (RFC 9111 §2): scheme, authority and target as bytes, with their hash.
///
///     scheme authority /path?query [0 …]      the route's additions follow a byte 0 (`KeyPolicy`)
public struct CacheKey: Hashable, Sendable {
    /// The hash of `bytes`, under the process's secret key (`KeyedHash`).
    public let hash: UInt64
    public let bytes: ByteSlice

    @inlinable
    public init(hash: UInt64, bytes: ByteSlice) {
        self.hash = hash
        self.bytes = bytes
    }

    @inlinable
    public static func == (left: CacheKey, right: CacheKey) -> Bool {
        left.hash == right.hash && left.bytes == right.bytes
    }

    @inlinable
    public func hash(into hasher: inout Hasher) { hasher.combine(hash) }

    /// The request's host in normal form, with the port if that is not the default one. Empty if the request named no
    /// host.
    public var authority: Span<UInt8> {
        @_lifetime(borrow self)
        get {
            let bytes = bytes.span
            // The scheme is a few bytes: a loop costs less than a search.
            var start = 0
            while start < bytes.count, bytes[start] != UInt8(ascii: " ") { start += 1 }
            start = min(start + 1, bytes.count)
            return bytes.extracting(start..<(bytes.firstIndex(of: UInt8(ascii: " "), from: start) ?? start))
        }
    }

    /// The URL: all bytes before the route's additions.
    public var url: Span<UInt8> {
        @_lifetime(borrow self)
        get {
            let bytes = bytes.span
            return bytes.extracting(0..<(bytes.firstIndex(of: 0) ?? bytes.count))
        }
    }

    /// Whether the key's URL is `url` or below it: like a route's `path`, `url` matches only at the end of a segment.
    /// - Parameter url: scheme, authority and path as in a key.
    public func isBelow(_ url: Span<UInt8>) -> Bool {
        let bytes = bytes.span
        guard bytes.count >= url.count, bytes.extracting(first: url.count).isEqual(to: url) else { return false }
        if bytes.count == url.count || url.count > 0 && url[url.count - 1] == UInt8(ascii: "/") { return true }
        // The byte after a path starts a segment, a query, a variation's number (`SearchKey`) or the route's additions.
        return switch bytes[url.count] {
        case UInt8(ascii: "/"), UInt8(ascii: "?"), UInt8(ascii: " "), 0: true
        default: false
        }
    }
}
