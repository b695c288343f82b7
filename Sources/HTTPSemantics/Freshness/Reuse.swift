/// Why a stored response must be validated before it is used.
public enum ValidationReason: Sendable, CaseIterable {
    case stale
    /// The response's `no-cache`.
    case noCache
    /// Fresh, but the request has `no-cache` or `Pragma: no-cache`.
    case requestNoCache
    /// Fresh, but not by the request's `max-age` or `min-fresh`.
    case requestAge
    /// After it arrived, one of its cache groups was invalidated (RFC 9875 §3).
    case invalidated
}

/// How a stored response that matches a request may be used. Ages are in seconds, for `Age`.
public enum Reuse: Sendable, Equatable {
    /// Send it. `ttl` is the number of seconds for which it stays fresh.
    case fresh(age: UInt32, ttl: UInt32)
    /// Send it, and refresh it unless a refresh is running (RFC 5861 §3).
    case staleWhileRevalidate(age: UInt32)
    /// Send it: the client accepts a stale response (RFC 9111 §5.2.1.2).
    case staleAccepted(age: UInt32)
    /// Ask the origin first. If that fails, `mayServeStale` decides.
    case validate(ValidationReason)
}

extension ResponseFacts {
    /// RFC 9111 §4 for a stored response that matches by URI, method and `Vary`.
    ///
    /// The hot path: for a request without directives and a fresh response, three comparisons.
    @inlinable
    public func reuse(for request: RequestDirectives, at now: Moment) -> Reuse {
        let age = age(at: now)
        if request.flags.isEmpty, isFresh(at: now), flags.isDisjoint(with: [.noCache, .isInvalidated]) {
            return .fresh(age: age, ttl: lifetime &- min(age, lifetime))
        }
        return considered(for: request, age: age, at: now)
    }

    @usableFromInline
    func considered(for request: RequestDirectives, age: UInt32, at now: Moment) -> Reuse {
        if contains(.isInvalidated) { return .validate(.invalidated) }
        if contains(.noCache) { return .validate(.noCache) }
        let isFresh = isFresh(at: now)
        if request.noCache { return .validate(isFresh ? .requestNoCache : .stale) }
        // §5.2.1.1: no older than max-age, regardless of other directives.
        if age > request.maxAge { return .validate(isFresh ? .requestAge : .stale) }

        if isFresh {
            let ttl = lifetime &- min(age, lifetime)
            // §5.2.1.3: the lifetime is no less than the age plus min-fresh, and `ttl` may be rounded up.
            let needed = hasWholeSeconds ? request.minFresh : request.minFresh &+ 1
            return ttl >= needed ? .fresh(age: age, ttl: ttl) : .validate(.requestAge)
        }
        guard !forbidsStale, request.minFresh == 0 else { return .validate(.stale) }
        let overdue = overdue(at: now)
        if request.acceptsStale, isWithin(request.maxStale, overdue) { return .staleAccepted(age: age) }
        // §5.2.1.1: with max-age and no max-stale, the client does not accept a stale response.
        guard !request.limitsAge, overdue <= staleWhileRevalidate else { return .validate(.stale) }
        return staleWhileRevalidate > 0 ? .staleWhileRevalidate(age: age) : .validate(.stale)
    }

    /// A loop's clock may be behind that of the fetching loop, so the lifetime is checked too: without one, a response
    /// is never fresh.
    @inlinable
    func isFresh(at now: Moment) -> Bool { lifetime > 0 && now.monotonic < freshUntil }

    /// Whether the lifetime was not rounded up.
    private var hasWholeSeconds: Bool { freshUntil &- born == DeltaSeconds.nanoseconds(lifetime) }

    /// Seconds since the response became stale, rounded up: with a limit of one second, use ends after exactly one
    /// second.
    func overdue(at now: Moment) -> UInt32 {
        DeltaSeconds.saturating((now.monotonic - freshUntil + 999_999_999) / 1_000_000_000)
    }

    private func isWithin(_ limit: UInt32, _ overdue: UInt32) -> Bool {
        limit == DeltaSeconds.infinite || overdue <= limit
    }
}

extension ResponseFacts {
    /// Whether a response stored for one URL alone is preferred over a response stored for several equivalent URLs:
    /// while it is fresh, or if it is more recent (RFC 9111 §4).
    package func goesBefore(_ common: ResponseFacts?, for directives: RequestDirectives, at now: Moment) -> Bool {
        isFresh(for: directives, at: now) || common.map(isMoreRecent) ?? false
    }

    /// Whether a request with these directives gets the response as a fresh one.
    package func isFresh(for directives: RequestDirectives, at now: Moment) -> Bool {
        if case .fresh = reuse(for: directives, at: now) { true } else { false }
    }
}
