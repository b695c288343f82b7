import Bytes

/// An entity tag, read in place (RFC 9110 §8.8.3): its opaque part with the quotes, and whether it is weak.
public struct EntityTag: ~Escapable {
    /// The tag with its quotes.
    public let opaque: Span<UInt8>
    public let isWeak: Bool

    /// `nil` if `text` is no entity tag.
    @_lifetime(copy text)
    public init?(_ text: Span<UInt8>) {
        let isWeak = text.count > 2 && text[0] == UInt8(ascii: "W") && text[1] == UInt8(ascii: "/")
        let opaque = isWeak ? text.extracting(2...) : text
        guard opaque.count >= 2, opaque[0] == UInt8(ascii: "\""), opaque[opaque.count - 1] == UInt8(ascii: "\"") else {
            return nil
        }
        // etagc = %x21 / %x23-7E / obs-text
        for index in 1..<opaque.count - 1 {
            let byte = opaque[index]
            guard byte > 0x20, byte != UInt8(ascii: "\""), byte != 0x7f else { return nil }
        }
        self.opaque = opaque
        self.isWeak = isWeak
    }

    /// RFC 9110 §8.8.3.2: weak comparison, for `If-None-Match`.
    public func isWeaklyEqual(to other: borrowing EntityTag) -> Bool { opaque.isEqual(to: other.opaque) }

    /// Whether `text` is a weakly equal tag; a text of another length is not parsed.
    func isWeaklyEqual(toTagIn text: Span<UInt8>) -> Bool {
        guard text.count == opaque.count || text.count == opaque.count + 2, let tag = EntityTag(text) else {
            return false
        }
        return isWeaklyEqual(to: tag)
    }

    /// RFC 9110 §8.8.3.2: strong comparison, for `If-Match`, `If-Range` and combining parts.
    public func isStronglyEqual(to other: borrowing EntityTag) -> Bool {
        !isWeak && !other.isWeak && opaque.isEqual(to: other.opaque)
    }
}

extension FieldView {
    /// The message's `ETag`: its first line, if that holds a valid tag.
    public var entityTag: EntityTag? {
        @_lifetime(copy self)
        get {
            guard let value = firstValue(of: .etag) else { return nil }
            return EntityTag(value)
        }
    }
}
