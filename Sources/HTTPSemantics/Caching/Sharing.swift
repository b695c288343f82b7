/// Why a response goes only to the client that asked.
public enum NotSharedReason: Sendable, Hashable {
    case method
    case prohibited(Prohibition)
    case noCache
    /// The response is stale from the start, and must then not be used without a validation (RFC 9111 §5.2.2.2).
    case mustRevalidate
    /// The response is only for requests that are like the one it was fetched for.
    case unlike
    /// A part of the representation, asked for by one client.
    case range
    /// Of a length that nobody knew, and too large to be stored in the end. It says nothing of sharing: only a marker.
    case outgrown
    /// A part that cannot be kept as one: it is not what was asked for.
    case part
    case notCacheable
    /// The response is written as things happen, for whoever listens from its beginning, and does not say that others
    /// may have it.
    case incremental
    case serverError
    /// The response's `No-Vary-Search` differs from that of former ones: requests with other queries look under their
    /// own keys.
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

/// Who else may have a response that is only now arriving (RFC 9111 §4, on collapsed requests), as far as they match
/// its `VaryRule`.
public enum Sharing: Sendable, Equatable {
    /// All who wait, who come while it arrives, and (as long as it is fresh) who come later.
    case everyone
    /// All who wait, and who come while its body still arrives. It has no lifetime, so nobody afterwards.
    case whileArriving
    /// Clients who already waited when the head arrived: the response is stale from the start.
    case waitersOnly
    case nobody(NotSharedReason)
}

extension ResponseFacts {
    /// Decides when the head has arrived, before any byte goes to anyone but the client that led.
    /// - Parameter request: the one that led.
    public func sharing(answering request: RequestFacts, policy: CachingPolicy) -> Sharing {
        guard request.method == .get || request.method == .head else { return .nobody(.method) }
        if let reason = prohibition(answering: request, policy: policy) { return .nobody(.prohibited(reason)) }
        // §5.2.2.4: not for any other request without a validation of its own.
        if contains(.noCache) { return .nobody(.noCache) }
        if status == .partialContent || status.code == 416 { return .nobody(.range) }
        // §5.2.2.2, §5.2.2.8: the same from the moment it is stale, which this one is already.
        if contains(.mustRevalidate), freshUntil <= responseTime.monotonic { return .nobody(.mustRevalidate) }

        if isForOneListener, !status.isServerError { return .nobody(.incremental) }

        if lifetime > 0 { return freshUntil > responseTime.monotonic ? .everyone : .waitersOnly }
        if lifetimeSource.isExplicit { return .waitersOnly }
        if status.isServerError { return policy.sharesErrors ? .waitersOnly : .nobody(.serverError) }
        // Storable, so shareable (§4), but for how long is unknown.
        guard contains(.public) || Freshness.isHeuristicallyCacheable(status) else { return .nobody(.notCacheable) }
        return .whileArriving
    }

    /// Whether it is written as things happen, such as server-sent events, and nothing that its origin says permits others
    /// to have it: `public`, or a lifetime. Who listens later would get what happened before, as if it happened now. Of
    /// the operator's default lifetime, and of a guess, that cannot be said.
    var isForOneListener: Bool {
        contains(.isIncremental) && !contains(.public) && !(lifetime > 0 && lifetimeSource.isExplicit)
    }

    /// Whether each request needs a validation of its own: it can never be fresh, and must not be used stale. Not once
    /// the origin has answered with something else, which may be for all who wait.
    public var isNeverForTwo: Bool {
        !contains(.isSuperseded) && (contains(.noCache) || (lifetime == 0 && contains(.mustRevalidate)))
    }

    /// Whether a client that asks with `request` at `now` may have it, while it still arrives and has no lifetime of
    /// its own: it is not known to be stale, but it is not new (RFC 9111 §5.2.1).
    public func suitsLateJoiner(with request: RequestDirectives, at now: Moment) -> Bool {
        !request.noCache && request.minFresh == 0 && age(at: now) <= request.maxAge
    }
}
