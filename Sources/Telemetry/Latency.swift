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

/// The latency histograms of one worker loop. Not `Sendable`: made, recorded and snapshotted on its loop.
///
/// The scrape posts 'snapshot' into each loop's mailbox and merges what comes back.
public final class LatencyRecorder {
    private var histograms = LatencySnapshot()

    public init() {}

    /// Records one finished request, in nanoseconds. Allocates only for the first record after a snapshot.
    public func record(_ verdict: Verdict, firstByte: UInt64, total: UInt64) {
        guard let latencyClass = verdict.latencyClass else { return }
        histograms.record(.firstByte, latencyClass, firstByte)
        histograms.record(.total, latencyClass, total)
    }

    /// Everything recorded since the start, as a value that may leave the loop. Copied only when the next record comes.
    public func snapshot() -> LatencySnapshot { histograms }
}

/// Latency histograms as a value: of one loop, or of several merged.
public struct LatencySnapshot: Sendable {
    /// Indexed by measure × class.
    private var distributions = [LatencyDistribution](
        repeating: LatencyDistribution(), count: LatencyMeasure.allCases.count * LatencyClass.allCases.count)

    public init() {}

    /// What was recorded of `measure` for requests of that class.
    public subscript(measure: LatencyMeasure, latencyClass: LatencyClass) -> LatencyDistribution {
        distributions[Self.index(measure, latencyClass)]
    }

    /// Adds another loop's histograms.
    public mutating func merge(_ other: LatencySnapshot) {
        for index in distributions.indices { distributions[index].merge(other.distributions[index]) }
    }

    mutating func record(_ measure: LatencyMeasure, _ latencyClass: LatencyClass, _ nanoseconds: UInt64) {
        distributions[Self.index(measure, latencyClass)].record(nanoseconds)
    }

    private static func index(_ measure: LatencyMeasure, _ latencyClass: LatencyClass) -> Int {
        measure.position * LatencyClass.allCases.count + latencyClass.position
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

    mutating func record(_ nanoseconds: UInt64) {
        let value = min(nanoseconds, Self.longest)
        histogram.record(value)
        sum &+= value
    }

    mutating func merge(_ other: LatencyDistribution) {
        histogram.add(other.histogram)
        sum &+= other.sum
    }
}
