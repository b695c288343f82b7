public import Bytes
public import Synchronization

/// The counters of one upstream on one worker loop. Only that loop adds, any thread reads, as with `LoopMetrics`, which
/// owns it under the upstream's name.
///
/// Who counts has it in hand: a route has that of its upstream, and a pool that of its servers. So counting finds
/// nothing by name.
public final class UpstreamMetrics: Sendable {
    // The same distance from other loops' counters as in `LoopMetrics`.
    private let paddingBefore: InlineArray<16, UInt64> = .init(repeating: 0)
    @usableFromInline let cells: InlineArray<32, Atomic<UInt64>> = .init { _ in Atomic<UInt64>(0) }
    private let firstByte = DurationHistogram()
    private let connect = DurationHistogram()
    private let paddingAfter: InlineArray<16, UInt64> = .init(repeating: 0)

    /// Metrics of no loop: what is counted here stands on no page.
    public init() {}

    /// Adds 1. On the owning loop only: a second writer would lose counts.
    @inlinable public func add(_ counter: UpstreamCounter) {
        let slot = counter.slot
        cells[slot].store(cells[slot].load(ordering: .relaxed) &+ 1, ordering: .relaxed)
    }

    /// Adds what was measured, in nanoseconds. On the owning loop only.
    public func add(_ measure: UpstreamMeasure, _ nanoseconds: UInt64) {
        switch measure {
        case .firstByte: firstByte.add(nanoseconds: nanoseconds)
        case .connect: connect.add(nanoseconds: nanoseconds)
        }
    }

    /// The current values. From any thread.
    public func read() -> UpstreamCounterValues {
        var values = UpstreamCounterValues()
        for slot in cells.indices { values.slots[slot] = cells[slot].load(ordering: .relaxed) }
        values.durations = [firstByte.read(), connect.read()]
        return values
    }
}

/// Counters of an upstream at one moment, of one loop or of several added up.
public struct UpstreamCounterValues: Sendable {
    fileprivate var slots = [UInt64](repeating: 0, count: UpstreamCounter.capacity)
    /// By measure.
    fileprivate var durations = [DurationCounts](repeating: DurationCounts(), count: UpstreamMeasure.allCases.count)

    public init() {}

    /// The counter's value when this was read.
    public subscript(counter: UpstreamCounter) -> UInt64 { slots[counter.slot] }

    /// What had been measured when this was read.
    public subscript(measure: UpstreamMeasure) -> DurationCounts { durations[Int(measure.rawValue)] }

    /// Adds another loop's values.
    public mutating func add(_ other: UpstreamCounterValues) {
        for slot in slots.indices { slots[slot] &+= other.slots[slot] }
        for measure in durations.indices { durations[measure].add(other.durations[measure]) }
    }
}
