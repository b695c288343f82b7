/// A growable stretch of bytes with one owner: appended at the end, consumed at the front.
///
/// Used for bytes read from a socket and for heads being built. Not `Sendable`: a buffer lives on one loop. An emptied
/// buffer keeps its capacity, so that a buffer in use does not allocate.
@safe public final class ByteBuffer {
    /// Exempt from the run-time exclusivity check, which cost a hit a quarter of its instructions. The conflicts that
    /// it looks for cannot occur: no method of the region calls out, and only `withFreeSpace` lends memory, between two
    /// accesses.
    @exclusivity(unchecked) @usableFromInline var region: ByteRegion

    /// - Parameter capacity: the bytes that the buffer holds before it grows.
    public init(capacity: Int) { unsafe region = ByteRegion(capacity: capacity) }

    /// Bytes of memory held.
    public var capacity: Int { unsafe region.capacity }
    /// Bytes that are not consumed yet.
    public var count: Int { unsafe region.count }
    public var isEmpty: Bool { unsafe region.isEmpty }

    /// The unconsumed bytes, until the next change of the buffer.
    public var span: Span<UInt8> {
        @_lifetime(borrow self)
        get {
            // The buffer owns the memory.
            let span = unsafe Span(_unsafeElements: region.used)
            return unsafe _overrideLifetime(span, borrowing: self)
        }
    }

    /// Removes the first `count` bytes.
    public func consume(_ count: Int) { unsafe region.consume(count) }

    /// Removes all bytes and keeps the memory.
    public func removeAll() { unsafe region.removeAll() }

    /// Drops everything after the first `count` bytes.
    public func truncate(to count: Int) { unsafe region.truncate(to: count) }

    /// Removes the bytes in `range`, counted from the first unconsumed one; those behind it move up.
    public func remove(_ range: Range<Int>) { unsafe region.remove(range) }

    /// Makes room for `count` more bytes.
    public func reserve(_ count: Int) { unsafe region.reserve(count) }

    /// Calls `fill` with at least `minimum` free bytes. `fill` returns how many bytes it wrote, and must not touch the
    /// buffer.
    @unsafe @inlinable @inline(__always)
    public func withFreeSpace<E: Error>(
        minimum: Int, _ fill: (UnsafeMutableRawBufferPointer) throws(E) -> Int
    ) throws(E) -> Int {
        // Inlined, since otherwise each read would pass the type of the error at run time.
        unsafe region.reserve(minimum)
        let written = try unsafe fill(region.free)
        unsafe region.filled(written)
        return written
    }

    /// Appends one byte. Like every append, this may move the bytes to larger memory: spans lent before are then
    /// invalid.
    @inlinable
    public func append(_ byte: UInt8) { unsafe region.append(byte) }

    /// Appends a copy of the bytes.
    public func append(_ source: Span<UInt8>) {
        unsafe source.withUnsafeBufferPointer { bytes in
            guard let from = bytes.baseAddress else { return }
            unsafe region.append(from, count: bytes.count)
        }
    }

    /// Appends `source` with its ASCII letters in lower case.
    public func append(lowercasing source: Span<UInt8>) {
        unsafe source.withUnsafeBufferPointer { bytes in
            guard let from = bytes.baseAddress else { return }
            unsafe region.append(lowercasing: from, count: bytes.count)
        }
    }

    /// Appends the UTF-8 bytes of a literal, without making a `String`.
    @inlinable @inline(__always)
    public func append(_ text: StaticString) { unsafe region.append(text.utf8Start, count: text.utf8CodeUnitCount) }

    /// Appends a copy of the slice's bytes.
    public func append(_ slice: ByteSlice) { append(slice.span) }

    /// Appends the UTF-8 bytes of `text`. Not for the hot path.
    public func append(string text: String) {
        let bytes = text.utf8
        append(bytes.span)
    }

    /// Appends `number` in decimal digits, at least `width` of them.
    public func append(decimal number: UInt64, width: Int = 1) { unsafe region.append(decimal: number, width: width) }

    /// Appends microseconds as seconds with six decimals: `0.000250`.
    public func appendSeconds(microseconds: UInt64) { unsafe region.appendSeconds(microseconds: microseconds) }

    /// Appends `number` in decimal digits, with a `-` where it is negative.
    public func append(decimal number: Int) {
        if number < 0 { append(0x2d) }
        append(decimal: UInt64(number.magnitude))
    }

    /// Appends `number` in lower-case hexadecimal digits, at least `width` of them.
    public func append(hexadecimal number: UInt64, width: Int = 1) {
        var shift = max((width - 1) * 4, (63 - number.leadingZeroBitCount) / 4 * 4)
        while shift >= 0 {
            let digit = UInt8(truncatingIfNeeded: number >> UInt64(shift)) & 15
            append(digit < 10 ? 0x30 &+ digit : 0x57 &+ digit)
            shift -= 4
        }
    }

    /// An immutable copy of the unconsumed bytes.
    public func copied() -> ByteSlice { ByteSlice(copying: span) }
}
