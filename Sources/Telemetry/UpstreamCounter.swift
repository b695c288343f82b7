/// What one worker loop counts for each upstream. Closed, as `Counter` is.
public enum UpstreamCounter: Hashable, Sendable {
    /// Requests that were routed there, by verdict.
    case verdicts(Verdict)
    case failures(UpstreamFailure)
    /// Heads of responses that came from its servers, interim ones included.
    case responses(StatusClass)
    /// Exchanges begun with its servers, and those among them that repeated a failed one.
    case fetches, retries
}

extension UpstreamCounter {
    /// How many slots `UpstreamMetrics` reserves, whose `cells` has to say so once more: a multiple of a cache line's eight.
    @usableFromInline static let capacity = 32

    /// Where the slots of each group begin: behind those of the group before, of which there are so many.
    @usableFromInline
    enum Start {
        @inlinable static var failures: Int { 7 }
        @inlinable static var responses: Int { failures + 12 }
        @inlinable static var others: Int { responses + 5 }
    }

    /// The counter's own place. Folds to a constant where the case is written out.
    @inlinable var slot: Int {
        switch self {
        case .verdicts(let verdict): verdict.position
        case .failures(let failure): Start.failures + failure.position
        case .responses(let status): Start.responses + status.position
        case .fetches: Start.others
        case .retries: Start.others + 1
        }
    }
}

extension UpstreamCounter: CaseIterable {
    /// Every counter, in slot order.
    public static var allCases: [UpstreamCounter] {
        Verdict.allCases.map(UpstreamCounter.verdicts) + UpstreamFailure.allCases.map(UpstreamCounter.failures)
            + StatusClass.allCases.map(UpstreamCounter.responses) + [.fetches, .retries]
    }
}

/// What is measured of an upstream's servers.
public enum UpstreamMeasure: UInt8, CaseIterable, Sendable {
    /// From when a request had been sent, its content included, to the head of the final response.
    case firstByte
    /// From the beginning of a connection to when it stood; one that failed has none.
    case connect
}
