/// Why a response goes only to the client that requested it.
public enum NotSharedReason: Sendable, Hashable {
    case method
    case prohibited(Prohibition)
    case noCache
    /// The response is stale from the start, and must then not be used without a validation (RFC 9111 §5.2.2.2).
    case mustRevalidate
    /// The response is only for requests that match the one that fetched it (`CachingPolicy.matchForSharing`).
    case unlike
    /// A part of the representation, requested by one client.
    case range
    /// The length was not announced, and the response became too large to store. This does not restrict sharing: only a
    /// marker has this reason.
    case outgrown
    /// A 206 that cannot be stored as a part: it does not contain the requested range.
    case part
    case notCacheable
    /// The content is generated over time, for a client that receives it from the start, and the response does not
    /// permit sharing.
    case incremental
    case serverError
    /// The response's `No-Vary-Search` differs from that of earlier ones: requests with other queries use their own
    /// keys.
    case search

    /// The fixed name, for `detail` in `Cache-Status` (RFC 9211 §2.8).
    public var name: StaticString {
        switch self {
        case .method: "method"
        case .prohibited(let reason): reason.name
        case .noCache: "no-cache"
        case .mustRevalidate: "must-revalidate"
        case .unlike: "unlike"
        case .range: "range"
        case .outgrown: "too-large"
        case .part: "part"
        case .notCacheable: "not-cacheable"
        case .incremental: "incremental"
        case .serverError: "server-error"
        case .search: "no-vary-search"
        }
    }
}

/// Which other requests a response may answer while it is arriving (RFC 9111 §4, on collapsed requests), as far as they
/// match its `VaryRule`.
public enum Sharing: Sendable, Equatable {
    /// All waiting requests, requests that come while it arrives, and (as long as it is fresh) later requests.
    case everyone
    /// All waiting requests, and requests that come while its body arrives. It has no lifetime, so no later requests.
    case whileArriving
    /// Only requests that were waiting when the head arrived: the response is stale from the start, or a 5xx without a
    /// lifetime.
    case waitersOnly
    case nobody(NotSharedReason)

    /// Whether requests that come while the response arrives may have it.
    package var isForLateJoiners: Bool {
        switch self {
        case .everyone, .whileArriving: true
        case .waitersOnly, .nobody: false
        }
    }

    /// Whether requests other than the leader's may have the response.
    package var isForSeveral: Bool {
        switch self {
        case .everyone, .whileArriving, .waitersOnly: true
        case .nobody: false
        }
    }
}

extension ResponseFacts {
    /// Decides when the head has arrived, before any byte is sent to a client other than the one that led the fetch.
    /// - Parameter request: the request that led the fetch.
    public func sharing(answering request: RequestFacts, policy: CachingPolicy) -> Sharing {
        guard request.method == .get || request.method == .head else { return .nobody(.method) }
        if let reason = prohibition(answering: request, policy: policy) { return .nobody(.prohibited(reason)) }
        // §5.2.2.4: not for any other request without a validation of its own.
        if contains(.noCache) { return .nobody(.noCache) }
        if status == .partialContent || status.code == 416 { return .nobody(.range) }
        // §5.2.2.2, §5.2.2.8: likewise once the response is stale, and this response already is.
        if contains(.mustRevalidate), freshUntil <= responseTime.monotonic { return .nobody(.mustRevalidate) }

        if isForOneListener, !status.isServerError { return .nobody(.incremental) }

        if lifetime > 0 { return freshUntil > responseTime.monotonic ? .everyone : .waitersOnly }
        if lifetimeSource.isStated { return .waitersOnly }
        if status.isServerError { return policy.sharesErrors ? .waitersOnly : .nobody(.serverError) }
        // Storable, so shareable (§4), but for an unknown time.
        guard contains(.public) || Freshness.isHeuristicallyCacheable(status) else { return .nobody(.notCacheable) }
        return .whileArriving
    }

    /// Whether the content is generated over time, such as server-sent events, and the origin does not permit sharing
    /// it by `public` or a lifetime. A client that joins later would get past events as if they happened now. A
    /// heuristic or an operator's default lifetime is no such permission.
    var isForOneListener: Bool {
        contains(.isIncremental) && !contains(.public) && !(lifetime > 0 && lifetimeSource.isExplicit)
    }

    /// Whether each request needs a validation of its own: the response can never be fresh, and must not be used stale.
    /// False once the origin has sent a different response, which all waiting requests may share.
    public var requiresValidationPerRequest: Bool {
        !contains(.isSuperseded) && (contains(.noCache) || (lifetime == 0 && contains(.mustRevalidate)))
    }

    /// Whether a request with these directives at `now` may join the response while it still arrives and has no
    /// lifetime of its own: the response is not known to be stale, but has an age (RFC 9111 §5.2.1).
    public func mayServeLateJoiner(with request: RequestDirectives, at now: Moment) -> Bool {
        !request.noCache && request.minFresh == 0 && age(at: now) <= request.maxAge
    }
}
