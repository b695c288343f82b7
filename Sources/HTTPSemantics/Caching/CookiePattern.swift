public import Bytes

/// Cookies that the operator names: one, or all whose names begin so; with those that an origin may take for one of them
/// (`LenientName`), or whose names it may read in a way of its own: what it answers to these is not for all.
public struct CookiePattern: Sendable, Hashable {
    /// The name, or what it begins with.
    public let name: ByteSlice
    /// Whether any ending counts.
    public let isPrefix: Bool

    /// The cookie called `name`, or those whose names begin so; with an empty `name` every cookie.
    public init(_ name: ByteSlice, isPrefix: Bool) {
        self.name = name
        self.isPrefix = isPrefix
    }

    /// Whether a cookie called so is meant.
    public func matches(_ cookie: Span<UInt8>) -> Bool { !LenientName.isCertain(cookie) || mayMean(cookie) }

    /// Whether an origin may take a cookie called so, on whose end all agree, for this one.
    fileprivate func mayMean(_ cookie: Span<UInt8>) -> Bool {
        let name = name
        return isPrefix ? LenientName.mayBegin(cookie, with: name.span) : LenientName.mayBeSame(cookie, name.span)
    }
}

/// Cookies that the operator names, as they are asked about: in a time that does not depend on how many are named.
public struct CookiePatterns: Sendable {
    private let patterns: [CookiePattern]
    /// `nil` where there are few, which are walked.
    private let index: NameIndex?

    /// Those that `patterns` mean.
    public init(_ patterns: [CookiePattern]) {
        self.patterns = patterns
        index = NameIndex(patterns.map { ($0.name, $0.isPrefix) }, reading: .leniently)
    }

    /// Whether none is named.
    public var isEmpty: Bool { patterns.isEmpty }

    /// Whether `request` has one of them, or more cookies than are looked at (`KeyPolicy`): of these, origins differ in
    /// which they see. Allocates nothing; one bit test where there is no `Cookie`.
    public func occur(in request: FieldView) -> Bool {
        guard request.contains(.cookie), !patterns.isEmpty else { return false }
        var (cookies, count) = (CookieIterator(request), 0)
        while cookies.next() {
            count += 1
            // The latter asked once, not for each pattern.
            guard count <= KeyPolicy.mostParameters, LenientName.isCertain(cookies.name), !areMeant(cookies.name) else {
                return true
            }
        }
        return false
    }

    private func areMeant(_ cookie: Span<UInt8>) -> Bool {
        if let index { return index.matches(cookie) }
        for pattern in patterns where pattern.mayMean(cookie) { return true }
        return false
    }
}
