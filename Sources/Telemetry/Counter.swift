/// The counters that a worker loop keeps for all upstreams together; the others are `UpstreamCounter`s. A closed list:
/// the scrape, the tests and the slots below follow from the cases.
public enum Counter: Hashable, Sendable {
    case requests(MethodClass)
    case responses(StatusClass)
    case coalescing(CoalescingEvent)
    case stores(StoreResult)

    /// Connections newly opened to origins, exchanges that reused a connection, connections closed.
    case upstreamConnects, upstreamReuses, upstreamCloses
    /// Bytes read from and written to origins, heads and framing included.
    case upstreamBytesIn, upstreamBytesOut
    /// Client connections accepted, closed, and refused because of the limit (refused ones are not counted as opened).
    case clientConnectionsOpened, clientConnectionsClosed, clientConnectionsRefused
    /// Bytes read from and written to clients, heads and framing included.
    case clientBytesIn, clientBytesOut
    /// Requests refused with 400 and the like for their syntax (RFC 9112 §2.2).
    case malformedRequests
}

extension Counter {
    /// The number of slots that `LoopMetrics` reserves; a multiple of a cache line's eight.
    @usableFromInline static let capacity = 40

    /// The first slot of each group: the first slot of the group before, plus the number of slots in that group.
    @usableFromInline
    enum Start {
        @inlinable static var responses: Int { 8 }
        @inlinable static var coalescing: Int { responses + 5 }
        @inlinable static var stores: Int { coalescing + 7 }
        @inlinable static var others: Int { stores + 6 }
    }

    /// The counter's own slot. Folds to a constant if the case is written out.
    @inlinable var slot: Int {
        switch self {
        case .requests(let method): method.position
        case .responses(let status): Start.responses + status.position
        case .coalescing(let event): Start.coalescing + event.position
        case .stores(let result): Start.stores + result.position
        case .upstreamConnects: Start.others
        case .upstreamReuses: Start.others + 1
        case .upstreamCloses: Start.others + 2
        case .upstreamBytesIn: Start.others + 3
        case .upstreamBytesOut: Start.others + 4
        case .clientConnectionsOpened: Start.others + 5
        case .clientConnectionsClosed: Start.others + 6
        case .clientConnectionsRefused: Start.others + 7
        case .clientBytesIn: Start.others + 8
        case .clientBytesOut: Start.others + 9
        case .malformedRequests: Start.others + 10
        }
    }
}

extension Counter: CaseIterable {
    /// Every counter, in slot order.
    public static var allCases: [Counter] {
        MethodClass.allCases.map(Counter.requests)
            + StatusClass.allCases.map(Counter.responses)
            + CoalescingEvent.allCases.map(Counter.coalescing)
            + StoreResult.allCases.map(Counter.stores)
            + [
                .upstreamConnects, .upstreamReuses, .upstreamCloses,
                .upstreamBytesIn, .upstreamBytesOut,
                .clientConnectionsOpened, .clientConnectionsClosed, .clientConnectionsRefused,
                .clientBytesIn, .clientBytesOut, .malformedRequests,
            ]
    }
}
