/// Why a response is not stored.
public enum NotStoredReason: Sendable, CaseIterable {
    case method
    case status
    case requestNoStore
    case noStore
    case `private`
    case authorization
    case setCookie
    case varyStar
    /// `Vary` names a field that says more to the origin than to us, such as `X-Forwarded-For` (`FieldSight`).
    case varyForwarded
    /// No explicit lifetime, and no status or `public` that would allow a guess (RFC 9111 §3).
    case notCacheable
    /// Neither fresh for a moment nor good for anything afterwards.
    case noFreshness
    /// A 206 that cannot be combined, or that the route does not store.
    case partial
    /// The operator has nothing stored here.
    case cachingOff
    /// The request had content, which no key holds.
    case requestContent
    /// It answers one client's condition or range (RFC 9110 §15.5.13, §15.5.17).
    case requestCondition
    /// The length that it announces is more than may be stored.
    case tooLarge
    /// An unsafe request or a purge went over the key since it was asked for (RFC 9111 §4.4).
    case outdated

    /// The fixed name, for `detail` in `Cache-Status` (RFC 9211 §2.8).
    public var name: StaticString {
        switch self {
        case .method: "method"
        case .status: "status"
        case .requestNoStore: "request-no-store"
        case .noStore: "no-store"
        case .private: "private"
        case .authorization: "authorization"
        case .setCookie: "set-cookie"
        case .varyStar: "vary-star"
        case .varyForwarded: "vary-forwarded"
        case .notCacheable: "not-cacheable"
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
    ///   - request: what the request asked for, before any of it was ignored by policy but `no-store`.
    ///   - hasAuthorization: whether the request carried `Authorization`.
    ///   - answersTarget: for POST, whether `Content-Location` is the target URI (RFC 9110 §9.3.3).
    public func storability(
        method: Method, request: RequestDirectives, hasAuthorization: Bool, answersTarget: Bool = false,
        policy: CachingPolicy
    ) -> Storability {
        switch method {
        case .get: break
        case .post where policy.storesPostAnswers && lifetimeSource.isExplicit && answersTarget && status == .ok: break
        case .head, .post, .put, .delete, .connect, .options, .trace, .patch, .other: return .doNotStore(.method)
        }
        if let reason = prohibition(request: request, hasAuthorization: hasAuthorization, policy: policy) {
            return .doNotStore(reason)
        }
        guard contains(.public) || lifetimeSource.isExplicit || Freshness.isHeuristicallyCacheable(status) else {
            return .doNotStore(.notCacheable)
        }
        guard isWorthKeeping else { return .doNotStore(.noFreshness) }
        guard status == .partialContent else { return .store }
        // Only a strong validator lets parts be combined (§3.4).
        let canCombine = contains(.hasContentRange) && contains(.hasStrongETag)
        return policy.storesPartialContent && canCombine ? .storePart : .doNotStore(.partial)
    }

    /// The first rule that forbids both storing and sharing.
    func prohibition(request: RequestDirectives, hasAuthorization: Bool, policy: CachingPolicy) -> NotStoredReason? {
        // §3: final; 206 and 304 only as far as understood, and a 304 is no response of its own.
        if status.isInformational || status == .notModified { return .status }
        if contains(.mustUnderstand), !Self.isUnderstood(status) { return .status }
        if request.noStore { return .requestNoStore }
        // §5.2.2.3: whoever understands the status and `must-understand` ignores `no-store`.
        if contains(.noStore), !contains(.mustUnderstand) { return .noStore }
        if contains(.private) { return .private }
        if hasAuthorization, !contains(.allowsAuthorized) { return .authorization }
        if contains(.setsCookie), !allowsCookie(policy) { return .setCookie }
        if contains(.variesByEverything) { return .varyStar }
        if contains(.variesByMore) { return .varyForwarded }
        return nil
    }

    private func allowsCookie(_ policy: CachingPolicy) -> Bool {
        switch policy.setCookie {
        case .whenPublic: contains(.public)
        case .never: false
        case .always: true
        }
    }

    /// Something that is neither fresh nor could be validated nor served stale only takes room (§3, last note).
    private var isWorthKeeping: Bool {
        let isFreshOnce = freshUntil > received.monotonic && !contains(.noCache)
        let isGoodStale = !contains(.noCache) && !contains(.mustRevalidate)
            && (staleWhileRevalidate > 0 || staleIfError > 0)
        return isFreshOnce || hasValidator || isGoodStale
    }

    /// The final statuses of RFC 9110 §15 and of RFCs 4918, 5842, 6585, 7725, 8470: all that caches must do with
    /// them is done here.
    static func isUnderstood(_ status: Status) -> Bool {
        switch status.code {
        case 200...208, 226, 300...305, 307, 308, 400...417, 421...426, 428, 429, 431, 451, 500...508, 511: true
        default: false
        }
    }
}
