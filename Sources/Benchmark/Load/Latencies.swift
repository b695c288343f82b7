/// The durations of requests, in buckets whose width is less than two hundredths of the durations in them.
struct Latencies {
    /// Each doubling is divided into 2 to the power of `bits` buckets.
    private static let bits = 6
    private var counts = [Int](repeating: 0, count: 48 << bits)
    private(set) var count = 0

    mutating func add(nanoseconds: Int64) {
        counts[min(counts.count - 1, Self.bucket(UInt64(max(0, nanoseconds))))] += 1
        count += 1
    }

    /// Microseconds within which `percent` % of the requests were done; NaN if there were none.
    func percentile(_ percent: Double) -> Double {
        guard count > 0 else { return .nan }
        let rank = Int(Double(count - 1) * percent / 100)
        var seen = 0
        for (bucket, here) in counts.enumerated() {
            seen += here
            if seen > rank { return Double(Self.middle(bucket)) / 1000 }
        }
        return .nan
    }

    private static func bucket(_ value: UInt64) -> Int {
        let shift = max(0, 63 - (value | 1).leadingZeroBitCount - bits)
        return shift << bits + Int(value >> UInt64(shift))
    }

    private static func middle(_ bucket: Int) -> UInt64 {
        let shift = max(0, bucket >> bits - 1)
        let low = UInt64(bucket - shift << bits) << UInt64(shift)
        return low + (1 << UInt64(shift)) / 2
    }
}
