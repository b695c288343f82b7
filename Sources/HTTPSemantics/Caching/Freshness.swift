/// Where a freshness lifetime comes from.
public enum LifetimeSource: UInt8, Sendable {
    case none, sharedMaxAge, maxAge, expires, heuristic

    /// Said by the origin, not guessed (RFC 9111 §4.2).
    var isExplicit: Bool {
        switch self {
        case .sharedMaxAge, .maxAge, .expires: true
        case .none, .heuristic: false
        }
    }
}

/// The arithmetic of RFC 9111 §4.2.1 to §4.2.3, apart from where its numbers come from.
enum Freshness {
    /// §4.2.1: the first of `s-maxage`, `max-age`, `Expires` − `Date` that is there, else a heuristic, else the
    /// operator's default for the status.
    static func lifetime(
        of status: Status, _ directives: ResponseDirectives, isTargeted: Bool, fields: FieldView, date: Int64,
        now: Int64, policy: CachingPolicy
    ) -> (seconds: UInt32, source: LifetimeSource) {
        if let seconds = directives.sharedMaxAge { return (seconds, .sharedMaxAge) }
        if let seconds = directives.maxAge { return (seconds, .maxAge) }
        // RFC 9213 §2.2: with a targeted field, Expires is ignored like Cache-Control.
        if !isTargeted, let value = fields.firstValue(of: .expires) {
            // §5.3: what is no date, `0` first of all, lies in the past.
            guard let expires = HTTPDate.parse(value, now: now) else { return (0, .expires) }
            return (DeltaSeconds.saturating(expires &- date), .expires)
        }
        guard isHeuristicallyCacheable(status) || directives.contains(.public) else { return (0, .none) }
        let seconds: UInt32
        if fields.contains(.lastModified) {
            // One that is not in the past is stamped on whatever is made anew each time.
            guard let modified = fields.firstDate(of: .lastModified, now: now), modified < date else {
                return (0, .none)
            }
            let fraction = (date - modified) * Int64(min(policy.heuristicPercent, 100)) / 100
            seconds = min(DeltaSeconds.saturating(fraction), policy.heuristicLimit)
        } else {
            seconds = policy.defaultLifetimes.seconds(for: status)
        }
        return seconds == 0 ? (0, .none) : (seconds, .heuristic)
    }

    /// §4.2.2 and RFC 9110 §15.1: the statuses that may be given a heuristic lifetime.
    static func isHeuristicallyCacheable(_ status: Status) -> Bool {
        switch status.code {
        case 200, 203, 204, 206, 300, 301, 308, 404, 405, 410, 414, 501: true
        default: false
        }
    }

    /// §5.1: the first member of the first line; anything but digits is as if the field were not there.
    static func ageValue(of fields: FieldView) -> UInt32 {
        guard let value = fields.firstValue(of: .age) else { return 0 }
        var members = MemberIterator(value)
        guard let first = members.next() else { return 0 }
        return DeltaSeconds.parse(first) ?? 0
    }

    /// §4.2.3: the nanosecond of the monotonic clock at which the response was generated or validated, as far as we
    /// can tell. Its age is counted from there.
    ///
    /// The corrected age is counted from the time of the request. The apparent age compares two clocks that both count
    /// whole seconds, so a difference of one second says nothing and is left out.
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
    /// The date that the first line of `field` holds, in seconds since 1970; `nil` if there is none or it is none.
    /// - Parameter now: the wall clock, which tells the century of a two-digit year.
    func firstDate(of field: KnownField, now: Int64) -> Int64? {
        guard let line = firstIndex(of: field) else { return nil }
        return HTTPDate.parse(value(at: line), now: now)
    }
}
