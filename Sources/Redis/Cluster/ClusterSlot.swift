import Bytes

/// One of the 16,384 parts of all keys. Each part belongs to one node of a cluster.
///
/// Source: https://redis.io/docs/latest/operate/oss_and_stack/reference/cluster-spec, "Key distribution model" and
/// "Hash tags".
package struct ClusterSlot: Hashable, Sendable {
    /// The number of slots.
    package static let count = 16384

    /// From 0 to 16,383.
    package let number: UInt16

    /// - Returns: `nil` if there is no such slot.
    init?(_ number: Int64) {
        guard number >= 0, number < Int64(Self.count) else { return nil }
        self.number = UInt16(number)
    }

    /// The slot of a key. If the key has a tag, which stands between the first `{` and the next `}`, only the tag
    /// counts: keys with one tag are on one node.
    package init(of key: Span<UInt8>) {
        var hashed = 0..<key.count
        if let open = key.firstIndex(of: UInt8(ascii: "{")),
            let close = key.firstIndex(of: UInt8(ascii: "}"), from: open + 1), close > open + 1
        {
            hashed = open + 1..<close
        }
        number = Self.checksum(key.extracting(hashed)) % UInt16(Self.count)
    }

    /// CRC16 in the form of XMODEM: polynomial 1021, begun with 0, highest bit first.
    private static func checksum(_ bytes: Span<UInt8>) -> UInt16 {
        var sum: UInt16 = 0
        for index in bytes.indices {
            sum ^= UInt16(bytes[index]) << 8
            for _ in 0..<8 { sum = sum & 0x8000 != 0 ? sum << 1 ^ 0x1021 : sum << 1 }
        }
        return sum
    }
}
