/// The memory of a `ByteBuffer`, and the range of it that is in use. The buffer is its only owner, and leaves all work
/// to it.
///
/// The appending methods are inlinable, so that appending a literal compiles to a few stores at the place of the call.
@safe @usableFromInline struct ByteRegion: ~Copyable {
    /// An object's memory, referenced by this region alone. Bare memory would be allocated aligned, which takes several
    /// times as long.
    private var memory: ManagedBuffer<Void, UInt8>
    /// The first of `capacity` bytes of `memory`, which never move.
    @usableFromInline var base: UnsafeMutablePointer<UInt8>
    private var lower = 0
    @usableFromInline var upper = 0
    @usableFromInline private(set) var capacity: Int

    init(capacity: Int) {
        self.capacity = max(capacity, 16)
        memory = .create(minimumCapacity: self.capacity) { _ in }
        unsafe base = memory.withUnsafeMutablePointerToElements { unsafe $0 }
    }

    var count: Int { upper &- lower }
    var isEmpty: Bool { upper == lower }

    /// Everything between `lower` and `upper` was written.
    var used: UnsafeBufferPointer<UInt8> { unsafe UnsafeBufferPointer(start: base + lower, count: upper &- lower) }

    mutating func consume(_ count: Int) {
        precondition(count >= 0 && count <= self.count, "more consumed than there is")
        lower &+= count
        if lower == upper { removeAll() }
    }

    mutating func removeAll() { lower = 0; upper = 0 }

    mutating func truncate(to count: Int) {
        precondition(count >= 0 && count <= self.count, "truncated to more than there is")
        upper = lower &+ count
    }

    mutating func remove(_ range: Range<Int>) {
        precondition(range.lowerBound >= 0 && range.upperBound <= count, "removed what is not there")
        let start = unsafe base + lower
        // The memory that is moved may overlap its new place.
        unsafe (start + range.lowerBound).update(from: start + range.upperBound, count: count - range.upperBound)
        upper &-= range.count
    }

    @inlinable @inline(__always)
    mutating func reserve(_ count: Int) {
        if capacity &- upper < count { makeRoom(count) }
    }

    @inline(never) @usableFromInline
    mutating func makeRoom(_ count: Int) {
        let held = self.count
        if capacity - held >= count {
            unsafe base.update(from: base + lower, count: held)
        } else {
            let larger = max(capacity * 2, held + count)
            let new = ManagedBuffer<Void, UInt8>.create(minimumCapacity: larger) { _ in }
            let start = unsafe new.withUnsafeMutablePointerToElements { unsafe $0 }
            unsafe start.update(from: base + lower, count: held)
            memory = new
            unsafe base = start
            capacity = larger
        }
        lower = 0
        upper = held
    }

    /// The memory after the used bytes, free for writing.
    @inlinable @inline(__always)
    var free: UnsafeMutableRawBufferPointer {
        unsafe UnsafeMutableRawBufferPointer(start: base + upper, count: capacity &- upper)
    }

    /// Counts the first `count` bytes of `free` as used. They must have been written.
    @inlinable @inline(__always)
    mutating func filled(_ count: Int) {
        precondition(count >= 0 && count <= capacity - upper, "more written than fits")
        upper &+= count
    }

    @inlinable @inline(__always)
    mutating func append(_ byte: UInt8) {
        reserve(1)
        unsafe base[upper] = byte
        upper &+= 1
    }

    @inlinable @inline(__always)
    mutating func append(_ bytes: UnsafePointer<UInt8>, count: Int) {
        reserve(count)
        unsafe (base + upper).initialize(from: bytes, count: count)
        upper &+= count
    }

    /// Appends `bytes` with their ASCII letters in lower case.
    mutating func append(lowercasing bytes: UnsafePointer<UInt8>, count: Int) {
        reserve(count)
        for index in 0..<count { unsafe base[upper &+ index] = bytes[index].lowercasedASCII }
        upper &+= count
    }

    /// Appends `number` in decimal digits, with leading zeroes if it has fewer than `width` digits.
    @inline(__always)
    mutating func append(decimal number: UInt64, width: Int) {
        if number < 10, width <= 1 { return append(0x30 &+ UInt8(truncatingIfNeeded: number)) }
        if number < 10_000, width <= 4 { return appendFewDigits(of: UInt32(truncatingIfNeeded: number), width: width) }
        if number < 100_000_000, width <= 8 { return appendDigits(of: number, width: width) }
        appendLong(decimal: number, width: width)
    }

    /// Appends seconds with six decimals after the point.
    mutating func appendSeconds(microseconds: UInt64) {
        let (seconds, rest) = microseconds.quotientAndRemainder(dividingBy: 1_000_000)
        guard seconds < 10 else {
            append(decimal: seconds, width: 1)
            append(UInt8(ascii: "."))
            return appendDigits(of: rest, width: 6)
        }
        // Writes `s0rrrrrr`, then replaces the second digit by the point.
        appendDigits(of: seconds &* 10_000_000 &+ rest, width: 8)
        unsafe base[upper &- 7] = UInt8(ascii: ".")
    }

    private mutating func appendLong(decimal number: UInt64, width: Int) {
        append(decimal: number / 100_000_000, width: width - 8)
        appendDigits(of: number % 100_000_000, width: 8)
    }

    /// Appends up to four digits, with leading zeroes if there are fewer than `width`.
    /// - Parameters:
    ///   - number: below 10,000.
    ///   - width: at most 4.
    @inline(__always)
    private mutating func appendFewDigits(of number: UInt32, width: Int) {
        let hundreds = (number &* 10_486) &>> 20
        let twos = hundreds | (number &- hundreds &* 100) &<< 16
        let tens = (twos &* 103) &>> 10 & 0xf_000f
        let digits = tens | (twos &- tens &* 10) &<< 8
        let skipped = min(digits.trailingZeroBitCount / 8, 4 &- max(1, width))
        reserve(4)
        let text = (digits | 0x3030_3030) &>> UInt32(truncatingIfNeeded: skipped &* 8)
        unsafe UnsafeMutableRawPointer(base + upper).storeBytes(of: text.littleEndian, as: UInt32.self)
        upper &+= 4 &- skipped
    }

    /// Appends up to eight digits at once, without a loop: the number is halved into groups of four digits, then two,
    /// then one. All groups are in one word, the first in its lowest bytes. A multiplication and a shift divide the
    /// small numbers of all groups together.
    /// - Parameters:
    ///   - number: below 100,000,000.
    ///   - width: at most 8.
    @inline(__always)
    private mutating func appendDigits(of number: UInt64, width: Int) {
        let fours = number / 10_000 | (number % 10_000) &<< 32
        let hundreds = (fours &* 10_486) &>> 20 & 0x7f_0000_007f
        let twos = hundreds | (fours &- hundreds &* 100) &<< 16
        let tens = (twos &* 103) &>> 10 & 0xf_000f_000f_000f
        let digits = tens | (twos &- tens &* 10) &<< 8
        let skipped = min(digits.trailingZeroBitCount / 8, 8 &- max(1, width))
        reserve(8)
        let text = (digits | 0x3030_3030_3030_3030) &>> UInt64(truncatingIfNeeded: skipped &* 8)
        unsafe UnsafeMutableRawPointer(base + upper).storeBytes(of: text.littleEndian, as: UInt64.self)
        upper &+= 8 &- skipped
    }
}
