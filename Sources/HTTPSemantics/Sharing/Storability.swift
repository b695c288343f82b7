/// Why a response is not stored.
public enum NotStoredReason: Sendable, Hashable {
    case method
    case prohibited(Prohibition)
    /// No explicit lifetime, and no status or `public` that permits a heuristic one (RFC 9111 §3).
    case notCacheable
    /// The content is generated over time, for a client that receives it from the start
    /// (`ResponseFacts.isForOneListener`).
    case incremental
    /// Never fresh, and not usable once stale.
    case noFreshness
    /// A 206 without a range, one to a request that was not for a part, or one that the route does not store.
    case partial
    /// The operator turned storing off here.
    case cachingOff
    /// The request had content, and a key does not include content.
    case requestContent
    /// The response answers one client's condition or range (RFC 9110 §15.5.13, §15.5.17).
    case requestCondition
    /// The announced length is more than may be stored.
    case tooLarge
    /// An unsafe request or a purge invalidated the key after the request was sent (RFC 9111 §4.4).
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

/// Whether a response may be stored for later requests.
public enum Storability: Sendable, Equatable {
    case store
    /// A 206: stored as part of the representation (RFC 9111 §3.3).
    case storePart
    case doNotStore(NotStoredReason)
}

extension ResponseFacts {
    /// RFC 9111 §3, with §3.3 and §3.5, for a shared cache.
    /// - Parameters:
    ///   - request: the request that fetched the response, or one that the stored response would answer.
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
        // A lifetime that is not explicit is heuristic, or the operator's.
        guard contains(.public) || lifetimeSource != .none || Freshness.isHeuristicallyCacheable(status) else {
            return .doNotStore(.notCacheable)
        }
        if isForOneListener { return .doNotStore(.incremental) }
        guard isWorthKeeping else { return .doNotStore(.noFreshness) }
        guard status == .partialContent else { return .store }
        // The range is known, so the part may answer requests within it. Combining it has further conditions (§3.4).
        return policy.storesPartialContent && contains(.hasContentRange) ? .storePart : .doNotStore(.partial)
    }

    /// A response that is never fresh, has no validator and may not be served stale only occupies memory (§3, last
    /// note).
    private var isWorthKeeping: Bool {
        let isFreshOnce = freshUntil > responseTime.monotonic && !contains(.noCache)
        let isGoodStale =
            !contains(.noCache) && !forbidsStale
            && (staleWhileRevalidate > 0 || staleIfError > 0)
        return isFreshOnce || hasValidator || isGoodStale
    }
}

/// Whether the response to POST may be stored for GET: its `Content-Location` is the request's own target (RFC 9110
/// §9.3.3). Its lifetime must also be explicit; see `storability`.
public enum PostAnswer {
    /// - Parameters:
    ///   - fields: the response's.
    ///   - target: the request's.
    public static func isForTarget(_ fields: FieldView, target: TargetURI) -> Bool {
        guard let location = fields.onlyValue(of: .contentLocation) else { return false }
        return target.sameOriginTarget(of: location) == target.pathAndQuery
    }
}
