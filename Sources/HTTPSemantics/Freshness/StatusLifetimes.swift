/// Freshness lifetimes that the operator gives to responses by their status: to responses that state none
/// (`default-ttl`; RFC 9111 §4.2.2, Varnish's `default_ttl`, nginx's `proxy_cache_valid`), or in place of the lifetime
/// that they state (`ttl`). Zero means not fresh at all.
public struct StatusLifetimes: Sendable, Equatable {
    /// The lifetime of responses with one status.
    public struct Lifetime: Sendable, Equatable {
        /// The status of the response.
        public var status: Status
        /// The freshness lifetime.
        public var duration: Duration { .nanoseconds(nanoseconds) }
        fileprivate let nanoseconds: Int64

        /// The lifetime for `status`.
        public init(_ status: Status, _ duration: Duration) {
            (self.status, nanoseconds) = (status, StatusLifetimes.nanoseconds(of: duration))
        }
    }

    /// The statuses with a lifetime of their own.
    public var named: [Lifetime] = []
    /// The lifetime for all other statuses; `nil`: they get none.
    public var other: Duration? {
        get { otherNanoseconds.map { .nanoseconds($0) } }
        set { otherNanoseconds = newValue.map { Self.nanoseconds(of: $0) } }
    }
    // Nanoseconds, since every response reads this value, and a `Duration` takes 128 bits.
    private var otherNanoseconds: Int64?

    /// No lifetimes, unless some are given.
    public init(_ named: [Lifetime] = [], other: Duration? = nil) {
        (self.named, otherNanoseconds) = (named, other.map { Self.nanoseconds(of: $0) })
    }

    /// Whether no status gets a lifetime.
    public var isEmpty: Bool { named.isEmpty && otherNanoseconds == nil }

    private static func nanoseconds(of duration: Duration) -> Int64 {
        let (seconds, attoseconds) = duration.components
        return seconds &* 1_000_000_000 &+ attoseconds / 1_000_000_000
    }

    /// The lifetime that is named for `status`, in nanoseconds. A 206 is part of a 200 (RFC 9111 §3.3).
    private func named(for status: Status) -> Int64? {
        if named.isEmpty { return nil }
        let status = status == .partialContent ? .ok : status
        return named.first { $0.status == status }?.nanoseconds
    }

    // MARK: For responses that state no lifetime

    /// The lifetime of a response with `status` that states none, in nanoseconds.
    func nanoseconds(for status: Status) -> Int64 { named(for: status) ?? otherNanoseconds ?? 0 }

    /// Whether a response with `status` gets a default lifetime even without any directive or `Expires`, not even
    /// `public`: if the status is heuristically cacheable, or a redirection that the operator has named (`needsName`).
    func apply(to status: Status) -> Bool {
        if Freshness.isHeuristicallyCacheable(status) { return true }
        return Self.needsName(status) && named.contains { $0.status == status }
    }

    /// Whether a response with `status` may get a default lifetime even without any directive, not even `public` (RFC
    /// 9111 §3, §4.2.2). The operator's value is a heuristic of this cache, not a statement of the response; so for 403
    /// or 500 it would have no effect, and naming them is a mistake in the configuration.
    public static func mayHave(_ status: Status) -> Bool {
        guard status != .partialContent, !status.concernsRequest else { return false }
        return Freshness.isHeuristicallyCacheable(status) || needsName(status)
    }

    /// 302 and 307: RFC 9111 §3 permits storing them only with an explicit directive. Many origins send none with them,
    /// and the operator knows whether they redirect all clients to the same place; so the operator must name the
    /// status.
    static func needsName(_ status: Status) -> Bool { status.code == 302 || status.code == 307 }

    // MARK: In place of the lifetime that a response states

    /// The lifetime of a response with `status` in place of its own, in nanoseconds; `nil`: the response keeps its own. A
    /// status that is not heuristically cacheable, such as 500, must be named.
    func replacement(for status: Status) -> Int64? {
        if let lifetime = named(for: status) { return lifetime }
        guard let otherNanoseconds, Freshness.isHeuristicallyCacheable(status) else { return nil }
        return otherNanoseconds
    }

    /// Whether a response with `status` may be stored if the operator gives it a lifetime. A response about one request
    /// is for no other client, unless its status may concern the resource as well. A 304 is no response of its own.
    public static func mayReplace(_ status: Status) -> Bool {
        guard !status.isInformational, status != .partialContent, status != .notModified else { return false }
        return !status.concernsRequest || status.mayConcernResource
    }
}
