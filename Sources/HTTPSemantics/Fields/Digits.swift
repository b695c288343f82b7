extension Span where Element == UInt8 {
    /// The value of `1*DIGIT`, or `limit` if the value is larger; `nil` for any other text.
    /// - Parameter limit: at most 2^63.
    @inline(__always)
    func decimal(saturatingAt limit: UInt64) -> UInt64? {
        guard !isEmpty else { return nil }
        var value: UInt64 = 0
        for index in 0..<count {
            let digit = self[index] &- 0x30
            guard digit < 10 else { return nil }
            // A value of 10^18 with another digit exceeds every limit; smaller ones do not overflow.
            value = Swift.min(value, 1_000_000_000_000_000_000) &* 10 &+ UInt64(digit)
        }
        return Swift.min(value, limit)
    }
}
