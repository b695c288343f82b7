/// The source of a freshness lifetime.
public enum LifetimeSource: UInt8, Sendable {
    case none, sharedMaxAge, maxAge, expires, heuristic
    /// The operator's `ttl` or `min-ttl`, for a response that states no lifetime in which it would be fresh.
    case configured

    /// Stated by the origin, not heuristic (RFC 9111 §4.2).
    var isExplicit: Bool {
        switch self {
        case .sharedMaxAge, .maxAge, .expires: true
        case .none, .heuristic, .configured: false
        }
    }

    /// Stated by the origin or the operator for responses like this one.
    var isStated: Bool { isExplicit || self == .configured }
}

/// The arithmetic of RFC 9111 §4.2.1 to §4.2.3.
enum Freshness {
    /// §4.2.1: the first of `s-maxage`, `max-age`, `Expires` − `Date` that is present, otherwise a heuristic, otherwise
    /// the operator's default for the status. In nanoseconds: only the default may be a fraction of a second.
    static func lifetime(
        of status: Status, _ directives: ResponseDirectives, isTargeted: Bool, fields: FieldView, date: Int64,
        now: Int64, policy: CachingPolicy
    ) -> (nanoseconds: Int64, source: LifetimeSource) {
        if let seconds = directives.sharedMaxAge { return (DeltaSeconds.nanoseconds(seconds), .sharedMaxAge) }
        if let seconds = directives.maxAge { return (DeltaSeconds.nanoseconds(seconds), .maxAge) }
        // RFC 9213 §2.2: with a targeted field, Expires is ignored like Cache-Control.
        if !isTargeted, let value = fields.firstValue(of: .expires) {
            // §5.3: an invalid date, especially `0`, is in the past.
            guard let expires = HTTPDate.parse(value, now: now) else { return (0, .expires) }
            return (DeltaSeconds.nanoseconds(DeltaSeconds.saturating(expires &- date)), .expires)
        }
        let mayBeGuessed = isHeuristicallyCacheable(status) || directives.contains(.public)
        if mayBeGuessed, let seconds = guess(fields, date: date, now: now, policy: policy), seconds > 0 {
            return (DeltaSeconds.nanoseconds(seconds), .heuristic)
        }
        guard mayBeGuessed || policy.defaultLifetimes.apply(to: status) else { return (0, .none) }
        let nanoseconds = policy.defaultLifetimes.nanoseconds(for: status)
        return nanoseconds == 0 ? (0, .none) : (nanoseconds, .heuristic)
    }

    /// §4.2.2: a share of the time since `Last-Modified`, in seconds. None if the field is absent or not in the past:
    /// responses generated per request often carry the current time there.
    private static func guess(_ fields: FieldView, date: Int64, now: Int64, policy: CachingPolicy) -> UInt32? {
        guard let modified = fields.firstDate(of: .lastModified, now: now), modified < date else { return nil }
        let fraction = (date - modified) * Int64(min(policy.heuristicPercent, 100)) / 100
        return min(DeltaSeconds.saturating(fraction), policy.heuristicLimit)
    }

    /// §4.2.2 and RFC 9110 §15.1: the statuses that may have a heuristic lifetime.
    static func isHeuristicallyCacheable(_ status: Status) -> Bool {
        switch status.code {
        case 200, 203, 204, 206, 300, 301, 308, 404, 405, 410, 414, 501: true
        default: false
        }
    }

    /// §5.1: the first member of the first line; a value other than digits counts as absent.
    static func ageValue(of fields: FieldView) -> UInt32 {
        guard let value = fields.firstValue(of: .age) else { return 0 }
        var members = MemberIterator(value)
        guard let first = members.next() else { return 0 }
        return DeltaSeconds.parse(first) ?? 0
    }

    /// §4.2.3: the nanosecond of the monotonic clock at which the response was generated or validated, as far as can be
    /// computed. The age counts from there.
    ///
    /// The corrected age counts from the time of the request. The apparent age compares two clocks that both count
    /// whole seconds, so a difference of one second is not significant and is ignored.
    static func birth(
        ageValue: UInt32, date: Int64?, requestTime: Moment, responseTime: Moment, trustsDate: Bool
    ) -> Int64 {
        let corrected = min(requestTime.monotonic, responseTime.monotonic) - DeltaSeconds.nanoseconds(ageValue)
        guard trustsDate, let date, responseTime.wall - date > 1 else { return corrected }
        let apparent =
            responseTime.monotonic - DeltaSeconds.nanoseconds(DeltaSeconds.saturating(responseTime.wall - date))
        return min(corrected, apparent)
    }
}

extension FieldView {
    /// The date in the first line of `field`, in seconds since 1970; `nil` if the line is absent or holds no date.
    /// - Parameter now: the wall clock, which determines the century of a two-digit year.
    func firstDate(of field: KnownField, now: Int64) -> Int64? {
        guard let line = firstIndex(of: field) else { return nil }
        return HTTPDate.parse(value(at: line), now: now)
    }
}
