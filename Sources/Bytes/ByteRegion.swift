/// The memory of a `ByteBuffer` and what of it is in use. Uniquely owned; all of its work is done here.
///
/// What appends is inlinable, so that appending a literal is a few stores where it is written.
@safe @usableFromInline struct ByteRegion: ~Copyable {
    /// Memory of an object, which the region alone refers to: bare memory is allocated aligned, which takes several times as long.
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

    /// What may be written behind what is used.
    var free: UnsafeMutableRawBufferPointer {
        unsafe UnsafeMutableRawBufferPointer(start: base + upper, count: capacity &- upper)
    }

    /// `count` bytes of `free` were written.
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

    /// `bytes` with ASCII capital letters made small.
    mutating func append(lowercasing bytes: UnsafePointer<UInt8>, count: Int) {
        reserve(count)
        for index in 0..<count { unsafe base[upper &+ index] = bytes[index].lowercasedASCII }
        upper &+= count
    }

    /// With zeroes in front where it has less than `width` digits.
    @inline(__always)
    mutating func append(decimal number: UInt64, width: Int) {
        if number < 10, width <= 1 { return append(0x30 &+ UInt8(truncatingIfNeeded: number)) }
        var digits = 2
        var bound: UInt64 = 100
        // The longest number has 20 digits, and the bound above it would overflow.
        while digits < 20, number >= bound { digits &+= 1; bound &*= 10 }
        digits = max(digits, width)
        reserve(digits)
        var position = upper &+ digits
        var rest = number
        // From the end, by two: a division costs more than looking up its remainder.
        while position &- upper >= 2 {
            position &-= 2
            let quotient = rest / 100
            let pair = Int(truncatingIfNeeded: rest &- quotient &* 100) &* 2
            unsafe base[position] = Self.pairs.utf8Start[pair]
            unsafe base[position &+ 1] = Self.pairs.utf8Start[pair &+ 1]
            rest = quotient
        }
        if position > upper { unsafe base[upper] = 0x30 &+ UInt8(truncatingIfNeeded: rest % 10) }
        upper &+= digits
    }

    /// All numbers of two digits.
    private static var pairs: StaticString {
        """
        0001020304050607080910111213141516171819\
        2021222324252627282930313233343536373839\
        4041424344454647484950515253545556575859\
        6061626364656667686970717273747576777879\
        8081828384858687888990919293949596979899
        """
    }
}
