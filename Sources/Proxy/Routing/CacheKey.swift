import Bytes

/// The primary cache key (RFC 9111 §2): scheme, authority and target as bytes, with their keyed hash.
struct CacheKey: Hashable, Sendable {
    let hash: UInt64
    let bytes: ByteSlice

    func hash(into hasher: inout Hasher) { hasher.combine(hash) }
}
