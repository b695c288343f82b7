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
                let word =
                    unsafe UInt64(littleEndian: base.loadUnaligned(fromByteOffset: index, as: UInt64.self)) ^ pattern
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
                    let b = unsafe UnsafeRawPointer(right.baseAddress)
                else { return true }
                return unsafe a.isEqual(to: b, count: total)
            }
        }
    }

    /// Whether the bytes of `text` stand at `index`. The text is a constant in the code, so that the comparison costs a
    /// word or two.
    @inlinable @inline(__always)
    public func holds(_ text: StaticString, at index: Int) -> Bool {
        let total = text.utf8CodeUnitCount
        guard index >= 0, count &- index >= total else { return false }
        return unsafe withUnsafeBufferPointer { own in
            guard let base = unsafe UnsafeRawPointer(own.baseAddress) else { return true }
            // In bounds by the guard; a static string's bytes live as long as the program.
            return unsafe (base + index).isEqual(to: UnsafeRawPointer(text.utf8Start), count: total)
        }
    }

    /// Whether the bytes begin with `text`.
    @inlinable
    public func hasPrefix(_ text: StaticString) -> Bool { holds(text, at: 0) }

    /// Whether the bytes begin with `lowercase`, compared as in `isEqualIgnoringCase`.
    @inlinable
    public func hasPrefixIgnoringCase(_ lowercase: StaticString) -> Bool {
        extracting(first: lowercase.utf8CodeUnitCount).isEqualIgnoringCase(to: lowercase)
    }

    /// Whether the bytes are the UTF-8 bytes of `text`.
    @inlinable
    public func isEqual(to text: StaticString) -> Bool { isEqual(to: text.bytes) }

    /// Whether the bytes are the UTF-8 bytes of `lowercase`, ignoring the case of ASCII letters. `lowercase` must
    /// contain no capital letters.
    @inlinable
    public func isEqualIgnoringCase(to lowercase: StaticString) -> Bool {
        let total = count
        guard total == lowercase.utf8CodeUnitCount else { return false }
        // A static string's bytes live as long as the program.
        let other = unsafe UnsafeRawPointer(lowercase.utf8Start)
        return unsafe withUnsafeBufferPointer { own in
            guard let base = unsafe UnsafeRawPointer(own.baseAddress) else { return true }
            return unsafe base.isEqualIgnoringCase(to: other, count: total)
        }
    }

    /// Whether the bytes are `name`, ignoring the case of ASCII letters. Compares without one bit, which `name` has set
    /// in each byte: in ASCII, only a capital letter or a control character turns into a byte of such a name with it.
    /// So the answer is right for bytes without control characters, as those of a head are.
    /// - Parameter name: lower-case letters, digits and hyphens.
    public func isFieldName(_ name: StaticString) -> Bool {
        let total = count
        guard total == name.utf8CodeUnitCount else { return false }
        // A static string's bytes live as long as the program.
        let other = unsafe UnsafeRawPointer(name.utf8Start)
        return unsafe withUnsafeBufferPointer { own in
            guard let base = unsafe UnsafeRawPointer(own.baseAddress) else { return true }
            return unsafe base.isEqual(to: other, count: total, setting: .repeating(0x20))
        }
    }

    /// Whether both hold the same bytes, ignoring the case of ASCII letters.
    @inlinable
    public func isEqualIgnoringCase(to other: Span<UInt8>) -> Bool {
        let total = count
        guard total == other.count else { return false }
        return unsafe withUnsafeBufferPointer { left in
            unsafe other.withUnsafeBufferPointer { right in
                guard let a = unsafe UnsafeRawPointer(left.baseAddress),
                    let b = unsafe UnsafeRawPointer(right.baseAddress)
                else { return true }
                return unsafe a.isEqualIgnoringCase(to: b, count: total)
            }
        }
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

extension UnsafeRawPointer {
    /// Whether the `count` bytes here and at `other` are the same, ignoring the case of ASCII letters.
    @usableFromInline
    func isEqualIgnoringCase(to other: UnsafeRawPointer, count: Int) -> Bool {
        guard count >= 8 else {
            guard count >= 4 else {
                for index in 0..<count {
                    // In bounds by the loop's range.
                    let (one, two) = unsafe (
                        load(fromByteOffset: index, as: UInt8.self), other.load(fromByteOffset: index, as: UInt8.self)
                    )
                    if one.lowercasedASCII != two.lowercasedASCII { return false }
                }
                return true
            }
            return unsafe ends(of: count).lowercasedASCIIBytes == other.ends(of: count).lowercasedASCIIBytes
        }
        var index = 0
        while true {
            // At most `count - 8`, so in bounds.
            let one = unsafe loadUnaligned(fromByteOffset: index, as: UInt64.self)
            let two = unsafe other.loadUnaligned(fromByteOffset: index, as: UInt64.self)
            if one.lowercasedASCIIBytes != two.lowercasedASCIIBytes { return false }
            if index == count &- 8 { return true }
            // The last word may overlap the one before.
            index = min(index &+ 8, count &- 8)
        }
    }

    /// Whether the `count` bytes here and at `other` are the same. Both places must have `count` bytes.
    /// - Parameter bits: bits that are set in the bytes here before they are compared, the same ones in each byte.
    @inlinable @inline(__always)
    func isEqual(to other: UnsafeRawPointer, count: Int, setting bits: UInt64 = 0) -> Bool {
        guard count >= 8 else {
            guard count >= 4 else {
                for index in 0..<count {
                    // In bounds by the loop's range.
                    if unsafe load(fromByteOffset: index, as: UInt8.self) | UInt8(truncatingIfNeeded: bits)
                        != other.load(fromByteOffset: index, as: UInt8.self)
                    {
                        return false
                    }
                }
                return true
            }
            return unsafe ends(of: count) | bits == other.ends(of: count)
        }
        var index = 0
        while true {
            // At most `count - 8`, so in bounds.
            if unsafe loadUnaligned(fromByteOffset: index, as: UInt64.self) | bits
                != other.loadUnaligned(fromByteOffset: index, as: UInt64.self)
            {
                return false
            }
            if index == count &- 8 { return true }
            // The last word may overlap the one before.
            index = Swift.min(index &+ 8, count &- 8)
        }
    }

    /// The first four and the last four of `count` bytes, which may overlap: of four to eight bytes, all are in the one
    /// word.
    @inlinable @inline(__always)
    func ends(of count: Int) -> UInt64 {
        // In bounds where `count` is at least 4.
        let first = unsafe loadUnaligned(as: UInt32.self)
        let last = unsafe loadUnaligned(fromByteOffset: count &- 4, as: UInt32.self)
        return UInt64(first) | UInt64(last) << 32
    }
}

extension UInt64 {
    /// The eight bytes, with ASCII capital letters in lower case.
    @inlinable
    var lowercasedASCIIBytes: UInt64 {
        let ones: UInt64 = 0x0101_0101_0101_0101
        // No byte of these sums carries into the next; their top bits say 'at least A' and 'above Z'.
        let low = self & (ones &* 0x7f)
        let fromA = low &+ (ones &* (0x80 - 0x41))
        let aboveZ = low &+ (ones &* (0x7f - 0x5a))
        let capitals = (fromA ^ aboveZ) & ~self & (ones &* 0x80)
        return self | capitals >> 2
    }
}

extension UInt8 {
    /// The byte, in lower case if it is an ASCII capital letter.
    @inlinable
    public var lowercasedASCII: UInt8 { self &- 0x41 < 26 ? self | 0x20 : self }
}

extension StaticString {
    /// The UTF-8 bytes of the string, which live as long as the program.
    @inlinable
    public var bytes: Span<UInt8> {
        @_lifetime(immortal)
        get {
            let bytes = unsafe Span(_unsafeStart: utf8Start, count: utf8CodeUnitCount)
            return unsafe _overrideLifetime(bytes, copying: ())
        }
    }
}
