import Bytes

/// The counters of one worker loop (`CounterCells`). One instance per loop. Only that loop adds; any thread reads.
public final class LoopMetrics: Sendable {
    /// Metrics of requests that were refused before an upstream was found for them.
    public let unrouted = UpstreamMetrics()
    /// The metrics of the upstreams in the settings, by name. Locked for a reload and a scrape.
    private let upstreams = Guarded<[String: UpstreamMetrics]>([:])
    @usableFromInline let counters = CounterCells<Counter>()

    public init() {}

    /// Adds `amount`. On the owning loop only: a second writer would lose counts.
    @inlinable public func add(_ counter: Counter, _ amount: UInt64 = 1) { counters.add(counter, amount) }

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
        values.counters = counters.read()
        values.unrouted = unrouted.read()
        for (name, upstream) in upstreams.withLock({ $0 }) { values.upstreams[name] = upstream.read() }
        return values
    }
}

/// Counters at one moment, of one loop or of several added up.
public struct CounterValues: Sendable {
    fileprivate var counters = CounterReadings<Counter>()
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
    public subscript(counter: Counter) -> UInt64 { counters[counter] }

    /// The counters of the upstream with that name, all 0 if no loop knows it.
    public subscript(upstream name: String) -> UpstreamCounterValues { upstreams[name] ?? UpstreamCounterValues() }

    /// Adds another loop's values.
    public mutating func add(_ other: CounterValues) {
        counters.add(other.counters)
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
