/// The properties of one response that the cache rules use, read from its head once, when it arrives or is freshened.
///
/// A value without references, usable on any thread. A hit compares two or three of its numbers.
public struct ResponseFacts: Sendable, Equatable {
    /// Boolean properties of a response: its directives as they apply here, and the fields that are present.
    public struct Flags: OptionSet, Sendable, Hashable {
        public let rawValue: UInt32
        @inlinable public init(rawValue: UInt32) { self.rawValue = rawValue }

        // Directives
        @inlinable public static var `public`: Self { Self(rawValue: 1 << 0) }
        @inlinable public static var `private`: Self { Self(rawValue: 1 << 1) }
        @inlinable public static var noStore: Self { Self(rawValue: 1 << 2) }
        /// Every reuse needs a validation (RFC 9111 §5.2.2.4).
        @inlinable public static var noCache: Self { Self(rawValue: 1 << 3) }
        /// The response is never served stale: `must-revalidate`, `proxy-revalidate` or an applicable `s-maxage`.
        @inlinable public static var mustRevalidate: Self { Self(rawValue: 1 << 4) }
        @inlinable public static var mustUnderstand: Self { Self(rawValue: 1 << 5) }
        /// `private` or `no-cache` name fields that must not be stored (see `StoredFields`).
        @inlinable public static var excludesFields: Self { Self(rawValue: 1 << 8) }
        /// `must-revalidate`, `public` or `s-maxage`: responses to requests with `Authorization` may be shared (RFC
        /// 9111 §3.5).
        @inlinable public static var allowsAuthorized: Self { Self(rawValue: 1 << 9) }
        /// The directives come from a targeted field (RFC 9213).
        @inlinable public static var isTargeted: Self { Self(rawValue: 1 << 10) }
        /// While it arrives, the response is shared only among requests that match (`CachingPolicy.matchForSharing`): it has
        /// no lifetime in which any request could get it, and no directive by which its origin allows sharing. Its
        /// origin may rely on caches not sharing such responses, and the response may depend on a session or on a
        /// request field.
        @inlinable public static var separatesRequests: Self { Self(rawValue: 1 << 11) }
        /// `separatesRequests` holds and the fetching request was personal: the stored copy is only used after a
        /// validation by entity tag.
        @inlinable public static var isPersonal: Self { Self(rawValue: 1 << 12) }
        /// The origin has since sent a different response, which was not stored in place of this one: this one is never
        /// served stale. Unlike `mustRevalidate`, this is not the origin's directive: later requests may share the next
        /// response.
        @inlinable public static var isSuperseded: Self { Self(rawValue: 1 << 13) }
        // Fields
        @inlinable public static var setsCookie: Self { Self(rawValue: 1 << 16) }
        /// `Vary` names fields that the origin receives as clients send them; or there is a `Content-Encoding`, which
        /// implies variation by `Accept-Encoding` whether `Vary` names it or not (`VaryRule`).
        @inlinable public static var varies: Self { Self(rawValue: 1 << 17) }
        /// `Vary` has the member `*`.
        @inlinable public static var variesByEverything: Self { Self(rawValue: 1 << 18) }
        @inlinable public static var hasStrongETag: Self { Self(rawValue: 1 << 19) }
        @inlinable public static var hasWeakETag: Self { Self(rawValue: 1 << 20) }
        @inlinable public static var hasLastModified: Self { Self(rawValue: 1 << 21) }
        @inlinable public static var hasContentRange: Self { Self(rawValue: 1 << 22) }
        /// A field of `StoredFields.ofContent` is present.
        @inlinable public static var describesContent: Self { Self(rawValue: 1 << 24) }
        /// `Vary` names a field with which an origin receives more than clients send (`FieldSight`).
        @inlinable public static var variesByMore: Self { Self(rawValue: 1 << 23) }
        /// The content is generated over time, and forwarded piece by piece: server-sent events, `Incremental: ?1` (RFC
        /// 10036).
        @inlinable public static var isIncremental: Self { Self(rawValue: 1 << 27) }
        // After receipt
        /// One of the response's cache groups was invalidated: validate before the next use (RFC 9875 §3). Set only for
        /// that: a response that an unsafe request or a purge invalidates is dropped.
        @inlinable public static var isInvalidated: Self { Self(rawValue: 1 << 31) }
    }

    /// The status of the response; 200 for parts of a representation.
    public let status: Status
    public private(set) var flags: Flags
    /// The source of the lifetime.
    public let lifetimeSource: LifetimeSource
    /// Seconds (RFC 9111 §4.2.1), rounded up: 0 means no lifetime at all. `freshUntil` is exact.
    public let lifetime: UInt32
    /// Seconds past the lifetime for which the response may be served while a refresh runs (RFC 5861 §3).
    public private(set) var staleWhileRevalidate: UInt32
    /// Seconds past the lifetime for which the response may be served when the origin fails (RFC 5861 §4).
    public let staleIfError: UInt32
    /// Nanosecond of the monotonic clock from which the age counts (RFC 9111 §4.2.3).
    public let born: Int64
    /// Nanosecond of the monotonic clock from which on the response is stale.
    public private(set) var freshUntil: Int64
    /// The time when the head was complete.
    public let responseTime: Moment
    /// `Date`, or the time it was received (RFC 9110 §6.6.1), in seconds since 1970.
    public let date: Int64
    /// `Last-Modified` in seconds since 1970. Only with `hasLastModified`.
    public let lastModified: Int64

    /// Reads the head of a response.
    /// - Parameters:
    ///   - requestTime: the time when sending the request started or ended.
    ///   - responseTime: the time when the response's head was complete.
    ///   - age: the initial `Age` if it is not in `fields`, as after a 304 (RFC 9111 §4.3.4).
    public init(
        status: Status, fields: FieldView, requestTime: Moment, responseTime: Moment, policy: borrowing CachingPolicy,
        age: UInt32? = nil
    ) {
        let targeted = TargetedCacheControl.directives(of: fields, policy: policy)
        let directives = targeted ?? ResponseDirectives(cacheControlOf: fields)
        let statedDate = fields.firstDate(of: .date, now: responseTime.wall)
        let modified = fields.firstDate(of: .lastModified, now: responseTime.wall)
        let date = statedDate ?? responseTime.wall

        self.status = status
        self.responseTime = responseTime
        self.date = date
        lastModified = modified ?? .min
        let (stated, source) = Freshness.lifetime(
            of: status, directives, isTargeted: targeted != nil, fields: fields, date: date, now: responseTime.wall,
            policy: policy
        )
        born = Freshness.birth(
            ageValue: age ?? Freshness.ageValue(of: fields), date: statedDate,
            requestTime: requestTime, responseTime: responseTime, trustsDate: policy.trustsDate
        )
        let term = FreshnessTerm(
            of: status, stated: stated, source, born: born, arrival: responseTime.monotonic, policy: policy)
        lifetime = term.seconds
        lifetimeSource = term.source
        freshUntil = term.end
        staleWhileRevalidate = directives.staleWhileRevalidate ?? policy.staleWhileRevalidate
        staleIfError = directives.staleIfError ?? policy.staleIfError
        let permits =
            term.rule == .own
            || directives.permitSharing(
                stating: source.isExplicit ? stated : nil, keepsNoCache: term.rule != .replaced)
        flags = Self.flags(
            directives, fields, isTargeted: targeted != nil, hasLastModified: modified != nil, term.rule,
            permitsSharing: permits, policy)
        // With a lifetime it is a hit for all clients a moment later, unless each use needs a validation or responses
        // are not stored.
        if lifetime == 0 || flags.contains(.noCache) || !policy.storesResponses, !policy.sharesAcrossCookies,
            !status.isServerError,
            !flags.contains(.public), !directives.allowsStale, directives.sharedMaxAge ?? 0 == 0
        {
            flags.insert(.separatesRequests)
        }
    }

    private static func flags(
        _ directives: ResponseDirectives, _ fields: FieldView, isTargeted: Bool, hasLastModified: Bool,
        _ rule: FreshnessTerm.Rule, permitsSharing: Bool, _ policy: CachingPolicy
    ) -> Flags {
        var flags: Flags = []
        func set(_ flag: Flags, _ condition: Bool) { if condition { flags.insert(flag) } }
        let isShared = directives.sharedMaxAge != nil
        let isReplaced = rule == .replaced
        set(.public, directives.contains(.public) && permitsSharing)
        set(.private, directives.contains(.private))
        set(.noStore, directives.contains(.noStore))
        if !isReplaced {
            set(.noCache, directives.contains(.noCache))
            set(.mustRevalidate, directives.contains(.mustRevalidate) || directives.contains(.proxyRevalidate))
            set(.mustRevalidate, isShared && policy.sharedMaxAgeForbidsStale)
        }
        set(.mustUnderstand, directives.contains(.mustUnderstand))
        set(.excludesFields, directives.contains(.privateFields) || directives.contains(.noCacheFields))
        set(.allowsAuthorized, directives.allowAuthorized(keepingLifetime: rule == .own, permits: permitsSharing))
        set(.isTargeted, isTargeted)
        if fields.contains(.setCookie) {
            // A `Set-Cookie` that is excluded from the stored head is harmless.
            let name = Array("set-cookie".utf8)
            set(.setsCookie, !ExcludedFields(fields, isTargeted: isTargeted, policy: policy).contains(name.span))
        }
        set(.hasLastModified, hasLastModified)
        set(.hasContentRange, fields.contains(.contentRange))
        set(.describesContent, !fields.present.isDisjoint(with: StoredFields.ofContent))
        set(.isIncremental, fields.isIncremental)
        if fields.contains(.vary) || fields.contains(.contentEncoding) {
            switch VaryRule.scope(fields, policy) {
            case .nothing: break
            case .fields: set(.varies, true)
            case .everything: set(.variesByEverything, true)
            case .more: set(.variesByMore, true)
            }
        }
        if let tag = fields.entityTag { set(tag.isWeak ? .hasWeakETag : .hasStrongETag, true) }
        return flags
    }

    /// Whether all of `flag` hold.
    @inlinable public func contains(_ flag: Flags) -> Bool { flags.contains(flag) }

    /// Whether the response has a validator. For a response of one session, a date is not sufficient: it does not
    /// identify the user.
    var hasValidator: Bool {
        !flags.isDisjoint(with: [.hasStrongETag, .hasWeakETag])
            || (contains(.hasLastModified) && !contains(.isPersonal))
    }

    /// Whether the response is never served stale, even if other rules permit it.
    var forbidsStale: Bool { !flags.isDisjoint(with: [.mustRevalidate, .isPersonal, .isSuperseded]) }

    /// Seconds (RFC 9111 §4.2.3, current_age), counted on the monotonic clock only.
    @inlinable
    public func age(at now: Moment) -> UInt32 { DeltaSeconds.saturating((now.monotonic &- born) / 1_000_000_000) }

    /// Seconds for which the response stays fresh; negative once it is stale (RFC 9211 §2.5).
    @inlinable
    public func timeToLive(at now: Moment) -> Int64 {
        isFresh(at: now)
            ? Int64(lifetime) &- Int64(age(at: now))
            : -Int64(DeltaSeconds.saturating((now.monotonic &- freshUntil) / 1_000_000_000))
    }

    /// Sets `isPersonal` if the fetching request belonged to a session, so that its response may differ from all
    /// others; only if no directive allows sharing the response.
    /// - Parameter isPersonal: evaluated only if the result depends on it.
    public mutating func keep(toSession isPersonal: @autoclosure () -> Bool) {
        // A response that may not be stored needs no flag; with `must-understand`, `no-store` is ignored (§5.2.2.3).
        if contains(.separatesRequests), !contains(.noStore) || contains(.mustUnderstand), isPersonal() {
            flags.insert(.isPersonal)
        }
    }

    /// Requires a validation before the response is used again (RFC 9111 §4.4).
    public mutating func invalidate() { flags.insert(.isInvalidated) }

    /// Forbids serving the response stale from now on: the origin sent a different response (RFC 9111 §4.3.3).
    public mutating func forbidStale() { flags.insert(.isSuperseded) }

    /// Makes the response stale from now on (RFC 9111 §4.3.5).
    public mutating func expire(at now: Moment) { freshUntil = min(freshUntil, now.monotonic) }

    /// Makes a fresh response stale after a soft purge. It may be served for `softening.grace` while it is refreshed,
    /// unless a directive forbids that.
    /// - Returns: false, without a change, if the response was stale already.
    public mutating func soften(by softening: Softening) -> Bool {
        guard lifetime > 0, freshUntil > softening.staleSince else { return false }
        freshUntil = softening.staleSince
        staleWhileRevalidate = max(staleWhileRevalidate, softening.staleWhileRevalidate)
        return true
    }
}

/// A soft purge: the responses that it reaches become stale.
public struct Softening: Sendable, Equatable {
    /// Nanoseconds of the monotonic clock.
    public let time: Int64
    /// Seconds from then on in which the responses may be served while they are refreshed.
    public let grace: UInt32

    public init(at time: Int64, grace: UInt32) {
        self.time = time
        self.grace = grace
    }

    /// Seconds by which the clock of a loop may be behind, which is read once an iteration.
    private static let clockLag: UInt32 = 1
    /// When the responses became stale, by whatever loop's clock.
    fileprivate var staleSince: Int64 { time - DeltaSeconds.nanoseconds(Self.clockLag) }
    fileprivate var staleWhileRevalidate: UInt32 {
        grace == 0 ? 0 : DeltaSeconds.saturating(Int64(grace + Self.clockLag))
    }
}
