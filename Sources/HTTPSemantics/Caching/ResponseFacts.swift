/// What the cache rules need to know of one response, read from its head once, when it arrives or is freshened.
///
/// A value without references, free to go to any thread. A hit compares two or three of its numbers.
public struct ResponseFacts: Sendable, Equatable {
    /// What is yes or no about a response: its directives as they apply here, and which fields it has.
    public struct Flags: OptionSet, Sendable, Hashable {
        public let rawValue: UInt32
        @inlinable public init(rawValue: UInt32) { self.rawValue = rawValue }

        // Directives
        @inlinable public static var `public`: Self { Self(rawValue: 1 << 0) }
        @inlinable public static var `private`: Self { Self(rawValue: 1 << 1) }
        @inlinable public static var noStore: Self { Self(rawValue: 1 << 2) }
        /// Every reuse needs a validation (RFC 9111 §5.2.2.4).
        @inlinable public static var noCache: Self { Self(rawValue: 1 << 3) }
        /// Never to be served stale: `must-revalidate`, `proxy-revalidate` or an applicable `s-maxage`.
        @inlinable public static var mustRevalidate: Self { Self(rawValue: 1 << 4) }
        @inlinable public static var mustUnderstand: Self { Self(rawValue: 1 << 5) }
        /// `private` or `no-cache` name fields that must not be stored (see `StoredFields`).
        @inlinable public static var excludesFields: Self { Self(rawValue: 1 << 8) }
        /// `must-revalidate`, `public` or `s-maxage`: answers to `Authorization` may be shared (RFC 9111 §3.5).
        @inlinable public static var allowsAuthorized: Self { Self(rawValue: 1 << 9) }
        /// The directives are those of a targeted field (RFC 9213).
        @inlinable public static var isTargeted: Self { Self(rawValue: 1 << 10) }
        /// The response is shared only among requests that are alike (`CachingPolicy.areAlike`) while it arrives: it
        /// has no lifetime in which any request could have it, and says nothing by which its origin allows that. It may
        /// have been written for servers that share nothing of the kind, and show what belongs to a session or answers
        /// a field.
        @inlinable public static var separatesRequests: Self { Self(rawValue: 1 << 11) }
        /// `separatesRequests` holds and the fetching request was personal: the stored copy is only ever validated, by
        /// entity tag.
        @inlinable public static var isOfSession: Self { Self(rawValue: 1 << 12) }
        /// The origin has answered with something else since, which was not stored in its place: never to be served
        /// stale. Not the origin's word, as `mustRevalidate` is: who asks next may share what comes.
        @inlinable public static var isSuperseded: Self { Self(rawValue: 1 << 13) }
        // Fields
        @inlinable public static var setsCookie: Self { Self(rawValue: 1 << 16) }
        /// There is a `Vary` that names fields of which an origin sees what clients send; or a `Content-Encoding`, which
        /// varies by `Accept-Encoding` whether it is named or not (`VaryRule`).
        @inlinable public static var varies: Self { Self(rawValue: 1 << 17) }
        /// `Vary` has the member `*`.
        @inlinable public static var variesByEverything: Self { Self(rawValue: 1 << 18) }
        @inlinable public static var hasStrongETag: Self { Self(rawValue: 1 << 19) }
        @inlinable public static var hasWeakETag: Self { Self(rawValue: 1 << 20) }
        @inlinable public static var hasLastModified: Self { Self(rawValue: 1 << 21) }
        @inlinable public static var hasContentRange: Self { Self(rawValue: 1 << 22) }
        /// Some of `StoredFields.ofContent` is there.
        @inlinable public static var describesContent: Self { Self(rawValue: 1 << 24) }
        /// `Vary` names a field of which an origin sees more than clients send (`FieldSight`).
        @inlinable public static var variesByMore: Self { Self(rawValue: 1 << 23) }
        /// It is written as things happen, and forwarded piece by piece: server-sent events, `Incremental: ?1`
        /// (RFC 10036).
        @inlinable public static var isIncremental: Self { Self(rawValue: 1 << 27) }
        // Afterwards
        /// One of its cache groups was invalidated: to be validated before it is used again (RFC 9875 §3). Never
        /// stored: what an unsafe request or a purge invalidates is dropped.
        @inlinable public static var isInvalidated: Self { Self(rawValue: 1 << 31) }
    }

    /// The status of the response; 200 for parts of a representation.
    public let status: Status
    public private(set) var flags: Flags
    /// Where its lifetime comes from.
    public let lifetimeSource: LifetimeSource
    /// Seconds (RFC 9111 §4.2.1), rounded up: 0 is none at all. `freshUntil` is exact.
    public let lifetime: UInt32
    /// Seconds past the lifetime for which it may be served while a refresh runs (RFC 5861 §3).
    public let staleWhileRevalidate: UInt32
    /// Seconds past the lifetime for which it may be served when the origin fails (RFC 5861 §4).
    public let staleIfError: UInt32
    /// Nanosecond of the monotonic clock from which the age counts (RFC 9111 §4.2.3).
    public let born: Int64
    /// Nanosecond of the monotonic clock from which on it is stale.
    public private(set) var freshUntil: Int64
    /// When its head was there.
    public let responseTime: Moment
    /// `Date`, or the time it was received (RFC 9110 §6.6.1), in seconds since 1970.
    public let date: Int64
    /// `Last-Modified` in seconds since 1970. Only with `hasLastModified`.
    public let lastModified: Int64

    /// Reads the head of a response.
    /// - Parameters:
    ///   - requestTime: when the request was sent, or started to be.
    ///   - responseTime: when the response's head was there.
    ///   - age: the `Age` to start from where it does not stand in `fields`, as after a 304 (RFC 9111 §4.3.4).
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
        let nanoseconds: Int64
        (nanoseconds, lifetimeSource) = Freshness.lifetime(
            of: status, directives, isTargeted: targeted != nil, fields: fields, date: date, now: responseTime.wall,
            policy: policy
        )
        lifetime = DeltaSeconds.saturating((nanoseconds &+ 999_999_999) / 1_000_000_000)
        born = Freshness.birth(
            ageValue: age ?? Freshness.ageValue(of: fields), date: statedDate,
            requestTime: requestTime, responseTime: responseTime, trustsDate: policy.trustsDate
        )
        freshUntil = born + nanoseconds
        staleWhileRevalidate = directives.staleWhileRevalidate ?? policy.staleWhileRevalidate
        staleIfError = directives.staleIfError ?? policy.staleIfError
        flags = Self.flags(directives, fields, isTargeted: targeted != nil, hasLastModified: modified != nil, policy)
        // With a lifetime it is a hit for everybody a moment later, unless each has to ask, or nothing is ever stored.
        if lifetime == 0 || flags.contains(.noCache) || !policy.storesResponses, !policy.sharesAcrossCookies,
            !status.isServerError,
            !flags.contains(.public), !directives.allowsStale, directives.sharedMaxAge ?? 0 == 0
        {
            flags.insert(.separatesRequests)
        }
    }

    private static func flags(
        _ directives: ResponseDirectives, _ fields: FieldView, isTargeted: Bool, hasLastModified: Bool,
        _ policy: CachingPolicy
    ) -> Flags {
        var flags: Flags = []
        func set(_ flag: Flags, _ condition: Bool) { if condition { flags.insert(flag) } }
        let isShared = directives.sharedMaxAge != nil
        let isPermitted = directives.contains(.public) || isShared && !directives.sharedMaxAgeIsBroken
        set(.public, directives.contains(.public))
        set(.private, directives.contains(.private))
        set(.noStore, directives.contains(.noStore))
        set(.noCache, directives.contains(.noCache))
        set(.mustRevalidate, directives.contains(.mustRevalidate) || directives.contains(.proxyRevalidate))
        set(.mustRevalidate, isShared && policy.sharedMaxAgeForbidsStale)
        set(.mustUnderstand, directives.contains(.mustUnderstand))
        set(.excludesFields, directives.contains(.privateFields) || directives.contains(.noCacheFields))
        // `max-age=0, private, must-revalidate` is what frameworks add where a page says nothing: no word about others.
        let isPersonal = directives.contains(.private) || directives.contains(.noStore)
        set(
            .allowsAuthorized,
            isPermitted || directives.contains(.plainMustRevalidate) && !isPersonal)
        set(.isTargeted, isTargeted)
        if fields.contains(.setCookie) {
            // A cookie that is not stored does no harm.
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

    /// Whether there is anything a validation could be made with. A date says nothing of whose page it is.
    var hasValidator: Bool {
        !flags.isDisjoint(with: [.hasStrongETag, .hasWeakETag])
            || (contains(.hasLastModified) && !contains(.isOfSession))
    }

    /// Whether it is never to be served stale, whatever else is allowed.
    var forbidsStale: Bool { !flags.isDisjoint(with: [.mustRevalidate, .isOfSession, .isSuperseded]) }

    /// Seconds (RFC 9111 §4.2.3, current_age), counted on the monotonic clock only.
    @inlinable
    public func age(at now: Moment) -> UInt32 { DeltaSeconds.saturating((now.monotonic &- born) / 1_000_000_000) }

    /// Seconds it stays fresh; negative once it is stale (RFC 9211 §2.5).
    @inlinable
    public func timeToLive(at now: Moment) -> Int64 {
        isFresh(at: now)
            ? Int64(lifetime) &- Int64(age(at: now))
            : -Int64(DeltaSeconds.saturating((now.monotonic &- freshUntil) / 1_000_000_000))
    }

    /// Sets `isOfSession` if the fetching request was of a session, and so may have got what no other gets; only where
    /// nothing says that others may have the response.
    /// - Parameter isOfSession: asked only where it matters.
    public mutating func keep(toSession isOfSession: @autoclosure () -> Bool) {
        // What may not be stored has no need of it; beside `must-understand`, `no-store` does not count (§5.2.2.3).
        if contains(.separatesRequests), !contains(.noStore) || contains(.mustUnderstand), isOfSession() {
            flags.insert(.isOfSession)
        }
    }

    /// Requires a validation before the response is used again (RFC 9111 §4.4).
    public mutating func invalidate() { flags.insert(.isInvalidated) }

    /// Forbids serving the response stale from now on: the origin answered with something else (RFC 9111 §4.3.3).
    public mutating func forbidStale() { flags.insert(.isSuperseded) }

    /// Makes the response stale from now on (RFC 9111 §4.3.5).
    public mutating func expire(at now: Moment) { freshUntil = min(freshUntil, now.monotonic) }
}
