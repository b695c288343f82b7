import Glibc

/// Rendezvous hashing with weights (`Balance.hash`): of all places, a key belongs to the one with the highest score. If
/// a place leaves, only its keys move, each to the place with the next score; when it is back, they are.
///
/// No seed: the same key belongs to the same server on each machine, and after a restart.
enum Rendezvous {
    /// FNV-1a, then mixed, since similar keys differ in a few low bits only.
    static func hash(_ bytes: some Sequence<UInt8>) -> UInt64 {
        var hash: UInt64 = 0xcbf2_9ce4_8422_2325
        for byte in bytes { hash = (hash ^ UInt64(byte)) &* 0x0000_0100_0000_01b3 }
        return mixed(hash)
    }

    static func hash(_ bytes: Span<UInt8>) -> UInt64 {
        var hash: UInt64 = 0xcbf2_9ce4_8422_2325
        for index in bytes.indices { hash = (hash ^ UInt64(bytes[index])) &* 0x0000_0100_0000_01b3 }
        return mixed(hash)
    }

    /// The finalizer of SplitMix64.
    static func mixed(_ hash: UInt64) -> UInt64 {
        var z = hash
        z = (z ^ z >> 30) &* 0xbf58_476d_1ce4_e5b9
        z = (z ^ z >> 27) &* 0x94d0_49bb_1331_11eb
        return z ^ z >> 31
    }

    /// −weight / ln(u), where u in (0, 1) is drawn by both hashes: the place with the highest score has a share of the
    /// keys in proportion to its weight (Schindelhauer and Schomaker, 'Weighted distributed hash tables', 2005).
    static func score(_ key: UInt64, _ place: UInt64, weight: Double) -> Double {
        let drawn = (Double(mixed(key ^ place) >> 11) + 0.5) / Double(1 << 53 as UInt64)
        return -weight / log(drawn)
    }
}
