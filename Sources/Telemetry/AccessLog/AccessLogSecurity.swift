public import Bytes

/// What the handshake of a connection has agreed on, as the bytes that stand in the batch: the version, the cipher and
/// the name that the client asked for, with a space between them. The first two have no spaces; the name may have any
/// bytes, and is empty without one.
///
/// Made once for each connection, so that the record of a request copies one run of bytes.
public enum AccessLogSecurity {
    /// The bytes for one connection. Makes a string: once for each handshake.
    /// - Parameters:
    ///   - version: such as `TLSv1.3`.
    ///   - cipher: in the words of the IANA.
    ///   - name: empty if the client asked for none.
    public static func bytes(version: StaticString, cipher: String, name: String) -> ByteSlice {
        ByteSlice("\(version) \(cipher) \(name)")
    }

    /// The three parts of `bytes`, as ranges in it. The end may be clipped.
    static func parts(of bytes: Span<UInt8>) -> (version: Range<Int>, cipher: Range<Int>, name: Range<Int>) {
        func end(from start: Int) -> Int {
            var index = start
            while index < bytes.count, bytes[index] != UInt8(ascii: " ") { index += 1 }
            return index
        }
        let version = 0..<end(from: 0)
        let cipherStart = min(version.upperBound + 1, bytes.count)
        let cipher = cipherStart..<end(from: cipherStart)
        return (version, cipher, min(cipher.upperBound + 1, bytes.count)..<bytes.count)
    }
}
