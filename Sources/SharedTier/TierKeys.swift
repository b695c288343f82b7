package import Bytes

/// The engine's names for one primary key. All have one hash tag, so that one node of a cluster has all of them, and a
/// function can change them together.
///
///     co:{h}:m             the resource: its Vary and the records of complete responses
///     co:{h}:l:<variant>   the lease of the machine that fetches
///     co:{h}:b:<token>     the stream of one fetch
///
/// The engine's names have a hash of 128 bits of the key; the record has the key itself, which is compared
/// (`TierRecord`). A value; any thread.
package struct TierKeys: Hashable, Sendable {
    /// All names of the resource begin with it.
    private let base: ByteSlice
    /// The name of the resource.
    package let resource: ByteSlice

    /// - Parameters:
    ///   - prefix: of all names; without `{` and `}`.
    ///   - primary: the bytes of the `CacheKey`.
    package init(prefix: ByteSlice, primary: Span<UInt8>) {
        let name = ByteBuffer(capacity: prefix.count + 28)
        name.append(prefix)
        name.append(":{")
        TierHash(of: primary).append(to: name)
        name.append("}:")
        base = name.copied()
        name.append("m")
        resource = name.copied()
    }

    /// The name of the lease.
    /// - Parameter variant: see `variant(of:)`.
    package func lease(_ variant: ByteSlice) -> ByteSlice { named("l:", variant) }

    /// The name of the stream of a fetch.
    package func stream(_ token: ByteSlice) -> ByteSlice { named("b:", token) }

    private func named(_ kind: StaticString, _ rest: ByteSlice) -> ByteSlice {
        let name = ByteBuffer(capacity: base.count + 2 + rest.count)
        name.append(base)
        name.append(kind)
        name.append(rest)
        return name.copied()
    }

    /// The name of the log of purges.
    package static func purges(prefix: ByteSlice) -> ByteSlice {
        let name = ByteBuffer(capacity: prefix.count + 6)
        name.append(prefix)
        name.append(":purge")
        return name.copied()
    }

    /// A short name for a variant: empty if nothing selects it.
    /// - Parameter selecting: the names and values of the request's fields that select it, in a form that is the same on
    ///   all machines.
    package static func variant(of selecting: Span<UInt8>) -> ByteSlice {
        guard !selecting.isEmpty else { return .empty }
        let name = ByteBuffer(capacity: TierHash.length)
        TierHash(of: selecting).append(to: name)
        return name.copied()
    }
}

/// A hash of 128 bits that is the same on all machines. Somebody may make a collision on purpose, so a machine compares
/// the whole key in the record that it finds.
package struct TierHash: Hashable, Sendable {
    /// The number of its characters.
    static let length = 22

    private let (high, low): (UInt64, UInt64)

    init(_ high: UInt64, _ low: UInt64) { (self.high, self.low) = (high, low) }

    package init(of bytes: Span<UInt8>) {
        // The first digits of pi's fraction, as everybody may choose them.
        self.init(
            KeyedHash(k0: 0x243f_6a88_85a3_08d3, k1: 0x1319_8a2e_0370_7344).hash(bytes),
            KeyedHash(k0: 0xa409_3822_299f_31d0, k1: 0x082e_fa98_ec4e_6c89).hash(bytes))
    }

    /// Appends 22 characters: base64 for URLs (RFC 4648 §5), with the bits of the last one in its upper four.
    func append(to buffer: ByteBuffer) {
        let digits = StaticString("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_").bytes
        var rest = UInt128(high) << 64 | UInt128(low)
        for _ in 0..<Self.length - 1 {
            buffer.append(digits[Int(rest >> 122)])
            rest <<= 6
        }
        buffer.append(digits[Int(rest >> 122)])
    }
}
