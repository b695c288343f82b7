import Bytes

/// The request directives that a route ignores, since any client could use them to send every request to the origin.
///
/// RFC 9111 §5.2.1: request directives are advisory.
public struct RequestDirectivePolicy: OptionSet, Sendable, Hashable {
    public let rawValue: UInt8
    public init(rawValue: UInt8) { self.rawValue = rawValue }

    public static let ignoresNoCache = Self(rawValue: 1)
    public static let ignoresMaxAge = Self(rawValue: 2)
    public static let ignoresMinFresh = Self(rawValue: 4)

    /// All directives of RFC 9111 §5.2.1.
    public static let honoursAll: Self = []
    /// No directive bypasses a fresh stored response. `no-store` is a promise to the client, so it still applies.
    public static let protectsOrigin: Self = [.ignoresNoCache, .ignoresMaxAge, .ignoresMinFresh]
}

/// The directives of a request's `Cache-Control` (or, without one, `Pragma`). Sources: RFC 9111 §5.2.1, §5.4; RFC 5861
/// §4.
///
/// An absent limit has a neutral value, so a hit only compares numbers.
public struct RequestDirectives: Sendable, Equatable {
    /// Directives without a number, and the presence of directives with one.
    public struct Flags: OptionSet, Sendable, Hashable {
        public let rawValue: UInt8
        @inlinable public init(rawValue: UInt8) { self.rawValue = rawValue }

        @inlinable public static var noCache: Self { Self(rawValue: 1) }
        @inlinable public static var noStore: Self { Self(rawValue: 2) }
        @inlinable public static var onlyIfCached: Self { Self(rawValue: 4) }
        /// `max-stale` is present, with or without a value.
        @inlinable public static var acceptsStale: Self { Self(rawValue: 16) }
        /// `max-age` or `min-fresh` is present.
        @inlinable public static var limitsAge: Self { Self(rawValue: 32) }
    }

    /// Empty for almost every request.
    public var flags: Flags = []
    /// Seconds; the greatest accepted age. `UInt32.max` if absent.
    public var maxAge: UInt32 = .max
    /// Seconds for which the response must stay fresh; 0 if absent.
    public var minFresh: UInt32 = 0
    /// Accepted seconds past the lifetime; `DeltaSeconds.infinite` for `max-stale` without a value.
    public var maxStale: UInt32 = 0
    /// Accepted seconds past the lifetime when the origin fails; 0 if absent.
    public var staleIfError: UInt32 = 0

    /// The directives of a request without these fields: none.
    public static let none = RequestDirectives()

    public init() {}

    /// Reads the fields of a request. Costs one bit test per field if the request has none of them.
    @inlinable
    public init(_ fields: FieldView, ignoring policy: RequestDirectivePolicy = .honoursAll) {
        self.init()
        guard fields.contains(.cacheControl) || fields.contains(.pragma) else { return }
        read(fields, policy)
    }

    /// See `Flags`; RFC 9111 §5.2.1 defines each directive.
    @inlinable public var noCache: Bool { flags.contains(.noCache) }
    @inlinable public var noStore: Bool { flags.contains(.noStore) }
    @inlinable public var onlyIfCached: Bool { flags.contains(.onlyIfCached) }
    @inlinable public var acceptsStale: Bool { flags.contains(.acceptsStale) }
    @inlinable public var limitsAge: Bool { flags.contains(.limitsAge) }

    @usableFromInline
    mutating func read(_ fields: FieldView, _ policy: RequestDirectivePolicy) {
        if fields.contains(.cacheControl) {
            var directives = DirectiveIterator(fields, .cacheControl)
            while let directive = directives.next() { take(directive) }
        } else if Self.pragmaSaysNoCache(fields) {
            flags.insert(.noCache)
        }
        drop(policy)
    }

    /// Of a repeated directive the more restrictive value applies, except that `stale-if-error=0` counts as absent. A
    /// directive with an invalid argument counts as absent, since request directives are advisory.
    private mutating func take(_ directive: CacheDirective) {
        let name = directive.name
        let seconds = directive.form == .malformed ? nil : DeltaSeconds.parse(directive.argument)
        switch name.count {
        case 7:
            if name.isEqualIgnoringCase(to: "max-age"), let seconds {
                maxAge = min(maxAge, seconds)
                flags.insert(.limitsAge)
            }
        case 8:
            if name.isEqualIgnoringCase(to: "no-cache") { flags.insert(.noCache) }
            if name.isEqualIgnoringCase(to: "no-store") { flags.insert(.noStore) }
        case 9:
            if name.isEqualIgnoringCase(to: "max-stale") {
                guard let limit = directive.form == .bare ? DeltaSeconds.infinite : seconds else { return }
                maxStale = acceptsStale ? min(maxStale, limit) : limit
                flags.insert(.acceptsStale)
            } else if name.isEqualIgnoringCase(to: "min-fresh"), let seconds {
                minFresh = max(minFresh, seconds)
                flags.insert(.limitsAge)
            }
        case 14:
            if name.isEqualIgnoringCase(to: "only-if-cached") { flags.insert(.onlyIfCached) }
            if name.isEqualIgnoringCase(to: "stale-if-error"), let seconds {
                staleIfError = staleIfError == 0 ? seconds : min(staleIfError, seconds)
            }
        default:
            return
        }
    }

    private mutating func drop(_ policy: RequestDirectivePolicy) {
        guard !policy.isEmpty else { return }
        if policy.contains(.ignoresNoCache) { flags.remove(.noCache) }
        if policy.contains(.ignoresMaxAge) { maxAge = .max }
        if policy.contains(.ignoresMinFresh) { minFresh = 0 }
        if maxAge == .max, minFresh == 0 { flags.remove(.limitsAge) }
    }

    /// RFC 9111 §5.4: only `no-cache` has a meaning, and only without `Cache-Control`.
    private static func pragmaSaysNoCache(_ fields: FieldView) -> Bool {
        var directives = DirectiveIterator(fields, .pragma)
        while let directive = directives.next() {
            if directive.name.isEqualIgnoringCase(to: "no-cache"), directive.form == .bare { return true }
        }
        return false
    }
}
