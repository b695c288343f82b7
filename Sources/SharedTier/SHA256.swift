import Bytes

/// SHA-256 (FIPS 180-4), a block at a time.
///
/// Written here, since the program links no library that has it: OpenSSL is not among its dependencies, and
/// swift-crypto would bring BoringSSL and FoundationEssentials for these lines. Only engines that strangers can write to
/// need it (`secret-file`).
struct SHA256: Sendable {
    static let blockSize = 64
    static let size = 32

    private static let constants: [UInt32] = [
        0x428a_2f98, 0x7137_4491, 0xb5c0_fbcf, 0xe9b5_dba5, 0x3956_c25b, 0x59f1_11f1, 0x923f_82a4, 0xab1c_5ed5,
        0xd807_aa98, 0x1283_5b01, 0x2431_85be, 0x550c_7dc3, 0x72be_5d74, 0x80de_b1fe, 0x9bdc_06a7, 0xc19b_f174,
        0xe49b_69c1, 0xefbe_4786, 0x0fc1_9dc6, 0x240c_a1cc, 0x2de9_2c6f, 0x4a74_84aa, 0x5cb0_a9dc, 0x76f9_88da,
        0x983e_5152, 0xa831_c66d, 0xb003_27c8, 0xbf59_7fc7, 0xc6e0_0bf3, 0xd5a7_9147, 0x06ca_6351, 0x1429_2967,
        0x27b7_0a85, 0x2e1b_2138, 0x4d2c_6dfc, 0x5338_0d13, 0x650a_7354, 0x766a_0abb, 0x81c2_c92e, 0x9272_2c85,
        0xa2bf_e8a1, 0xa81a_664b, 0xc24b_8b70, 0xc76c_51a3, 0xd192_e819, 0xd699_0624, 0xf40e_3585, 0x106a_a070,
        0x19a4_c116, 0x1e37_6c08, 0x2748_774c, 0x34b0_bcb5, 0x391c_0cb3, 0x4ed8_aa4a, 0x5b9c_ca4f, 0x682e_6ff3,
        0x748f_82ee, 0x78a5_636f, 0x84c8_7814, 0x8cc7_0208, 0x90be_fffa, 0xa450_6ceb, 0xbef9_a3f7, 0xc671_78f2,
    ]

    private var state: InlineArray<8, UInt32> = [
        0x6a09_e667, 0xbb67_ae85, 0x3c6e_f372, 0xa54f_f53a, 0x510e_527f, 0x9b05_688c, 0x1f83_d9ab, 0x5be0_cd19,
    ]
    private var words = InlineArray<16, UInt32>(repeating: 0)
    private var count: UInt64 = 0

    mutating func add(_ bytes: Span<UInt8>) {
        for index in bytes.indices { add(bytes[index]) }
    }

    mutating func add(_ byte: UInt8) {
        let place = Int(count & 63)
        words[place >> 2] = words[place >> 2] << 8 | UInt32(byte)
        count += 1
        if place == 63 { mix() }
    }

    mutating func add(_ number: UInt64) {
        for shift in stride(from: 56, through: 0, by: -8) { add(UInt8(truncatingIfNeeded: number >> UInt64(shift))) }
    }

    /// The digest of all bytes that were added.
    consuming func digest() -> [UInt8] {
        let bits = count * 8
        add(0x80 as UInt8)
        while count & 63 != 56 { add(0 as UInt8) }
        add(bits)
        var digest: [UInt8] = []
        digest.reserveCapacity(Self.size)
        for index in state.indices {
            for shift: UInt32 in [24, 16, 8, 0] { digest.append(UInt8(truncatingIfNeeded: state[index] >> shift)) }
        }
        return digest
    }

    private mutating func mix() {
        var schedule = words
        var now = state
        for round in 0..<64 {
            let place = round & 15
            if round >= 16 {
                let (early, late) = (schedule[(round + 1) & 15], schedule[(round + 14) & 15])
                let first = Self.rotate(early, 7) ^ Self.rotate(early, 18) ^ early >> 3
                let second = Self.rotate(late, 17) ^ Self.rotate(late, 19) ^ late >> 10
                schedule[place] = schedule[place] &+ first &+ schedule[(round + 9) & 15] &+ second
            }
            let (a, e) = (now[0], now[4])
            let choice = e & now[5] ^ ~e & now[6]
            let sum = Self.rotate(e, 6) ^ Self.rotate(e, 11) ^ Self.rotate(e, 25)
            let first = now[7] &+ sum &+ choice &+ Self.constants[round] &+ schedule[place]
            let majority = a & now[1] ^ a & now[2] ^ now[1] & now[2]
            let second = (Self.rotate(a, 2) ^ Self.rotate(a, 13) ^ Self.rotate(a, 22)) &+ majority
            now = [first &+ second, a, now[1], now[2], now[3] &+ first, e, now[5], now[6]]
        }
        for index in state.indices { state[index] = state[index] &+ now[index] }
    }

    private static func rotate(_ word: UInt32, _ bits: UInt32) -> UInt32 { word >> bits | word << (32 - bits) }
}
