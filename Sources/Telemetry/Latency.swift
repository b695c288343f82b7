import Bytes

/// The kinds of response whose latencies are reported separately: from the store, fetched and shared, forwarded, our own.
public enum LatencyClass: UInt8, PublicName {
    case hit, miss, pass, synthetic

    public var name: StaticString {
        switch self {
        case .hit: "hit"
        case .miss: "miss"
        case .pass: "pass"
        case .synthetic: "synthetic"
        }
    }
}

extension Verdict {
    /// The class this verdict's latencies are recorded under; `nil` for what is refused at once, which would flatter the
    /// numbers.
    @inlinable public var latencyClass: LatencyClass? {
        switch self {
        case .hit, .stale: .hit
        case .miss, .revalidated: .miss
        case .pass: .pass
        case .synthetic: .synthetic
        case .refused: nil
        }
    }
}

/// What is measured of a request, from its first byte read.
public enum LatencyMeasure: UInt8, CaseIterable, Sendable {
    /// To the first byte of the response written.
    case firstByte
    /// To the last byte of the response written.
    case total
}

/// The latencies of one worker loop. Not `Sendable`: made, recorded and snapshotted on its loop.
///
/// The scrape posts 'snapshot' into each loop's mailbox and merges what comes back.
public final class LatencyRecorder {
    private let recorded = Exclusive(LatencySnapshot())

    public init() {}

    /// Records one finished request, in nanoseconds. Never allocates.
    public func record(_ verdict: Verdict, firstByte: UInt64, total: UInt64) {
        guard let latencyClass = verdict.latencyClass else { return }
        recorded.use { recorded in
            recorded.count(firstByte, in: LatencySnapshot.index(.firstByte, latencyClass))
            recorded.count(total, in: LatencySnapshot.index(.total, latencyClass))
        }
    }

    /// Everything recorded since the start, as a value that may leave the loop.
    public func snapshot() -> LatencySnapshot {
        // Not `$0` itself: a request recorded later would have to copy the counts.
        recorded.use { recorded in
            var snapshot = LatencySnapshot()
            snapshot.merge(recorded)
            return snapshot
        }
    }
}

/// Buckets of durations: 1024 ns wide for the first 256, then 128 for each power of two, so within 0.8 %; up to an
/// hour. HdrHistogram's layout.
private enum LatencyBucket {
    /// The longest latency, in nanoseconds. Longer requests count as this long: long polls exist and must not be lost.
    static let longest: UInt64 = 3_600_000_000_000

    static var count: Int {
        @inline(__always) get { index(of: longest) + 1 }
    }

    /// - Parameter nanoseconds: at most `longest`.
    @inline(__always)
    static func index(of nanoseconds: UInt64) -> Int {
        let units = nanoseconds >> 10
        // How often it must be halved to have eight bits.
        let halvings = max(0, 56 &- units.leadingZeroBitCount)
        return halvings &<< 7 &+ Int(truncatingIfNeeded: units &>> UInt64(halvings))
    }
}

/// Latency histograms as a value: of one loop, or of several merged.
public struct LatencySnapshot: Sendable {
    private static let distributionCount = LatencyClass.allCases.count * LatencyMeasure.allCases.count

    /// How many requests fell into each bucket; indexed by distribution, then bucket.
    private var counts = [UInt64](repeating: 0, count: distributionCount * LatencyBucket.count)
    /// The sums in nanoseconds, indexed by distribution.
    private var sums = [UInt64](repeating: 0, count: distributionCount)

    public init() {}

    /// What was recorded of `measure` for requests of that class.
    public subscript(measure: LatencyMeasure, latencyClass: LatencyClass) -> LatencyDistribution {
        let index = Self.index(measure, latencyClass)
        let first = index * LatencyBucket.count
        return LatencyDistribution(counts: counts[first..<first + LatencyBucket.count], sum: sums[index])
    }

    /// Adds another loop's histograms.
    public mutating func merge(_ other: LatencySnapshot) {
        for index in counts.indices { counts[index] &+= other.counts[index] }
        for index in sums.indices { sums[index] &+= other.sums[index] }
    }

    @inline(__always)
    fileprivate mutating func count(_ nanoseconds: UInt64, in distribution: Int) {
        let value = min(nanoseconds, LatencyBucket.longest)
        counts[distribution &* LatencyBucket.count &+ LatencyBucket.index(of: value)] &+= 1
        sums[distribution] &+= value
    }

    @inline(__always)
    fileprivate static func index(_ measure: LatencyMeasure, _ latencyClass: LatencyClass) -> Int {
        // There are two measures: a class's are side by side.
        latencyClass.position &<< 1 | Int(measure.rawValue)
    }
}

/// One histogram of durations.
public struct LatencyDistribution: Sendable {
    /// Indexed by `LatencyBucket`, from its own first index on.
    fileprivate let counts: ArraySlice<UInt64>
    /// The exact sum in nanoseconds, which the buckets cannot give.
    public let sum: UInt64

    /// Requests recorded.
    public var count: UInt64 { counts.reduce(0, &+) }

    /// How many took at most `nanoseconds`, give or take the width of the bucket that it falls into.
    public func count(upTo nanoseconds: UInt64) -> UInt64 {
        counts.prefix(LatencyBucket.index(of: min(nanoseconds, LatencyBucket.longest)) + 1).reduce(0, &+)
    }

    /// The durations in the buckets of the metrics page.
    var durations: DurationCounts {
        DurationCounts(upToBounds: DurationCounts.bounds.map(count(upTo:)), count: count, sum: sum)
    }
}
