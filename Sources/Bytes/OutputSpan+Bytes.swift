/// Copies bytes into memory that is lent for writing.
extension OutputSpan where Element == UInt8 {
    /// Appends `source`, for which there must be room, as one copy.
    @inlinable @inline(__always)
    public mutating func append(copying source: Span<UInt8>) {
        guard source.count > 0 else { return }
        precondition(source.count <= freeCapacity, "more copied than fits")
        unsafe withUnsafeMutableBufferPointer { memory, written in
            unsafe source.withUnsafeBufferPointer { bytes in
                guard let target = memory.baseAddress, let from = bytes.baseAddress else { return }
                // The precondition made sure of the room.
                unsafe (target + written).initialize(from: from, count: bytes.count)
                written &+= bytes.count
            }
        }
    }
}
