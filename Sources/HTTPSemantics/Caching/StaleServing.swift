/// What went wrong on the way to the origin while a stale response is at hand.
public enum OriginFailure: Sendable, Equatable {
    /// The origin answered with this status.
    case status(Status)
    /// No connection, or it broke before a response.
    case unreachable
    /// No answer, or no progress, in time.
    case timeout
    /// The origin answered with what is not an HTTP response: a client would get 502.
    case malformed
    /// We may not ask: too many requests already, or no memory for what it would answer.
    case overloaded
}

extension ResponseFacts {
    /// Whether this stale response may be sent instead of the failure. Sources: RFC 9111 §4.2.4, §5.2.2; RFC 5861 §4.
    ///
    /// `must-revalidate` and its kind, `no-cache` and an invalidation forbid it under all circumstances; so do a
    /// response of one session, an origin that has since answered with something else, and a client's `no-cache`. The
    /// client's `max-age` and `min-fresh` do not: `stale-if-error` holds "regardless of other freshness information".
    public func mayServeStale(
        on failure: OriginFailure, for request: RequestDirectives, at now: Moment, policy: CachingPolicy
    ) -> Bool {
        guard flags.isDisjoint(with: [.noCache, .isInvalidated]), !forbidsStale, !request.noCache else { return false }
        let permitted = max(staleIfError, request.staleIfError)
        let limit =
            switch failure {
            case .status(let status): Self.countsAsError(status) ? permitted : 0
            // Nobody is disconnected from an origin that answers. RFC 5861 §4: an error is what results in a 502, too.
            case .malformed: permitted
            // §4.2.4: a disconnected cache needs no permission.
            case .unreachable, .timeout, .overloaded: max(permitted, policy.staleIfUnreachable)
            }
        return limit > 0 && overdue(at: now) <= limit
    }

    /// Whether it says, as the answer to a validation, that what is stored is out of date (RFC 9111 §4.3.3). A failure
    /// does not; nor do errors of the client, as 400, 403 or 429: they concern the request, not the resource.
    public var supersedesStored: Bool {
        switch status.code {
        case 200..<400, 404, 410, 451: true
        default: false
        }
    }

    /// RFC 5861 §4.
    static func countsAsError(_ status: Status) -> Bool {
        switch status.code {
        case 500, 502, 503, 504: true
        default: false
        }
    }
}
