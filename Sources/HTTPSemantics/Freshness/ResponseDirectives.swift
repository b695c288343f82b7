import Bytes

/// A response's cache directives, from `Cache-Control` or from the targeted field that replaces it.
///
/// If directives are repeated or contradictory, the more restrictive one applies; of repeated `max-age` or `s-maxage`,
/// the first one. An invalid lifetime makes the response stale. `immutable` (RFC 8246) and `no-transform` need no
/// action: this cache complies anyway. Sources: RFC 9111 §4.2.1, §5.2.2; RFC 5861.
package struct ResponseDirectives: Sendable, Equatable {
    /// Directives without a number (RFC 9111 §5.2.2).
    package struct Flags: OptionSet, Sendable, Hashable {
        package let rawValue: UInt16
        package init(rawValue: UInt16) { self.rawValue = rawValue }

        package static let `public` = Self(rawValue: 1 << 0)
        /// Without field names: the whole response is for one user.
        package static let `private` = Self(rawValue: 1 << 1)
        /// With field names: only those fields are for one user.
        package static let privateFields = Self(rawValue: 1 << 2)
        package static let noStore = Self(rawValue: 1 << 3)
        package static let noCache = Self(rawValue: 1 << 4)
        package static let noCacheFields = Self(rawValue: 1 << 5)
        package static let mustRevalidate = Self(rawValue: 1 << 6)
        package static let proxyRevalidate = Self(rawValue: 1 << 7)
        package static let mustUnderstand = Self(rawValue: 1 << 8)
        /// `must-revalidate` in its defined form, without an argument: only then does it permit sharing as well (§3.5).
        package static let plainMustRevalidate = Self(rawValue: 1 << 9)
    }

    /// The directives without a number that are present.
    package var flags: Flags = []
    /// Seconds; 0 if the argument is invalid.
    package var maxAge: UInt32?
    /// Seconds; 0 if the argument is invalid.
    package var sharedMaxAge: UInt32?
    /// Seconds past the lifetime; `nil` if absent, since 0 overrides the operator's default.
    package var staleWhileRevalidate: UInt32?
    /// Seconds past the lifetime; `nil` if absent, since 0 overrides the operator's default.
    package var staleIfError: UInt32?
    /// Whether the response permits any use once it is stale (RFC 5861).
    var allowsStale: Bool { (staleWhileRevalidate ?? 0) > 0 || (staleIfError ?? 0) > 0 }

    /// Whether the response to a request with `Authorization` may be shared (§3.5).
    /// - Parameter keepingLifetime: whether the response is stale when it says so. If the operator prolongs its lifetime,
    ///   directives that permit sharing because they require a validation soon permit nothing.
    /// - Parameter permits: as in `permitSharing`.
    func allowAuthorized(keepingLifetime: Bool, permits: Bool) -> Bool {
        guard permits else { return false }
        if contains(.public) { return true }
        if let sharedMaxAge, !sharedMaxAgeIsBroken, sharedMaxAge > 0 || keepingLifetime { return true }
        // Frameworks add `max-age=0, private, must-revalidate` to pages without directives: it does not permit sharing.
        return contains(.plainMustRevalidate) && keepingLifetime && !contains(.private) && !contains(.noStore)
    }

    /// Whether `public` and the like permit sharing for a lifetime that the operator gives. Where they come with a
    /// required validation, as in `public, no-cache` and `public, max-age=0`, they permit only the use that is validated.
    /// - Parameters:
    ///   - stated: the response's own lifetime; `nil` if it states none.
    ///   - keepsNoCache: whether `no-cache` holds for the lifetime that the operator gives.
    func permitSharing(stating stated: Int64?, keepsNoCache: Bool) -> Bool {
        (keepsNoCache || !contains(.noCache)) && stated.map { $0 > 0 } ?? true
    }

    /// The first of a repeated `max-age` applies, but an invalid one makes all of them 0 (§4.2.1).
    private var maxAgeIsBroken = false
    private(set) var sharedMaxAgeIsBroken = false
    /// The bound on all field names in `private` and `no-cache`.
    private var nameBound = FieldNameBound()

    package init() {}

    /// Whether all of `flag` are present.
    package func contains(_ flag: Flags) -> Bool { flags.contains(flag) }

    /// Reads every `Cache-Control` line of a response.
    package init(cacheControlOf fields: FieldView) {
        var directives = DirectiveIterator(fields, .cacheControl)
        while let directive = directives.next() {
            let argument: Argument = directive.form == .bare ? .none : .text(isSound: directive.form != .malformed)
            read(name: directive.name, argument: argument, text: directive.argument)
        }
    }

    enum Argument: Equatable {
        case none
        case text(isSound: Bool)
    }

    /// Adds one directive.
    mutating func read(name: Span<UInt8>, argument: Argument, text: Span<UInt8>) {
        switch name.count {
        case 6:
            // An argument is not allowed, and a directive that permits more is only accepted in its defined form.
            if name.isEqualIgnoringCase(to: "public"), argument == .none { flags.insert(.public) }
        case 7:
            if name.isEqualIgnoringCase(to: "max-age") {
                take(seconds(argument, text), into: &maxAge, isBroken: &maxAgeIsBroken)
            } else if name.isEqualIgnoringCase(to: "private") {
                flags.insert(namesFields(argument, text) ? .privateFields : .private)
            }
        case 8:
            if name.isEqualIgnoringCase(to: "s-maxage") {
                take(seconds(argument, text), into: &sharedMaxAge, isBroken: &sharedMaxAgeIsBroken)
            } else if name.isEqualIgnoringCase(to: "no-store") {
                flags.insert(.noStore)
            } else if name.isEqualIgnoringCase(to: "no-cache") {
                flags.insert(namesFields(argument, text) ? .noCacheFields : .noCache)
            }
        case 14:
            if name.isEqualIgnoringCase(to: "stale-if-error") {
                let limit = seconds(argument, text) ?? 0
                staleIfError = staleIfError.map { min($0, limit) } ?? limit
            }
        case 15:
            if name.isEqualIgnoringCase(to: "must-revalidate") {
                flags.formUnion(argument == .none ? [.mustRevalidate, .plainMustRevalidate] : .mustRevalidate)
            }
            if name.isEqualIgnoringCase(to: "must-understand"), argument == .none { flags.insert(.mustUnderstand) }
        case 16:
            if name.isEqualIgnoringCase(to: "proxy-revalidate") { flags.insert(.proxyRevalidate) }
        case 22:
            if name.isEqualIgnoringCase(to: "stale-while-revalidate") {
                let limit = seconds(argument, text) ?? 0
                staleWhileRevalidate = staleWhileRevalidate.map { min($0, limit) } ?? limit
            }
        default:
            return
        }
    }

    private func seconds(_ argument: Argument, _ text: Span<UInt8>) -> UInt32? {
        argument == .text(isSound: true) ? DeltaSeconds.parse(text) : nil
    }

    private func take(_ seconds: UInt32?, into value: inout UInt32?, isBroken: inout Bool) {
        isBroken = isBroken || seconds == nil
        value = isBroken ? 0 : value ?? seconds
    }

    /// Whether the argument is a list of field names, and within the bound together with earlier lists. Any other
    /// argument counts as none, which forbids more.
    private mutating func namesFields(_ argument: Argument, _ text: Span<UInt8>) -> Bool {
        guard nameBound.takes(text), argument == .text(isSound: true) else { return false }
        var names = MemberIterator(text)
        var found = false
        while let name = names.next() {
            guard name.isTokenOnly else { return false }
            found = true
        }
        return found
    }
}
