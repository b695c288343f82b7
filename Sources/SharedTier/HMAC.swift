import Bytes

/// HMAC-SHA-256 (RFC 2104, FIPS 198-1) of bytes that are added one after another.
struct HMAC: Sendable {
    private let key: [UInt8]
    private var inner = SHA256()

    /// - Parameter key: a block, from `block(of:)`.
    init(key: [UInt8]) {
        self.key = key
        for byte in key { inner.add(byte ^ 0x36) }
    }

    /// A key of any length as a block.
    static func block(of key: Span<UInt8>) -> [UInt8] {
        var block: [UInt8] = []
        if key.count > SHA256.blockSize {
            var hash = SHA256()
            hash.add(key)
            block = hash.digest()
        } else {
            for index in key.indices { block.append(key[index]) }
        }
        return block + [UInt8](repeating: 0, count: SHA256.blockSize - block.count)
    }

    mutating func add(_ bytes: Span<UInt8>) { inner.add(bytes) }
    mutating func add(_ number: UInt64) { inner.add(number) }

    /// The 32 bytes of the code.
    consuming func code() -> [UInt8] {
        var outer = SHA256()
        for byte in key { outer.add(byte ^ 0x5c) }
        for byte in inner.digest() { outer.add(byte) }
        return outer.digest()
    }
}
