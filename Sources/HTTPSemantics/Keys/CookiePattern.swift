public import Bytes

/// Cookies that the operator names: one name, or all names with one prefix. Includes cookies that an origin may take
/// for one of them (`LenientName`), and cookies with names that origins decode differently: the response to these is
/// not for all clients.
public struct CookiePattern: Sendable, Hashable {
    /// The name, or the prefix of the names.
    public let name: ByteSlice
    /// Whether `name` is a prefix.
    public let isPrefix: Bool

    /// The cookie with this `name`, or all with it as a prefix; an empty prefix matches every cookie.
    public init(_ name: ByteSlice, isPrefix: Bool) {
        self.name = name
        self.isPrefix = isPrefix
    }

    /// Whether the pattern includes a cookie with this name.
    public func matches(_ cookie: Span<UInt8>) -> Bool { !LenientName.isCertain(cookie) || mayMean(cookie) }

    /// Whether an origin may take a cookie with this name for one of the pattern. The name must be certain
    /// (`LenientName.isCertain`).
    fileprivate func mayMean(_ cookie: Span<UInt8>) -> Bool {
        let name = name
        return isPrefix ? LenientName.mayBegin(cookie, with: name.span) : LenientName.mayBeSame(cookie, name.span)
    }
}

/// All cookie patterns of an operator, matched in a time that does not depend on the number of patterns.
public struct CookiePatterns: Sendable {
    private let patterns: [CookiePattern]
    /// `nil` for few patterns, which are walked.
    private let index: NameIndex?

    /// The cookies of any of `patterns`.
    public init(_ patterns: [CookiePattern]) {
        self.patterns = patterns
        index = NameIndex(patterns.map { ($0.name, $0.isPrefix) }, reading: .leniently)
    }

    /// Whether there are no patterns.
    public var isEmpty: Bool { patterns.isEmpty }

    /// Whether `request` has a matching cookie, or more cookies than `KeyPolicy.mostParameters`: origins differ in how
    /// many they read. Does not allocate; one bit test if there is no `Cookie`.
    public func occur(in request: FieldView) -> Bool {
        guard request.contains(.cookie), !patterns.isEmpty else { return false }
        var (cookies, count) = (CookieIterator(request), 0)
        while cookies.next() {
            count += 1
            // `isCertain` is checked once here, not for each pattern.
            guard count <= KeyPolicy.mostParameters, LenientName.isCertain(cookies.name), !matchesPattern(cookies.name)
            else {
                return true
            }
        }
        return false
    }

    private func matchesPattern(_ cookie: Span<UInt8>) -> Bool {
        if let index { return index.matches(cookie) }
        for pattern in patterns where pattern.mayMean(cookie) { return true }
        return false
    }
}
