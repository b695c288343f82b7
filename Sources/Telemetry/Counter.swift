/// Everything that one worker loop counts. Closed: the scrape, the tests and the slots below follow from the cases.
public enum Counter: Hashable, Sendable {
    case requests(MethodClass)
    case responses(StatusClass)
    case verdicts(Verdict)
    case coalescing(CoalescingEvent)
    case upstreamFailures(UpstreamFailure)
    case stores(StoreResult)

    /// Exchanges begun with an origin, and those among them that repeated a failed one.
    case upstreamFetches, upstreamRetries
    /// Connections newly opened to an origin, exchanges that reused one, connections closed.
    case upstreamConnects, upstreamReuses, upstreamCloses
    /// Bytes read from and written to origins, heads and framing included.
    case upstreamBytesIn, upstreamBytesOut
    /// Client connections accepted, closed, and turned away over the limit (those are not counted as opened).
    case clientConnectionsOpened, clientConnectionsClosed, clientConnectionsRefused
    /// Bytes read from and written to clients, heads and framing included.
    case clientBytesIn, clientBytesOut
    /// Requests refused with 400 and the like for their syntax (RFC 9112 §2.2).
    case malformedRequests
}

extension Counter {
    /// How many slots `LoopMetrics` reserves; a multiple of a cache line's eight.
    @usableFromInline static let capacity = 56

    /// Where the slots of each group begin: behind those of the group before, of which there are so many.
    @usableFromInline
    enum Start {
        @inlinable static var responses: Int { 8 }
        @inlinable static var verdicts: Int { responses + 5 }
        @inlinable static var coalescing: Int { verdicts + 7 }
        @inlinable static var upstreamFailures: Int { coalescing + 7 }
        @inlinable static var stores: Int { upstreamFailures + 10 }
        @inlinable static var others: Int { stores + 6 }
    }

    /// The counter's own place. Folds to a constant where the case is written out.
    @inlinable var slot: Int {
        switch self {
        case .requests(let method): method.position
        case .responses(let status): Start.responses + status.position
        case .verdicts(let verdict): Start.verdicts + verdict.position
        case .coalescing(let event): Start.coalescing + event.position
        case .upstreamFailures(let failure): Start.upstreamFailures + failure.position
        case .stores(let result): Start.stores + result.position
        case .upstreamFetches: Start.others
        case .upstreamRetries: Start.others + 1
        case .upstreamConnects: Start.others + 2
        case .upstreamReuses: Start.others + 3
        case .upstreamCloses: Start.others + 4
        case .upstreamBytesIn: Start.others + 5
        case .upstreamBytesOut: Start.others + 6
        case .clientConnectionsOpened: Start.others + 7
        case .clientConnectionsClosed: Start.others + 8
        case .clientConnectionsRefused: Start.others + 9
        case .clientBytesIn: Start.others + 10
        case .clientBytesOut: Start.others + 11
        case .malformedRequests: Start.others + 12
        }
    }
}

extension Counter: CaseIterable {
    /// Every counter, in slot order.
    public static var allCases: [Counter] {
        MethodClass.allCases.map(Counter.requests)
            + StatusClass.allCases.map(Counter.responses)
            + Verdict.allCases.map(Counter.verdicts)
            + CoalescingEvent.allCases.map(Counter.coalescing)
            + UpstreamFailure.allCases.map(Counter.upstreamFailures)
            + StoreResult.allCases.map(Counter.stores)
            + [
                .upstreamFetches, .upstreamRetries, .upstreamConnects, .upstreamReuses, .upstreamCloses,
                .upstreamBytesIn, .upstreamBytesOut,
                .clientConnectionsOpened, .clientConnectionsClosed, .clientConnectionsRefused,
                .clientBytesIn, .clientBytesOut, .malformedRequests,
            ]
    }
}
