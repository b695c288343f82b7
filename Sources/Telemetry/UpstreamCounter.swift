/// The counters that a worker loop keeps for each upstream.
public enum UpstreamCounter: CounterList {
    /// Requests routed to the upstream, by verdict.
    case verdicts(Verdict)
    case failures(UpstreamFailure)
    /// Heads of responses from the upstream's servers, interim ones included.
    case responses(StatusClass)
    /// Exchanges begun with the upstream's servers, and the exchanges among them that repeated a failed one.
    case fetches, retries
    /// Responses that broke off and went on, by another exchange.
    case resumes
}

extension UpstreamCounter {
    /// The first slot of each group: the first slot of the group before, plus the number of slots in that group.
    @usableFromInline
    enum Start {
        @inlinable static var failures: Int { 7 }
        @inlinable static var responses: Int { failures + 13 }
        @inlinable static var others: Int { responses + 5 }
    }

    /// Folds to a constant if the case is written out.
    @inlinable public var slot: Int {
        switch self {
        case .verdicts(let verdict): verdict.position
        case .failures(let failure): Start.failures + failure.position
        case .responses(let status): Start.responses + status.position
        case .fetches: Start.others
        case .retries: Start.others + 1
        case .resumes: Start.others + 2
        }
    }
}

extension UpstreamCounter {
    /// Every counter, in slot order.
    public static var allCases: [UpstreamCounter] {
        Verdict.allCases.map(UpstreamCounter.verdicts) + UpstreamFailure.allCases.map(UpstreamCounter.failures)
            + StatusClass.allCases.map(UpstreamCounter.responses) + [.fetches, .retries, .resumes]
    }
}

/// The durations measured for an upstream's servers.
public enum UpstreamMeasure: UInt8, CaseIterable, Sendable {
    /// From the time when a request had been sent, its content included, to the head of the final response.
    case firstByte
    /// From the beginning of a connection to its establishment. A failed connection is not measured.
    case connect
}
