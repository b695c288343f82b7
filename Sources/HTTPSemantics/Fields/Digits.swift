extension Span where Element == UInt8 {
    /// The number that `1*DIGIT` stands for, or `limit` where it is larger; `nil` where anything else stands here.
    /// - Parameter limit: at most 2^63.
    @inline(__always)
    func decimal(saturatingAt limit: UInt64) -> UInt64? {
        guard !isEmpty else { return nil }
        var value: UInt64 = 0
        for index in 0..<count {
            let digit = self[index] &- 0x30
            guard digit < 10 else { return nil }
            // What has more than 18 digits is beyond any limit with one more; until then nothing overflows.
            value = Swift.min(value, 1_000_000_000_000_000_000) &* 10 &+ UInt64(digit)
        }
        return Swift.min(value, limit)
    }
}
