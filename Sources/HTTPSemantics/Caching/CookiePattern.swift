public import Bytes

/// Cookies that the operator names: one, or all whose names begin so. Names are compared as they are (RFC 6265 §5.3).
public struct CookiePattern: Sendable, Equatable {
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
    public func matches(_ cookie: Span<UInt8>) -> Bool {
        // Most differ in length already.
        guard isPrefix ? cookie.count >= name.count : cookie.count == name.count else { return false }
        let name = name
        return cookie.extracting(first: name.count).isEqual(to: name.span)
    }

    /// Whether `request` has a cookie of one of `patterns`. Allocates nothing; one bit test where there is no `Cookie`.
    public static func occurs(_ patterns: [CookiePattern], in request: FieldView) -> Bool {
        guard request.contains(.cookie), !patterns.isEmpty else { return false }
        var cookies = CookieIterator(request)
        while cookies.next() {
            for pattern in patterns where pattern.matches(cookies.name) { return true }
        }
        return false
    }
}
