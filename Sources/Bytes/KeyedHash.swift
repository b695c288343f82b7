/// SipHash-1-3 of bytes under a secret key, so that no client can aim keys at one bucket or shard.
///
/// Source: Aumasson and Bernstein, "SipHash: a fast short-input PRF" (2012), with one compression and three
/// finalisation rounds, as in most languages' hash tables.
public struct KeyedHash: Sendable {
    @usableFromInline let k0: UInt64
    @usableFromInline let k1: UInt64

    /// - Parameters: both halves of the secret key; random, the same for the life of the process.
    public init(k0: UInt64, k1: UInt64) {
        self.k0 = k0
        self.k1 = k1
    }

    /// A random key, from the system's generator.
    public static func random() -> KeyedHash {
        KeyedHash(k0: .random(in: .min ... .max), k1: .random(in: .min ... .max))
    }

    /// The hash of `bytes` under the key. Any thread; allocates nothing.
    @inlinable
    public func hash(_ bytes: Span<UInt8>) -> UInt64 {
        var v0 = k0 ^ 0x736f_6d65_7073_6575
        var v1 = k1 ^ 0x646f_7261_6e64_6f6d
        var v2 = k0 ^ 0x6c79_6765_6e65_7261
        var v3 = k1 ^ 0x7465_6462_7974_6573
        let total = bytes.count
        unsafe bytes.withUnsafeBufferPointer { buffer in
            guard let base = unsafe UnsafeRawPointer(buffer.baseAddress) else { return }
            var index = 0
            while index &+ 8 <= total {
                // In bounds by the loop's condition.
                let word = unsafe UInt64(littleEndian: base.loadUnaligned(fromByteOffset: index, as: UInt64.self))
                v3 ^= word
                Self.round(&v0, &v1, &v2, &v3)
                v0 ^= word
                index &+= 8
            }
        }
        var last = UInt64(truncatingIfNeeded: total) << 56
        var shift: UInt64 = 0
        var index = total & ~7
        while index < total {
            last |= UInt64(bytes[index]) << shift
            shift &+= 8
            index &+= 1
        }
        v3 ^= last
        Self.round(&v0, &v1, &v2, &v3)
        v0 ^= last
        v2 ^= 0xff
        Self.round(&v0, &v1, &v2, &v3)
        Self.round(&v0, &v1, &v2, &v3)
        Self.round(&v0, &v1, &v2, &v3)
        return v0 ^ v1 ^ v2 ^ v3
    }

    /// The hash of three numbers under the key: of their 24 bytes in little-endian order.
    public func hash(_ first: UInt64, _ second: UInt64, _ third: UInt64) -> UInt64 {
        var v0 = k0 ^ 0x736f_6d65_7073_6575
        var v1 = k1 ^ 0x646f_7261_6e64_6f6d
        var v2 = k0 ^ 0x6c79_6765_6e65_7261
        var v3 = k1 ^ 0x7465_6462_7974_6573
        // The last word has the number of bytes, and no byte of them.
        let words: InlineArray<4, UInt64> = [first, second, third, 24 << 56]
        for index in words.indices {
            v3 ^= words[index]
            Self.round(&v0, &v1, &v2, &v3)
            v0 ^= words[index]
        }
        v2 ^= 0xff
        Self.round(&v0, &v1, &v2, &v3)
        Self.round(&v0, &v1, &v2, &v3)
        Self.round(&v0, &v1, &v2, &v3)
        return v0 ^ v1 ^ v2 ^ v3
    }

    @inlinable @inline(__always)
    static func round(_ v0: inout UInt64, _ v1: inout UInt64, _ v2: inout UInt64, _ v3: inout UInt64) {
        v0 = v0 &+ v1
        v1 = rotate(v1, 13) ^ v0
        v0 = rotate(v0, 32)
        v2 = v2 &+ v3
        v3 = rotate(v3, 16) ^ v2
        v0 = v0 &+ v3
        v3 = rotate(v3, 21) ^ v0
        v2 = v2 &+ v1
        v1 = rotate(v1, 17) ^ v2
        v2 = rotate(v2, 32)
    }

    @inlinable @inline(__always)
    static func rotate(_ value: UInt64, _ bits: UInt64) -> UInt64 { value << bits | value >> (64 &- bits) }
}
