/// A failure of a request to the origin while a stale response is stored.
public enum OriginFailure: Sendable, Equatable {
    /// The origin responded with this status.
    case status(Status)
    /// The connection failed, or closed before a response.
    case unreachable
    /// No response, or no progress, in time.
    case timeout
    /// The origin's response is not valid HTTP: a client would get 502.
    case malformed
    /// This proxy may not send the request: too many requests already, or no memory for the response.
    case overloaded
}

extension ResponseFacts {
    /// Whether this stale response may be sent instead of the failure. Sources: RFC 9111 §4.2.4, §5.2.2; RFC 5861 §4.
    ///
    /// `must-revalidate` and its kind, `no-cache` and an invalidation forbid it under all circumstances. So do
    /// `isPersonal`, `isSuperseded` and a client's `no-cache`. The client's `max-age` and `min-fresh` do not:
    /// `stale-if-error` holds "regardless of other freshness information".
    public func mayServeStale(
        on failure: OriginFailure, for request: RequestDirectives, at now: Moment, policy: CachingPolicy
    ) -> Bool {
        guard flags.isDisjoint(with: [.noCache, .isInvalidated]), !forbidsStale, !request.noCache else { return false }
        let permitted = max(staleIfError, request.staleIfError)
        let limit =
            switch failure {
            case .status(let status): Self.countsAsError(status) ? permitted : 0
            // A cache is not disconnected from an origin that responds. RFC 5861 §4: an error that results in a 502
            // counts too.
            case .malformed: permitted
            // §4.2.4: a disconnected cache needs no permission.
            case .unreachable, .timeout, .overloaded: max(permitted, policy.staleIfUnreachable)
            }
        return limit > 0 && overdue(at: now) <= limit
    }

    /// Whether this response to a validation shows that the stored response is out of date (RFC 9111 §4.3.3). A server
    /// error does not; nor do client errors such as 400, 403 or 429: they concern the request, not the resource.
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
