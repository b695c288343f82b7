public import Bytes
public import HTTPSemantics

/// A primary key as `No-Vary-Search` divides it: the bytes before the query, the query, and the bytes that a route adds
/// behind it. No part can contain the bytes that separate the parts (see `KeyPolicy`).
///
/// Once a stored response with `No-Vary-Search` has taught a variation for a path (`SearchVariations`), a request for it
/// has two keys: that of its URL, and one that all equivalent URLs share under the latest variation. The key of the URL
/// is looked up first, so that a hit costs nothing extra while the path has no variation, and responses stored earlier
/// are found. A response under it wins while it is fresh, or if it is the more recent one. Fetches are led and joined
/// under the shared key; the origin gets the leader's query as it was sent.
///
/// Order: an invalidation takes the URL's own key first and asks for the variations afterwards; a fetch learns a
/// variation first and looks at the invalidations of the URL's own key afterwards. The later one sees the earlier one.
///
/// ```
/// http host /path ? query [0 …]     as sent
/// http host /path ␠ number ␠ canonical query [0 …]     under a variation
/// ```
public struct SearchKey {
    /// Scheme, authority and path.
    let path: Range<Int>
    private let query: Range<Int>

    /// - Parameter key: the key of the request as sent.
    public init(_ key: Span<UInt8>) {
        let end = key.firstIndex(of: 0) ?? key.count
        let mark = key.extracting(0..<end).firstIndex(of: UInt8(ascii: "?"))
        path = 0..<(mark ?? end)
        query = min(path.upperBound + 1, end)..<end
    }

    /// Appends the key that all requests share that are equivalent under `variation`.
    /// - Parameters:
    ///   - key: the key of the request as sent.
    ///   - memory: holds the parsed query.
    public static func append(
        _ key: Span<UInt8>, under variation: SearchVariation, to buffer: ByteBuffer, using memory: QueryParameters
    ) {
        let parts = SearchKey(key)
        buffer.append(key.extracting(parts.path))
        buffer.append(UInt8(ascii: " "))
        buffer.append(decimal: variation.number)
        buffer.append(UInt8(ascii: " "))
        variation.rule.append(canonical: key.extracting(parts.query), to: buffer, using: memory)
        buffer.append(key.extracting(parts.query.upperBound...))
    }

    /// Whether one response with `rule` may answer requests with both keys. Off the hot path.
    public static func areEquivalent(_ left: Span<UInt8>, _ right: Span<UInt8>, under rule: NoVarySearch) -> Bool {
        guard !rule.isDefault else { return left.isEqual(to: right) }
        let (one, other) = (SearchKey(left), SearchKey(right))
        guard left.extracting(one.path).isEqual(to: right.extracting(other.path)),
            left.extracting(one.query.upperBound...).isEqual(to: right.extracting(other.query.upperBound...))
        else { return false }
        return rule.areEquivalent(
            ByteSlice(copying: left.extracting(one.query)), ByteSlice(copying: right.extracting(other.query)))
    }
}
