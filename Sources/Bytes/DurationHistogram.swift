import Synchronization

/// The number of durations in each bucket, and their sum: a histogram in the buckets of the metrics page.
///
/// One thread adds, any thread reads. With a single writer a plain load and store is enough, so adding costs no locked
/// instruction; readers see each number whole, but not all numbers at one moment.
public struct DurationHistogram: ~Copyable, Sendable {
    /// One number for each bucket, and after them the sum.
    private let cells: InlineArray<20, Atomic<UInt64>> = .init { _ in Atomic<UInt64>(0) }

    public init() {}

    /// Adds one duration. Call only on the one thread that adds: a second writer would lose counts.
    public borrowing func add(nanoseconds: UInt64) {
        increase(DurationCounts.bucket(of: nanoseconds), by: 1)
        increase(DurationCounts.bucketCount, by: nanoseconds)
    }

    /// The current values. From any thread.
    public borrowing func read() -> DurationCounts {
        var counts = DurationCounts()
        for bucket in 0..<DurationCounts.bucketCount { counts.buckets[bucket] = cells[bucket].load(ordering: .relaxed) }
        counts.sum = cells[DurationCounts.bucketCount].load(ordering: .relaxed)
        return counts
    }

    @inline(__always)
    private borrowing func increase(_ cell: Int, by amount: UInt64) {
        cells[cell].store(cells[cell].load(ordering: .relaxed) &+ amount, ordering: .relaxed)
    }
}

/// A histogram of durations at one moment: of one thread, or of several added up.
public struct DurationCounts: Sendable, Equatable {
    /// Upper bounds of the buckets in nanoseconds: from a hit's 100 µs to a person's patience, two or three per decade.
    /// Longer durations have one more bucket.
    public static let bounds: [UInt64] = [
        100_000, 250_000, 500_000,
        1_000_000, 2_500_000, 5_000_000,
        10_000_000, 25_000_000, 50_000_000,
        100_000_000, 250_000_000, 500_000_000,
        1_000_000_000, 2_500_000_000, 5_000_000_000,
        10_000_000_000, 30_000_000_000, 60_000_000_000,
    ]
    static let bucketCount = 19

    /// The number of durations in each bucket, without the lower buckets.
    public fileprivate(set) var buckets = [UInt64](repeating: 0, count: bucketCount)
    /// The sum in nanoseconds.
    public fileprivate(set) var sum: UInt64 = 0

    public init() {}

    /// - Parameters:
    ///   - upToBounds: for each bound, the number of durations that are at most as long.
    ///   - count: the number of all durations.
    ///   - sum: in nanoseconds.
    public init(upToBounds: [UInt64], count: UInt64, sum: UInt64) {
        var below: UInt64 = 0
        for (bucket, upTo) in (upToBounds + [count]).enumerated() {
            buckets[bucket] = upTo - below
            below = upTo
        }
        self.sum = sum
    }

    /// The number of all durations.
    public var count: UInt64 { buckets.reduce(0, &+) }

    /// For each bound, the number of durations that are at most as long; the last number counts all durations.
    public var upToBounds: [UInt64] {
        var below: UInt64 = 0
        return buckets.map { count in
            below &+= count
            return below
        }
    }

    /// Adds the counts of another histogram.
    public mutating func add(_ other: DurationCounts) {
        for bucket in buckets.indices { buckets[bucket] &+= other.buckets[bucket] }
        sum &+= other.sum
    }

    /// Searches from the shortest bucket: most durations are short, and found after a comparison or a few.
    fileprivate static func bucket(of nanoseconds: UInt64) -> Int {
        var bucket = 0
        while bucket < bounds.count, nanoseconds > bounds[bucket] { bucket += 1 }
        return bucket
    }
}
