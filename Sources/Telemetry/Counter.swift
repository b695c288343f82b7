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

    /// The counter's own place. Folds to a constant where the case is written out.
    @inlinable var slot: Int {
        switch self {
        case .requests(let method): method.position
        case .responses(let status): 8 + status.position
        case .verdicts(let verdict): 13 + verdict.position
        case .coalescing(let event): 20 + event.position
        case .upstreamFailures(let failure): 27 + failure.position
        case .upstreamFetches: 37
        case .upstreamRetries: 38
        case .upstreamConnects: 39
        case .upstreamReuses: 40
        case .upstreamCloses: 41
        case .upstreamBytesIn: 42
        case .upstreamBytesOut: 43
        case .clientConnectionsOpened: 44
        case .clientConnectionsClosed: 45
        case .clientConnectionsRefused: 46
        case .clientBytesIn: 47
        case .clientBytesOut: 48
        case .malformedRequests: 49
        case .stores(let result): 50 + result.position
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
            + [
                .upstreamFetches, .upstreamRetries, .upstreamConnects, .upstreamReuses, .upstreamCloses,
                .upstreamBytesIn, .upstreamBytesOut,
                .clientConnectionsOpened, .clientConnectionsClosed, .clientConnectionsRefused,
                .clientBytesIn, .clientBytesOut, .malformedRequests,
            ]
            + StoreResult.allCases.map(Counter.stores)
    }
}
