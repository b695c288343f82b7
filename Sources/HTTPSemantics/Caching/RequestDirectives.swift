import Bytes

/// Which wishes of a client a route does not honour, since with them anybody could send every request to the origin.
///
/// RFC 9111 §5.2.1: request directives are advisory.
public struct RequestDirectivePolicy: OptionSet, Sendable, Hashable {
    public let rawValue: UInt8
    public init(rawValue: UInt8) { self.rawValue = rawValue }

    public static let ignoresNoCache = Self(rawValue: 1)
    public static let ignoresMaxAge = Self(rawValue: 2)
    public static let ignoresMinFresh = Self(rawValue: 4)

    /// What RFC 9111 §5.2.1 asks for.
    public static let honoursAll: Self = []
    /// Nothing a client says reaches past a fresh stored response. `no-store` is a promise to the client, so it stays.
    public static let protectsOrigin: Self = [.ignoresNoCache, .ignoresMaxAge, .ignoresMinFresh]
}

/// What a request's `Cache-Control` (or, without one, `Pragma`) asks for. Sources: RFC 9111 §5.2.1, §5.4; RFC 5861 §4.
///
/// Limits hold the value that limits nothing when the directive is absent, so a hit only compares numbers.
public struct RequestDirectives: Sendable, Equatable {
    /// What is said without a number, or that one is said at all.
    public struct Flags: OptionSet, Sendable, Hashable {
        public let rawValue: UInt8
        @inlinable public init(rawValue: UInt8) { self.rawValue = rawValue }

        @inlinable public static var noCache: Self { Self(rawValue: 1) }
        @inlinable public static var noStore: Self { Self(rawValue: 2) }
        @inlinable public static var onlyIfCached: Self { Self(rawValue: 4) }
        /// `max-stale` is there, with or without a value.
        @inlinable public static var acceptsStale: Self { Self(rawValue: 16) }
        /// `max-age` or `min-fresh` is there.
        @inlinable public static var limitsAge: Self { Self(rawValue: 32) }
    }

    /// Empty for almost every request.
    public var flags: Flags = []
    /// Seconds; the oldest response wanted. `UInt32.max` when the client does not say.
    public var maxAge: UInt32 = .max
    /// Seconds for which the response must stay fresh; 0 when the client does not say.
    public var minFresh: UInt32 = 0
    /// Seconds past its lifetime that a response may be; `DeltaSeconds.infinite` for `max-stale` without a value.
    public var maxStale: UInt32 = 0
    /// Seconds past its lifetime that a response may be when the origin fails; 0 when the client does not say.
    public var staleIfError: UInt32 = 0

    /// What a request without the fields asks for: nothing.
    public static let none = RequestDirectives()

    public init() {}

    /// Reads the fields of a request. Costs one bit test when it has none of them.
    @inlinable
    public init(_ fields: FieldView, ignoring policy: RequestDirectivePolicy = .honoursAll) {
        self.init()
        guard fields.contains(.cacheControl) || fields.contains(.pragma) else { return }
        read(fields, policy)
    }

    /// See `Flags`, and RFC 9111 §5.2.1 for what each of them asks for.
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

    /// Directives that occur twice are taken at their more restrictive value; one whose argument makes no sense is
    /// taken as not said, since all of them are wishes.
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

    /// RFC 9111 §5.4: only `no-cache` means something, and only where there is no `Cache-Control`.
    private static func pragmaSaysNoCache(_ fields: FieldView) -> Bool {
        var directives = DirectiveIterator(fields, .pragma)
        while let directive = directives.next() {
            if directive.name.isEqualIgnoringCase(to: "no-cache"), directive.form == .bare { return true }
        }
        return false
    }
}
