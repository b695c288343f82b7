/// A growable stretch of bytes with one owner: appended at the end, consumed at the front.
///
/// Nothing of it is inlined into other modules: its fields stay private to this one, so that the compiler can prove that accesses
/// do not overlap and leaves out the checks that would otherwise be made at run time.
///
/// Used for what is being read from a socket and for heads being built. Not `Sendable`: it lives on one loop.
/// Capacity is kept when it is emptied, so that a buffer in use does not allocate.
@safe public final class ByteBuffer {
    private var base: UnsafeMutablePointer<UInt8>
    private var lower = 0
    private var upper = 0
    public private(set) var capacity: Int

    public init(capacity: Int) {
        self.capacity = max(capacity, 16)
        unsafe base = .allocate(capacity: self.capacity)
    }

    deinit { unsafe base.deallocate() }

    public var count: Int { upper &- lower }
    public var isEmpty: Bool { upper == lower }

    /// The unconsumed bytes, until the next change of the buffer.
    public var span: Span<UInt8> {
        @_lifetime(borrow self)
        get {
            // Everything between `lower` and `upper` was written; the buffer owns the memory.
            let span = unsafe Span(_unsafeStart: UnsafePointer(base + lower), count: upper &- lower)
            return unsafe _overrideLifetime(span, borrowing: self)
        }
    }

    /// Gives up the first `count` bytes.
    public func consume(_ count: Int) {
        precondition(count >= 0 && count <= self.count, "more consumed than there is")
        lower &+= count
        if lower == upper { lower = 0; upper = 0 }
    }

    public func removeAll() { lower = 0; upper = 0 }

    /// Drops everything behind the first `count` bytes.
    public func truncate(to count: Int) {
        precondition(count >= 0 && count <= self.count, "truncated to more than there is")
        upper = lower &+ count
    }

    /// Makes room for `count` more bytes.
    public func reserve(_ count: Int) {
        if capacity &- upper < count { makeRoom(count) }
    }

    private func makeRoom(_ count: Int) {
        let held = self.count
        if capacity - held >= count {
            unsafe base.update(from: base + lower, count: held)
        } else {
            let larger = max(capacity * 2, held + count)
            let new = UnsafeMutablePointer<UInt8>.allocate(capacity: larger)
            unsafe new.update(from: base + lower, count: held)
            unsafe base.deallocate()
            unsafe base = new
            capacity = larger
        }
        lower = 0
        upper = held
    }

    /// Lets `fill` write into at least `minimum` free bytes; it returns how many it wrote.
    @unsafe
    public func withFreeSpace<E: Error>(
        minimum: Int, _ fill: (UnsafeMutableRawBufferPointer) throws(E) -> Int
    ) throws(E) -> Int {
        reserve(minimum)
        let free = unsafe UnsafeMutableRawBufferPointer(start: base + upper, count: capacity &- upper)
        let written = try unsafe fill(free)
        precondition(written >= 0 && written <= free.count, "more written than fits")
        upper &+= written
        return written
    }

    public func append(_ byte: UInt8) {
        reserve(1)
        unsafe base[upper] = byte
        upper &+= 1
    }

    public func append(_ source: Span<UInt8>) {
        reserve(source.count)
        unsafe source.withUnsafeBufferPointer { bytes in
            guard let from = bytes.baseAddress else { return }
            unsafe (base + upper).update(from: from, count: bytes.count)
        }
        upper &+= source.count
    }

    public func append(_ text: StaticString) {
        let length = text.utf8CodeUnitCount
        reserve(length)
        unsafe (base + upper).update(from: text.utf8Start, count: length)
        upper &+= length
    }

    public func append(_ slice: ByteSlice) { append(slice.span) }

    /// The UTF-8 bytes of `text`. Not for the hot path.
    public func append(string text: String) { append(Array(text.utf8).span) }

    /// Appends `number` in decimal digits.
    public func append(decimal number: UInt64) {
        reserve(20)
        var digits = 1
        var rest = number
        while rest >= 10 { rest /= 10; digits &+= 1 }
        var position = upper &+ digits
        rest = number
        repeat {
            position &-= 1
            let (quotient, remainder) = rest.quotientAndRemainder(dividingBy: 10)
            unsafe base[position] = 0x30 &+ UInt8(truncatingIfNeeded: remainder)
            rest = quotient
        } while rest > 0
        upper &+= digits
    }

    public func append(decimal number: Int) {
        if number < 0 { append(0x2d) }
        append(decimal: UInt64(number.magnitude))
    }

    /// Appends `number` in lower-case hexadecimal digits, without leading zeroes.
    public func append(hexadecimal number: UInt64) {
        var shift = max(0, (63 - number.leadingZeroBitCount) / 4 * 4)
        while shift >= 0 {
            let digit = UInt8(truncatingIfNeeded: number >> UInt64(shift)) & 15
            append(digit < 10 ? 0x30 &+ digit : 0x57 &+ digit)
            shift -= 4
        }
    }

    /// An immutable copy of the unconsumed bytes.
    public func copied() -> ByteSlice { ByteSlice(copying: span) }
}
