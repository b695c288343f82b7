import Bytes

/// Marks the entries and records of the machines that know a secret: HMAC-SHA-256 over the kind, the token, the place and
/// the bytes of each.
///
/// Without the secret, nobody can move an entry to another fetch, another place or another key, or cut a body short.
/// Somebody who can write to the engine can still bring back an older response of the same key.
package struct TierSeal: Hashable, Sendable {
    private let key: [UInt8]

    /// - Parameter secret: of any length; 32 random bytes are enough.
    package init(secret: Span<UInt8>) { key = HMAC.block(of: secret) }

    func head(_ bytes: Span<UInt8>, under token: ByteSlice) -> ByteSlice { mark("h", token, 0, bytes) }

    func content(_ bytes: ByteSlice, at offset: Int, under token: ByteSlice) -> ByteSlice {
        mark("d", token, offset, bytes.span)
    }

    func end(_ trailers: ByteSlice, at length: Int, under token: ByteSlice) -> ByteSlice {
        mark("e", token, length, trailers.span)
    }

    private func mark(_ kind: StaticString, _ token: ByteSlice, _ place: Int, _ bytes: Span<UInt8>) -> ByteSlice {
        var code = HMAC(key: key)
        code.add(kind.bytes)
        code.add(UInt64(token.count))
        code.add(token.span)
        code.add(UInt64(place))
        code.add(bytes)
        return ByteSlice(copying: code.code().span)
    }
}
