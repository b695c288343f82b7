import Bytes

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
