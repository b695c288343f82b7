/// Looking for the first byte that does not belong, eight at a time. What a field value or a request target may not hold is also what
/// ends it, so one scan finds the end and tells that everything before it is allowed.
extension Span where Element == UInt8 {
    /// The first index at or after `start` of a byte that no field value holds: CTL except HTAB (RFC 9110 §5.5).
    @inlinable
    public func firstIndexOutsideFieldValue(from start: Int) -> Int? {
        firstIndex(from: start) { word in
            word.bytesBelow(0x20) | word.bytes(0x7f)
        } whose: { byte in
            (byte < 0x20 && byte != 0x09) || byte == 0x7f
        }
    }

    /// The first index at or after `start` of a byte that no request target holds: outside printable ASCII, or `#`.
    @inlinable
    public func firstIndexOutsideTarget(from start: Int) -> Int? {
        firstIndex(from: start) { word in
            word.bytesBelow(0x21) | word.bytes(0x7f) | word.bytes(0x23) | word
        } whose: { byte in
            byte < 0x21 || byte > 0x7e || byte == 0x23
        }
    }

    /// The first index at or after `start` of a byte that may not stand between quotes in a line of a log as it is: below `first`, outside
    /// printable ASCII, `"` or `\`.
    @inlinable
    public func firstIndexOutsideQuotes(from start: Int, printableFrom first: UInt8) -> Int? {
        firstIndex(from: start) { word in
            word.bytesBelow(first) | word.bytes(0x7f) | word.bytes(0x22) | word.bytes(0x5c) | word
        } whose: { byte in
            byte < first || byte > 0x7e || byte == 0x22 || byte == 0x5c
        }
    }

    /// - Parameters:
    ///   - suspects: marks, by its top bit, each of eight bytes that may be looked for; it may mark more, but none less.
    ///   - isWanted: decides.
    @inlinable @inline(__always)
    func firstIndex(from start: Int, _ suspects: (UInt64) -> UInt64, whose isWanted: (UInt8) -> Bool) -> Int? {
        let total = count
        precondition(start >= 0)
        return unsafe withUnsafeBufferPointer { buffer in
            guard let base = unsafe UnsafeRawPointer(buffer.baseAddress) else { return nil }
            var index = start
            while index &+ 8 <= total {
                // In bounds by the loop's condition.
                let word = unsafe UInt64(littleEndian: base.loadUnaligned(fromByteOffset: index, as: UInt64.self))
                let marks = suspects(word) & 0x8080_8080_8080_8080
                if marks == 0 { index &+= 8; continue }
                index &+= marks.trailingZeroBitCount >> 3
                if isWanted(unsafe base.load(fromByteOffset: index, as: UInt8.self)) { return index }
                index &+= 1
            }
            while index < total {
                if isWanted(unsafe base.load(fromByteOffset: index, as: UInt8.self)) { return index }
                index &+= 1
            }
            return nil
        }
    }
}

/// A borrow between bytes can mark a byte above one that is rightly marked; the lowest mark is always right, and none is missing.
/// Bits below the top ones mean nothing.
extension UInt64 {
    @inlinable @inline(__always)
    func bytesBelow(_ limit: UInt8) -> UInt64 { (self &- 0x0101_0101_0101_0101 &* UInt64(limit)) & ~self }

    @inlinable @inline(__always)
    func bytes(_ byte: UInt8) -> UInt64 {
        let difference = self ^ 0x0101_0101_0101_0101 &* UInt64(byte)
        return (difference &- 0x0101_0101_0101_0101) & ~difference
    }
}
