/// Why a response is not stored.
public enum NotStoredReason: Sendable, Hashable {
    case method
    case prohibited(Prohibition)
    /// No explicit lifetime, and no status or `public` that would allow a guess (RFC 9111 §3).
    case notCacheable
    /// Written as things happen, for whoever listens from its beginning (`ResponseFacts.isForOneListener`).
    case incremental
    /// Neither fresh for a moment nor good for anything afterwards.
    case noFreshness
    /// A 206 without a range, one that nobody asked for as a part, or one that the route does not store.
    case partial
    /// The operator turned storing off here.
    case cachingOff
    /// The request had content, which no key holds.
    case requestContent
    /// The response answers one client's condition or range (RFC 9110 §15.5.13, §15.5.17).
    case requestCondition
    /// The length that it announces is more than may be stored.
    case tooLarge
    /// An unsafe request or a purge went over the key since it was asked for (RFC 9111 §4.4).
    case outdated

    /// The fixed name, for `detail` in `Cache-Status` (RFC 9211 §2.8).
    public var name: StaticString {
        switch self {
        case .method: "method"
        case .prohibited(let reason): reason.name
        case .notCacheable: "not-cacheable"
        case .incremental: "incremental"
        case .noFreshness: "no-freshness"
        case .partial: "partial"
        case .cachingOff: "caching-off"
        case .requestContent: "request-content"
        case .requestCondition: "request-condition"
        case .tooLarge: "too-large"
        case .outdated: "outdated"
        }
    }
}

/// Whether a response may be kept for later requests.
public enum Storability: Sendable, Equatable {
    case store
    /// A 206: kept as part of the whole (RFC 9111 §3.3).
    case storePart
    case doNotStore(NotStoredReason)
}

extension ResponseFacts {
    /// RFC 9111 §3, with §3.3 and §3.5, for a shared cache.
    /// - Parameters:
    ///   - request: the one that brought it, or that what is stored would answer.
    ///   - answersTarget: for POST, whether `Content-Location` is the target URI (RFC 9110 §9.3.3).
    public func storability(
        answering request: RequestFacts, answersTarget: Bool, policy: CachingPolicy
    ) -> Storability {
        switch request.method {
        case .get: break
        case .post where policy.storesPostAnswers && lifetimeSource.isExplicit && answersTarget && status == .ok: break
        case .head, .post, .put, .delete, .connect, .options, .trace, .patch, .otherSafe, .otherIdempotent, .other:
            return .doNotStore(.method)
        }
        if let reason = prohibition(answering: request, policy: policy) { return .doNotStore(.prohibited(reason)) }
        // A lifetime that nobody stated is one that may be guessed, or that the operator gave the status.
        guard contains(.public) || lifetimeSource != .none || Freshness.isHeuristicallyCacheable(status) else {
            return .doNotStore(.notCacheable)
        }
        if isForOneListener { return .doNotStore(.incremental) }
        guard isWorthKeeping else { return .doNotStore(.noFreshness) }
        guard status == .partialContent else { return .store }
        // Its range is known, so it may answer for what lies in that. Whether it may be combined is another matter (§3.4).
        return policy.storesPartialContent && contains(.hasContentRange) ? .storePart : .doNotStore(.partial)
    }

    /// Something that is neither fresh nor could be validated nor served stale only takes room (§3, last note).
    private var isWorthKeeping: Bool {
        let isFreshOnce = freshUntil > responseTime.monotonic && !contains(.noCache)
        let isGoodStale =
            !contains(.noCache) && !forbidsStale
            && (staleWhileRevalidate > 0 || staleIfError > 0)
        return isFreshOnce || hasValidator || isGoodStale
    }
}
