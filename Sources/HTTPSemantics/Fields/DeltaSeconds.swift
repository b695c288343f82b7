/// Seconds in caching fields: whole, never negative, and at most 2^31, which stands for infinity.
///
/// RFC 9111 §1.2.2: a value or a sum that would overflow becomes 2^31, never a small or a negative number.
public enum DeltaSeconds {
    /// 2^31 seconds, more than 68 years.
    public static let infinite: UInt32 = 2_147_483_648

    /// The value of `1*DIGIT` (RFC 9111 §1.2.2); `nil` for any other text.
    public static func parse(_ text: Span<UInt8>) -> UInt32? {
        text.decimal(saturatingAt: UInt64(infinite)).map { UInt32($0) }
    }

    /// `seconds` clamped to `0...infinite`.
    @inlinable
    public static func saturating(_ seconds: Int64) -> UInt32 {
        if seconds <= 0 { return 0 }
        return seconds >= 2_147_483_648 ? 2_147_483_648 : UInt32(truncatingIfNeeded: seconds)
    }

    /// `seconds` in nanoseconds. Does not overflow for values up to `infinite`, nor for the sum of three.
    @inlinable
    public static func nanoseconds(_ seconds: UInt32) -> Int64 { Int64(seconds) &* 1_000_000_000 }
}

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
