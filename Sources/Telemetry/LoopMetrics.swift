import Bytes
public import Synchronization

/// The counters of one worker loop.
///
/// One instance per loop. Only that loop adds; any thread reads. With a single writer a plain load and store is enough,
/// so counting costs no locked instruction; readers see each counter whole, but not all counters at one moment.
public final class LoopMetrics: Sendable {
    /// Metrics of requests that were refused before an upstream was found for them.
    public let unrouted = UpstreamMetrics()
    /// The metrics of the upstreams in the settings, by name. Locked for a reload and a scrape.
    private let upstreams = Guarded<[String: UpstreamMetrics]>([:])
    /// Two loops' counters never share a cache line, nor a pair of lines that the CPU prefetches together (128 bytes),
    /// nor do they share one with the object's own reference count, which the scraping thread touches.
    private let paddingBefore: InlineArray<16, UInt64> = .init(repeating: 0)
    @usableFromInline let cells: InlineArray<40, Atomic<UInt64>> = .init { _ in Atomic<UInt64>(0) }
    private let paddingAfter: InlineArray<16, UInt64> = .init(repeating: 0)

    public init() {}

    /// Adds `amount`. On the owning loop only: a second writer would lose counts.
    @inlinable public func add(_ counter: Counter, _ amount: UInt64 = 1) {
        let slot = counter.slot
        cells[slot].store(cells[slot].load(ordering: .relaxed) &+ amount, ordering: .relaxed)
    }

    /// Sets the upstreams that exist from now on. An upstream whose name stays keeps its counters, even if its other
    /// settings have changed. The counters of a removed name are dropped.
    public func change(toUpstreams names: [String]) {
        upstreams.withLock { upstreams in
            let former = upstreams
            upstreams = [:]
            for name in names { upstreams[name] = former[name] ?? UpstreamMetrics() }
        }
    }

    /// The counters of the upstream with that name, for a caller that keeps them. If the settings no longer have that
    /// name, the counts of its last requests appear on no page. From any thread.
    public func upstream(_ name: String) -> UpstreamMetrics {
        upstreams.withLock { $0[name] } ?? UpstreamMetrics()
    }

    /// The current values. From any thread.
    public func read() -> CounterValues {
        var values = CounterValues()
        values.unrouted = unrouted.read()
        for (name, upstream) in upstreams.withLock({ $0 }) { values.upstreams[name] = upstream.read() }
        for slot in cells.indices { values.slots[slot] = cells[slot].load(ordering: .relaxed) }
        return values
    }
}

/// Counters at one moment, of one loop or of several added up.
public struct CounterValues: Sendable {
    fileprivate var slots = [UInt64](repeating: 0, count: Counter.capacity)
    /// Indexed by name.
    fileprivate var upstreams: [String: UpstreamCounterValues] = [:]
    /// Counters of requests that were refused before an upstream was found for them.
    public fileprivate(set) var unrouted = UpstreamCounterValues()

    public init() {}

    /// The sum over `loops`. From any thread.
    public init(sumOf loops: some Sequence<LoopMetrics>) {
        for loop in loops { add(loop.read()) }
    }

    /// The counter's value at the time of reading.
    public subscript(counter: Counter) -> UInt64 { slots[counter.slot] }

    /// The counters of the upstream with that name, all 0 if no loop knows it.
    public subscript(upstream name: String) -> UpstreamCounterValues { upstreams[name] ?? UpstreamCounterValues() }

    /// Adds another loop's values.
    public mutating func add(_ other: CounterValues) {
        for slot in slots.indices { slots[slot] &+= other.slots[slot] }
        for (name, values) in other.upstreams { upstreams[name, default: UpstreamCounterValues()].add(values) }
        unrouted.add(other.unrouted)
    }

    /// Client connections open now; never below zero, although the two counts are read one after the other.
    public var clientConnectionsOpen: UInt64 { difference(.clientConnectionsOpened, .clientConnectionsClosed) }

    /// Upstream connections open now, idle ones included.
    public var upstreamConnectionsOpen: UInt64 { difference(.upstreamConnects, .upstreamCloses) }

    private func difference(_ up: Counter, _ down: Counter) -> UInt64 {
        self[up] > self[down] ? self[up] - self[down] : 0
    }
}
