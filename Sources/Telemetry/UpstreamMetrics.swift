public import Bytes

/// The counters of one upstream on one worker loop. Only that loop adds, any thread reads, as with `LoopMetrics`, which
/// owns them under the upstream's name.
///
/// Routes and pools hold their upstream's counters, so counting needs no look-up by name. The counters belong to the
/// name and not to the origin: otherwise a reload that changes the servers would set them back to 0.
public final class UpstreamMetrics: Sendable {
    @usableFromInline let counters = CounterCells<UpstreamCounter>()
    private let firstByte = DurationHistogram()
    private let connect = DurationHistogram()
    /// As in `CounterCells`.
    private let paddingAfter: InlineArray<16, UInt64> = .init(repeating: 0)

    /// Metrics of no loop: their counts appear on no page.
    public init() {}

    /// Adds 1. On the owning loop only: a second writer would lose counts.
    @inlinable public func add(_ counter: UpstreamCounter) { counters.add(counter, 1) }

    /// Adds a measured duration, in nanoseconds. On the owning loop only.
    public func add(_ measure: UpstreamMeasure, _ nanoseconds: UInt64) {
        switch measure {
        case .firstByte: firstByte.add(nanoseconds: nanoseconds)
        case .connect: connect.add(nanoseconds: nanoseconds)
        }
    }

    /// The current values. From any thread.
    public func read() -> UpstreamCounterValues {
        var values = UpstreamCounterValues()
        values.counters = counters.read()
        values.durations = [firstByte.read(), connect.read()]
        return values
    }
}

/// Counters of an upstream at one moment, of one loop or of several added up.
public struct UpstreamCounterValues: Sendable {
    fileprivate var counters = CounterReadings<UpstreamCounter>()
    /// Indexed by measure.
    fileprivate var durations = [DurationCounts](repeating: DurationCounts(), count: UpstreamMeasure.allCases.count)

    public init() {}

    /// The counter's value at the time of reading.
    public subscript(counter: UpstreamCounter) -> UInt64 { counters[counter] }

    /// The durations measured until the time of reading.
    public subscript(measure: UpstreamMeasure) -> DurationCounts { durations[Int(measure.rawValue)] }

    /// Adds another loop's values.
    public mutating func add(_ other: UpstreamCounterValues) {
        counters.add(other.counters)
        for measure in durations.indices { durations[measure].add(other.durations[measure]) }
    }
}
