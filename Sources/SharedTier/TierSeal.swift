import Bytes

/// Marks what a machine writes to the engine, so that others see what somebody without the secret wrote: HMAC-SHA-256
/// (RFC 2104, FIPS 198-1) over the kind, the token, the place and the bytes of each entry.
///
/// Nothing can be moved to another fetch, another place or another key, or be cut short. It can be repeated: who can
/// write to the engine can bring back an older response of the same key.
package struct TierSeal: Hashable, Sendable {
    /// The secret, filled up to a block.
    private let key: [UInt8]

    /// - Parameter secret: of any length; 32 random bytes are enough.
    package init(secret: Span<UInt8>) {
        var key: [UInt8] = []
        if secret.count > SHA256.blockSize {
            var hash = SHA256()
            hash.add(secret)
            key = hash.digest()
        } else {
            for index in secret.indices { key.append(secret[index]) }
        }
        key += [UInt8](repeating: 0, count: SHA256.blockSize - key.count)
        self.key = key
    }

    func head(_ bytes: Span<UInt8>, under token: ByteSlice) -> ByteSlice { mark("h", token, 0, bytes) }

    func content(_ bytes: ByteSlice, at offset: Int, under token: ByteSlice) -> ByteSlice {
        mark("d", token, offset, bytes.span)
    }

    func end(_ trailers: ByteSlice, at length: Int, under token: ByteSlice) -> ByteSlice {
        mark("e", token, length, trailers.span)
    }

    func elsewhere(_ address: ByteSlice, at offset: Int, under token: ByteSlice) -> ByteSlice {
        mark("w", token, offset, address.span)
    }

    private func mark(_ kind: StaticString, _ token: ByteSlice, _ place: Int, _ bytes: Span<UInt8>) -> ByteSlice {
        var inner = SHA256()
        for byte in key { inner.add(byte ^ 0x36) }
        inner.add(kind.bytes)
        inner.add(UInt64(token.count))
        inner.add(token.span)
        inner.add(UInt64(place))
        inner.add(bytes)
        var outer = SHA256()
        for byte in key { outer.add(byte ^ 0x5c) }
        for byte in inner.digest() { outer.add(byte) }
        return ByteSlice(copying: outer.digest().span)
    }
}
