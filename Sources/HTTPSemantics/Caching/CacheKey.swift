public import Bytes

/// The primary cache key (RFC 9111 §2): scheme, authority and target as bytes, with their hash.
public struct CacheKey: Hashable, Sendable {
    /// Of `bytes`, under the process's secret key (`KeyedHash`).
    public let hash: UInt64
    public let bytes: ByteSlice

    @inlinable
    public init(hash: UInt64, bytes: ByteSlice) {
        self.hash = hash
        self.bytes = bytes
    }

    @inlinable
    public static func == (left: CacheKey, right: CacheKey) -> Bool { left.hash == right.hash && left.bytes == right.bytes }

    @inlinable
    public func hash(into hasher: inout Hasher) { hasher.combine(hash) }
}
