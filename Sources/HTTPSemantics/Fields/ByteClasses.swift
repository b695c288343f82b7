import Bytes

/// The character classes of the grammar (RFC 5234 §B.1, RFC 9110 §5.5, RFC 3986 §2). Two words of bits cover ASCII.
extension UInt8 {
    /// Whether a field value must not contain this byte: CTL except HTAB (RFC 9110 §5.5).
    @inlinable @inline(__always)
    var isForbiddenInValue: Bool { (self < 0x20 && self != 0x09) || self == 0x7f }

    /// Nonzero exactly if `isForbiddenInValue`; branch-free, for loops over long values.
    @inlinable @inline(__always)
    var forbiddenInValueMask: UInt8 {
        // The result is in the top bit: `self - 0x20` borrows, and so does 0 - 1.
        let below = (self &- 0x20) & ~self
        let tab = self ^ 0x09
        let delete = self ^ 0x7f
        let isTab = (tab &- 1) & ~tab
        let isDelete = (delete &- 1) & ~delete
        return ((below & ~isTab) | isDelete) & 0x80
    }

    /// The value of a `HEXDIG`.
    @inlinable
    var hexadecimalValue: UInt8? {
        let digit = self &- 0x30
        if digit < 10 { return digit }
        let letter = (self | 0x20) &- 0x61
        return letter < 6 ? letter &+ 10 : nil
    }

    /// SP or HTAB (RFC 9110 §5.6.3).
    @inlinable @inline(__always)
    var isOptionalWhitespace: Bool { self == 0x20 || self == 0x09 }
}

extension Span where Element == UInt8 {
    /// Whether the bytes are a `token`; false if there are none.
    var isTokenOnly: Bool { !isEmpty && firstIndexOutsideToken(from: 0) == nil }
}

/// Lexicographic order, byte by byte.
extension Span where Element == UInt8 {
    /// Below, at or above 0 as these bytes sort before, equal to or after `other`.
    func order(against other: Span<UInt8>) -> Int {
        for index in 0..<Swift.min(count, other.count) where self[index] != other[index] {
            return self[index] < other[index] ? -1 : 1
        }
        return count - other.count
    }
}

extension ByteSlice {
    /// Whether these bytes sort before the bytes of `other`.
    func precedes(_ other: ByteSlice) -> Bool { span.order(against: other.span) < 0 }
}
