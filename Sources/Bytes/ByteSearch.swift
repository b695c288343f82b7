/// Searching and comparing bytes. The scans read eight bytes at a time.
extension Span where Element == UInt8 {
    /// The first index of `byte` at or after `start`, or `nil`.
    @inlinable
    public func firstIndex(of byte: UInt8, from start: Int = 0) -> Int? {
        let total = count
        precondition(start >= 0)
        guard start < total else { return nil }
        return unsafe withUnsafeBufferPointer { buffer in
            guard let base = unsafe UnsafeRawPointer(buffer.baseAddress) else { return nil }
            var index = start
            let ones: UInt64 = 0x0101_0101_0101_0101
            let pattern = ones &* UInt64(byte)
            while index &+ 8 <= total {
                // In bounds by the loop's condition.
                let word = unsafe UInt64(littleEndian: base.loadUnaligned(fromByteOffset: index, as: UInt64.self)) ^ pattern
                // A byte of `word` is zero where `byte` stood; the lowest marked byte is exact.
                let zeroes = (word &- ones) & ~word & (ones << 7)
                if zeroes != 0 { return index &+ zeroes.trailingZeroBitCount >> 3 }
                index &+= 8
            }
            while index < total {
                if unsafe base.load(fromByteOffset: index, as: UInt8.self) == byte { return index }
                index &+= 1
            }
            return nil
        }
    }

    /// Whether both hold the same bytes.
    @inlinable
    public func isEqual(to other: Span<UInt8>) -> Bool {
        let total = count
        guard total == other.count else { return false }
        return unsafe withUnsafeBufferPointer { left in
            unsafe other.withUnsafeBufferPointer { right in
                guard let a = unsafe UnsafeRawPointer(left.baseAddress),
                      let b = unsafe UnsafeRawPointer(right.baseAddress) else { return true }
                var index = 0
                while index &+ 8 <= total {
                    if unsafe a.loadUnaligned(fromByteOffset: index, as: UInt64.self)
                        != b.loadUnaligned(fromByteOffset: index, as: UInt64.self) { return false }
                    index &+= 8
                }
                while index < total {
                    if unsafe a.load(fromByteOffset: index, as: UInt8.self)
                        != b.load(fromByteOffset: index, as: UInt8.self) { return false }
                    index &+= 1
                }
                return true
            }
        }
    }

    /// Whether the bytes are those of `text`.
    @inlinable
    public func isEqual(to text: StaticString) -> Bool {
        // A static string's bytes live as long as the program.
        let other = unsafe Span(_unsafeStart: text.utf8Start, count: text.utf8CodeUnitCount)
        return isEqual(to: other)
    }

    /// Whether the bytes are those of `lowercase`, ASCII letters of either case being the same here.
    /// `lowercase` must hold no capital letters.
    @inlinable
    public func isEqualIgnoringCase(to lowercase: StaticString) -> Bool {
        let total = count
        guard total == lowercase.utf8CodeUnitCount else { return false }
        // A static string's bytes live as long as the program.
        let other = unsafe Span(_unsafeStart: lowercase.utf8Start, count: total)
        return isEqualIgnoringCase(to: other)
    }

    /// Whether both hold the same bytes, ASCII letters of either case being the same.
    @inlinable
    public func isEqualIgnoringCase(to other: Span<UInt8>) -> Bool {
        guard count == other.count else { return false }
        for index in 0..<count where self[index].lowercasedASCII != other[index].lowercasedASCII { return false }
        return true
    }

    /// The bytes without spaces and tabs at both ends (RFC 9110 §5.6.3, OWS).
    @inlinable
    @_lifetime(copy self)
    public func trimmingOptionalWhitespace() -> Span<UInt8> {
        var lower = 0
        var upper = count
        while lower < upper, self[lower] == 0x20 || self[lower] == 0x09 { lower &+= 1 }
        while upper > lower, self[upper &- 1] == 0x20 || self[upper &- 1] == 0x09 { upper &-= 1 }
        return extracting(lower..<upper)
    }
}

extension UInt8 {
    /// The byte, an ASCII capital letter made small.
    @inlinable
    public var lowercasedASCII: UInt8 { self &- 0x41 < 26 ? self | 0x20 : self }
}
