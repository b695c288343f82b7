import Bytes

/// The order of dictionaries, byte by byte.
extension Span where Element == UInt8 {
    /// Below, at or above 0 as these bytes come before, with or after `other`.
    func order(against other: Span<UInt8>) -> Int {
        for index in 0..<Swift.min(count, other.count) where self[index] != other[index] {
            return self[index] < other[index] ? -1 : 1
        }
        return count - other.count
    }
}

extension ByteSlice {
    /// Whether these bytes come before those of `other`.
    func precedes(_ other: ByteSlice) -> Bool { span.order(against: other.span) < 0 }
}
