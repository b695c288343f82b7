package import Bytes

/// The head of a response with its key, age and variant. It is the first entry of a stream; after a 304, another one
/// stands in the resource (`TierStored.freshened`).
///
///     version  1 byte
///     asof     16 bytes: the last purge that the leader knew before it sent the request
///     age      8 bytes
///     key, selecting, elsewhere, head     each with its length before it, in 4 bytes
///     mark     none, or 32 bytes: the seal of everything before it
///
/// Numbers have their high byte first.
package struct TierRecord: Hashable, Sendable {
    /// Of the layout.
    private static let version: UInt8 = 1
    /// The most bytes of a record: a key and a head of the largest size that is read from clients and origins, and as
    /// much again for the rest.
    package static let most = 256 << 10

    /// The whole primary key.
    package var key: ByteSlice
    /// A response that was requested before a purge of it has an `asof` before that purge.
    package var asof: TierPurgeID
    /// The age of the response, in milliseconds, when its head came (RFC 9111 §4.2.3).
    package var age: UInt64
    /// The names and values of the request's fields that select this variant, as for `TierKeys.variant(of:)`.
    package var selecting = ByteSlice.empty
    /// Where the body is if it is too long for the engine: an address of the leader's machine. Empty: in the stream.
    package var elsewhere = ByteSlice.empty
    /// Status line, fields and empty line of HTTP/1.1: no field for one connection, and no `Age`. With `Content-Length`
    /// if the length is known.
    package var head: ByteSlice

    package init(key: ByteSlice, asof: TierPurgeID, age: UInt64, head: ByteSlice) {
        self.key = key
        self.asof = asof
        self.age = age
        self.head = head
    }

    private static let (fixed, lists) = (1 + 24, 4)

    /// The record as the engine keeps it; `nil` if it is too large.
    /// - Parameter token: of the stream that it describes.
    package func written(under token: ByteSlice, seal: TierSeal?) -> ByteSlice? {
        let size = Self.fixed + Self.lists * 4 + key.count + selecting.count + elsewhere.count + head.count
        guard size + SHA256.size <= Self.most else { return nil }
        let bytes = ByteBuffer(capacity: size + SHA256.size)
        bytes.append(Self.version)
        for number in [asof.milliseconds, asof.number, age] { bytes.append(bigEndian: number, bytes: 8) }
        for part in [key, selecting, elsewhere, head] {
            bytes.append(bigEndian: UInt64(part.count), bytes: 4)
            bytes.append(part)
        }
        if let seal { bytes.append(seal.head(bytes.span, under: token)) }
        return bytes.copied()
    }

    /// Reads the bytes that another machine, or anybody, wrote.
    /// - Parameters:
    ///   - key: the key that was looked up.
    ///   - token: of the stream.
    package init(reading bytes: ByteSlice, for key: Span<UInt8>, under token: ByteSlice, seal: TierSeal?)
        throws(TierRefusal)
    {
        guard bytes.count <= Self.most else { throw .form }
        guard !bytes.isEmpty, bytes.span[0] == Self.version else { throw .version }
        var reading = Reading(bytes: bytes, place: 1)
        let (milliseconds, number) = (try reading.number(8), try reading.number(8))
        asof = TierPurgeID(milliseconds: milliseconds, number: number)
        age = try reading.number(8)
        guard age <= TierNumbers.greatest else { throw .form }
        self.key = try reading.part()
        selecting = try reading.part()
        elsewhere = try reading.part()
        head = try reading.part()
        let mark = bytes[reading.place..<bytes.count]
        guard mark.isEmpty || mark.count == SHA256.size else { throw .form }
        if let seal, seal.head(bytes.span.extracting(0..<reading.place), under: token) != mark { throw .seal }
        guard self.key.span.isEqual(to: key) else { throw .otherKey }
    }

    /// The bytes that are read, and how far.
    private struct Reading {
        let bytes: ByteSlice
        var place: Int

        mutating func number(_ size: Int) throws(TierRefusal) -> UInt64 {
            guard bytes.count - place >= size else { throw .form }
            var number: UInt64 = 0
            for index in place..<place + size { number = number << 8 | UInt64(bytes.span[index]) }
            place += size
            return number
        }

        mutating func part() throws(TierRefusal) -> ByteSlice {
            let size = Int(try number(4))
            guard bytes.count - place >= size else { throw .form }
            place += size
            return bytes[place - size..<place]
        }
    }
}

extension ByteBuffer {
    fileprivate func append(bigEndian number: UInt64, bytes: Int) {
        for index in (0..<bytes).reversed() { append(UInt8(truncatingIfNeeded: number >> UInt64(index * 8))) }
    }
}
