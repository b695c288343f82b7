internal import Bytes
internal import Histogram

/// The kinds of answer whose latencies are worth telling apart: from the store, fetched and shared, forwarded.
public enum LatencyClass: UInt8, PublicName {
    case hit, miss, pass

    public var name: StaticString {
        switch self {
        case .hit: "hit"
        case .miss: "miss"
        case .pass: "pass"
        }
    }
}

extension Verdict {
    /// The class this verdict's latencies are recorded under; `nil` for answers of the proxy's own, which would
    /// flatter the numbers.
    @inlinable public var latencyClass: LatencyClass? {
        switch self {
        case .hit, .stale: .hit
        case .miss, .revalidated: .miss
        case .pass: .pass
        case .synthetic, .refused: nil
        }
    }
}

/// What is measured of a request, from its first byte read.
public enum LatencyMeasure: UInt8, PublicName {
    /// To the first byte of the response written.
    case firstByte
    /// To the last byte of the response written.
    case total

    public var name: StaticString {
        switch self {
        case .firstByte: "first-byte"
        case .total: "total"
        }
    }
}

/// The latencies of one worker loop. Not `Sendable`: made, recorded and snapshotted on its loop.
///
/// The scrape posts 'snapshot' into each loop's mailbox and merges what comes back. The loop only counts, for which it finds the bucket
/// itself; histograms, which can do more, are made of that for a snapshot.
public final class LatencyRecorder {
    private struct Counts {
        /// Indexed by distribution, then bucket.
        var buckets = [UInt64](repeating: 0, count: LatencySnapshot.distributionCount * LatencyBucket.count)
        /// In nanoseconds, indexed by distribution.
        var sums = [UInt64](repeating: 0, count: LatencySnapshot.distributionCount)

        @inline(__always)
        mutating func count(_ nanoseconds: UInt64, in distribution: Int) {
            let value = min(nanoseconds, LatencyDistribution.longest)
            buckets[distribution &* LatencyBucket.count &+ LatencyBucket.index(of: value)] &+= 1
            sums[distribution] &+= value
        }
    }

    private let counts = Exclusive(Counts())

    public init() {}

    /// Records one finished request, in nanoseconds. Never allocates.
    public func record(_ verdict: Verdict, firstByte: UInt64, total: UInt64) {
        guard let latencyClass = verdict.latencyClass else { return }
        counts.use { counts in
            counts.count(firstByte, in: LatencySnapshot.index(.firstByte, latencyClass))
            counts.count(total, in: LatencySnapshot.index(.total, latencyClass))
        }
    }

    /// Everything recorded since the start, as a value that may leave the loop.
    public func snapshot() -> LatencySnapshot {
        counts.use { counts in
            var snapshot = LatencySnapshot()
            for distribution in counts.sums.indices {
                let first = distribution * LatencyBucket.count
                snapshot.add(
                    counts.buckets[first..<first + LatencyBucket.count], sum: counts.sums[distribution], at: distribution)
            }
            return snapshot
        }
    }
}

/// Buckets of durations: 1024 ns wide up to 256 of them, then 128 for each power of two. The histogram's own, so that counts can be handed over.
private enum LatencyBucket {
    static var count: Int {
        @inline(__always) get { index(of: LatencyDistribution.longest) + 1 }
    }

    /// - Parameter nanoseconds: at most `LatencyDistribution.longest`.
    @inline(__always)
    static func index(of nanoseconds: UInt64) -> Int {
        let units = nanoseconds >> 10
        // How often it must be halved to have eight bits.
        let halvings = max(0, 56 &- units.leadingZeroBitCount)
        return halvings &<< 7 &+ Int(truncatingIfNeeded: units &>> UInt64(halvings))
    }

    /// The shortest duration in a bucket, in nanoseconds.
    static func start(of index: Int) -> UInt64 {
        let halvings = max(0, index >> 7 - 1)
        return UInt64(index - halvings << 7) << UInt64(halvings + 10)
    }
}

/// Latency histograms as a value: of one loop, or of several merged.
public struct LatencySnapshot: Sendable {
    /// Indexed by class × measure.
    private var distributions = [LatencyDistribution](repeating: LatencyDistribution(), count: distributionCount)

    fileprivate static let distributionCount = LatencyClass.allCases.count << 1

    public init() {}

    /// What was recorded of `measure` for requests of that class.
    public subscript(measure: LatencyMeasure, latencyClass: LatencyClass) -> LatencyDistribution {
        distributions[Self.index(measure, latencyClass)]
    }

    /// Adds another loop's histograms.
    public mutating func merge(_ other: LatencySnapshot) {
        for index in distributions.indices { distributions[index].merge(other.distributions[index]) }
    }

    fileprivate mutating func add(_ counts: ArraySlice<UInt64>, sum: UInt64, at distribution: Int) {
        distributions[distribution].add(counts, sum: sum)
    }

    @inline(__always)
    fileprivate static func index(_ measure: LatencyMeasure, _ latencyClass: LatencyClass) -> Int {
        // There are two measures: a class's are side by side.
        latencyClass.position &<< 1 | measure.position
    }
}

/// One histogram of durations: about 1 µs apart at the short end, within 0.8 % above it, up to an hour.
public struct LatencyDistribution: Sendable {
    /// Longer requests count as this long; long polls exist and must not be lost.
    static let longest: UInt64 = 3_600_000_000_000

    private var histogram = Histogram<UInt64>(
        lowestDiscernibleValue: 1024, highestTrackableValue: longest, numberOfSignificantValueDigits: .two)

    /// The exact sum in nanoseconds, which the buckets cannot give.
    public private(set) var sum: UInt64 = 0

    public init() {}

    /// Requests recorded.
    public var count: UInt64 { histogram.totalCount }

    /// How many took at most `nanoseconds`, give or take the histogram's resolution at that point.
    public func count(upTo nanoseconds: UInt64) -> UInt64 { histogram.count(within: 0...nanoseconds) }

    /// The duration in nanoseconds that `percentile` (0...100) of the requests did not exceed; 0 when there is none.
    public func percentile(_ percentile: Double) -> UInt64 { count == 0 ? 0 : histogram.valueAtPercentile(percentile) }

    /// - Parameter counts: how many fell into each `LatencyBucket`.
    fileprivate mutating func add(_ counts: ArraySlice<UInt64>, sum: UInt64) {
        for (index, count) in zip(0..., counts) where count > 0 { histogram.record(LatencyBucket.start(of: index), count: count) }
        self.sum &+= sum
    }

    mutating func merge(_ other: LatencyDistribution) {
        histogram.add(other.histogram)
        sum &+= other.sum
    }
}
