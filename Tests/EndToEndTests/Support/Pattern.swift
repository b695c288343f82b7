import Glibc

/// An endless stream of bytes that both ends can compute, so that a body of any size is checked without being kept.
/// Two seeds give streams that differ at nearly every offset: a response that went to the wrong client shows.
struct Pattern: Sendable, Equatable {
    var seed = 0

    /// Prime, so that shifts by chunk or page sizes never look right by accident.
    private static let period = 8191
    private static let window = 65536

    private static let table: [UInt8] = {
        var state: UInt32 = 0x2545_F491
        let once = (0..<period).map { _ -> UInt8 in
            state = state &* 1_664_525 &+ 1_013_904_223
            return UInt8(truncatingIfNeeded: state >> 24)
        }
        return (0...(window / period + 1)).flatMap { _ in once }
    }()

    private func start(of offset: Int) -> Int { (offset + seed * 1_009) % Self.period }

    func bytes(_ range: Range<Int>) -> [UInt8] {
        var result: [UInt8] = []
        result.reserveCapacity(range.count)
        var offset = range.lowerBound
        while offset < range.upperBound {
            let first = start(of: offset)
            let count = min(range.upperBound - offset, Self.window)
            result += Self.table[first..<first + count]
            offset += count
        }
        return result
    }

    /// Are `bytes` what stands at `offset`?
    func matches(_ bytes: ArraySlice<UInt8>, at offset: Int) -> Bool {
        unsafe bytes.withUnsafeBytes { got in
            unsafe Self.table.withUnsafeBytes { table in
                var done = 0
                while done < got.count {
                    let count = min(got.count - done, Self.window)
                    let expected = unsafe table.baseAddress! + start(of: offset + done)
                    guard unsafe memcmp(got.baseAddress! + done, expected, count) == 0 else { return false }
                    done += count
                }
                return true
            }
        }
    }
}
