/// The time in which a response is fresh: by its own lifetime, and by the operator's `ttl`, `min-ttl` and `max-ttl`.
///
/// The operator's times count from the arrival of the response, and its `Age` does not shorten them. The response's own
/// lifetime counts from its birth (RFC 9111 §4.2.3).
///
/// ```
/// born ──── age ──── arrival ──────── fresh ──────── end
///   ├─────────────── lifetime stated ────────────────┤
///                       ├─ min-ttl ─┤
///                       ├──────────── max-ttl ────────────┤
///                       ├───────── ttl, in place of all ─────────┤
/// ```
struct FreshnessTerm {
    /// The effect of the operator's settings on the lifetime that the response states.
    enum Rule {
        /// The lifetime is the response's own, or shorter.
        case own
        /// It was prolonged to `min-ttl`.
        case prolonged
        /// `ttl` is in its place, and in the place of the directives that require a validation.
        case replaced
    }

    /// Nanosecond of the monotonic clock from which on the response is stale.
    let end: Int64
    /// As `ResponseFacts.lifetime`.
    let seconds: UInt32
    let source: LifetimeSource
    let rule: Rule

    /// - Parameters:
    ///   - stated: the response's own lifetime in nanoseconds; 0 if its `source` is `none`.
    ///   - born: when the age counts from, in nanoseconds of the monotonic clock like `arrival`.
    init(
        of status: Status, stated: Int64, _ source: LifetimeSource, born: Int64, arrival: Int64,
        policy: borrowing CachingPolicy
    ) {
        // A lifetime of zero states that the response is not fresh, and so permits no sharing.
        let extended = source.isExplicit && stated > 0 ? source : .configured
        if let lifetime = policy.fixedLifetimes.replacement(for: status) {
            self.init(arrival &+ lifetime, born, isNone: lifetime == 0, extended, .replaced)
            return
        }
        let left = born &+ stated &- arrival
        let (least, most) = (
            DeltaSeconds.nanoseconds(policy.minLifetime), DeltaSeconds.nanoseconds(policy.maxLifetime)
        )
        if left > most, source != .none {
            self.init(arrival &+ most, born, isNone: most == 0, source, .own)
        } else if least > 0, left < least, source != .none, Freshness.isHeuristicallyCacheable(status) {
            // An error that says `max-age=0` is not kept.
            self.init(arrival &+ least, born, isNone: false, extended, .prolonged)
        } else {
            self.init(
                end: born &+ stated, seconds: DeltaSeconds.saturating((stated &+ 999_999_999) / 1_000_000_000),
                source, .own)
        }
    }

    private init(end: Int64, seconds: UInt32, _ source: LifetimeSource, _ rule: Rule) {
        (self.end, self.seconds, self.source, self.rule) = (end, seconds, source, rule)
    }

    /// A lifetime that ends at `end`. Rounded down, since the time that the request took is no whole number of seconds,
    /// and a lifetime of one minute should not be announced as 61 s.
    private init(_ end: Int64, _ born: Int64, isNone: Bool, _ source: LifetimeSource, _ rule: Rule) {
        let seconds = isNone ? 0 : max(1, DeltaSeconds.saturating((end &- born) / 1_000_000_000))
        self.init(end: end, seconds: seconds, source, rule)
    }
}
