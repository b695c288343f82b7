/// How long responses are fresh that give no hint of it, not even `Last-Modified` (RFC 9111 §4.2.2; Varnish's
/// `default_ttl`, nginx's `proxy_cache_valid`), in seconds; 0 means not at all.
public struct DefaultLifetimes: Sendable, Equatable {
    /// The lifetime of responses with one status.
    public struct Lifetime: Sendable, Equatable {
        /// The status of the response.
        public var status: Status
        /// How long it is fresh.
        public var seconds: UInt32

        /// The lifetime for `status`, in seconds.
        public init(_ status: Status, _ seconds: UInt32) { (self.status, self.seconds) = (status, seconds) }
    }

    /// The statuses with a lifetime of their own.
    public var named: [Lifetime] = []
    /// The lifetime for all other statuses.
    public var other: UInt32

    /// None, unless some are given.
    public init(_ named: [Lifetime] = [], other: UInt32 = 0) { (self.named, self.other) = (named, other) }

    /// The lifetime of a response with `status`. A 206 is part of a 200 (RFC 9111 §3.3).
    func seconds(for status: Status) -> UInt32 {
        let status = status == .partialContent ? .ok : status
        for lifetime in named where lifetime.status == status { return lifetime.seconds }
        return other
    }

    /// Whether a response with `status` may have one though it says nothing at all, not even `public` (RFC 9111 §3,
    /// §4.2.2).
    public static func mayHave(_ status: Status) -> Bool {
        status != .partialContent && Freshness.isHeuristicallyCacheable(status)
    }
}
