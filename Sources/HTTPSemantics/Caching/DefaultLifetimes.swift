/// How long responses are fresh that state no lifetime, and of which no guess can be made or is wanted (RFC 9111 §4.2.2;
/// Varnish's `default_ttl`, nginx's `proxy_cache_valid`); zero means not at all.
public struct DefaultLifetimes: Sendable, Equatable {
    /// The lifetime of responses with one status.
    public struct Lifetime: Sendable, Equatable {
        /// The status of the response.
        public var status: Status
        /// How long it is fresh.
        public var duration: Duration { .nanoseconds(nanoseconds) }
        fileprivate let nanoseconds: Int64

        /// The lifetime for `status`.
        public init(_ status: Status, _ duration: Duration) {
            (self.status, nanoseconds) = (status, DefaultLifetimes.nanoseconds(of: duration))
        }
    }

    /// The statuses with a lifetime of their own.
    public var named: [Lifetime] = []
    /// The lifetime for all other statuses.
    public var other: Duration {
        get { .nanoseconds(otherNanoseconds) }
        set { otherNanoseconds = Self.nanoseconds(of: newValue) }
    }
    // Every response asks for it, and a `Duration` counts in 128 bits.
    private var otherNanoseconds: Int64

    /// None, unless some are given.
    public init(_ named: [Lifetime] = [], other: Duration = .zero) {
        (self.named, otherNanoseconds) = (named, Self.nanoseconds(of: other))
    }

    private static func nanoseconds(of duration: Duration) -> Int64 {
        let (seconds, attoseconds) = duration.components
        return seconds &* 1_000_000_000 &+ attoseconds / 1_000_000_000
    }

    /// The lifetime of a response with `status`, in nanoseconds. A 206 is part of a 200 (RFC 9111 §3.3).
    func nanoseconds(for status: Status) -> Int64 {
        if named.isEmpty { return otherNanoseconds }
        let status = status == .partialContent ? .ok : status
        return named.first { $0.status == status }?.nanoseconds ?? otherNanoseconds
    }

    /// Whether a response with `status` has one though it says nothing at all, not even `public`: where a guess would be
    /// allowed, and for a redirection that the operator has named, as `needsName` says.
    func apply(to status: Status) -> Bool {
        if Freshness.isHeuristicallyCacheable(status) { return true }
        return Self.needsName(status) && named.contains { $0.status == status }
    }

    /// Whether a response with `status` may have one though it says nothing at all, not even `public` (RFC 9111 §3,
    /// §4.2.2).
    public static func mayHave(_ status: Status) -> Bool {
        guard status != .partialContent, !status.concernsRequest else { return false }
        return Freshness.isHeuristicallyCacheable(status) || needsName(status)
    }

    /// 302 and 307: RFC 9111 §3 has them stored only if they say so themselves. Many origins send nothing with them, and
    /// the operator knows whether they lead all clients to the same place; so the operator must name them.
    static func needsName(_ status: Status) -> Bool { status.code == 302 || status.code == 307 }
}
