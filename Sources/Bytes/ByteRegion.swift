/// The memory of a `ByteBuffer` and what of it is in use. Uniquely owned; all of its work is done here.
@safe struct ByteRegion: ~Copyable {
    private var base: UnsafeMutablePointer<UInt8>
    private var lower = 0
    private var upper = 0
    private(set) var capacity: Int

    init(capacity: Int) {
        self.capacity = max(capacity, 16)
        unsafe base = .allocate(capacity: self.capacity)
    }

    deinit { unsafe base.deallocate() }

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

    mutating func reserve(_ count: Int) {
        if capacity &- upper < count { makeRoom(count) }
    }

    @inline(never)
    private mutating func makeRoom(_ count: Int) {
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

    /// What may be written behind what is used.
    var free: UnsafeMutableRawBufferPointer {
        unsafe UnsafeMutableRawBufferPointer(start: base + upper, count: capacity &- upper)
    }

    /// `count` bytes of `free` were written.
    mutating func filled(_ count: Int) {
        precondition(count >= 0 && count <= capacity - upper, "more written than fits")
        upper &+= count
    }

    @inline(__always)
    mutating func append(_ byte: UInt8) {
        reserve(1)
        unsafe base[upper] = byte
        upper &+= 1
    }

    @inline(__always)
    mutating func append(_ bytes: UnsafePointer<UInt8>, count: Int) {
        reserve(count)
        unsafe (base + upper).update(from: bytes, count: count)
        upper &+= count
    }

    /// `bytes` with ASCII capital letters made small.
    mutating func append(lowercasing bytes: UnsafePointer<UInt8>, count: Int) {
        reserve(count)
        for index in 0..<count { unsafe base[upper &+ index] = bytes[index].lowercasedASCII }
        upper &+= count
    }

    /// With zeroes in front where it has less than `width` digits.
    mutating func append(decimal number: UInt64, width: Int) {
        var digits = 1
        var bound: UInt64 = 10
        // The longest number has 20 digits, and the bound above it would overflow.
        while digits < 20, number >= bound { digits &+= 1; bound &*= 10 }
        digits = max(digits, width)
        reserve(digits)
        var position = upper &+ digits
        var rest = number
        while position > upper {
            position &-= 1
            let (quotient, remainder) = rest.quotientAndRemainder(dividingBy: 10)
            unsafe base[position] = 0x30 &+ UInt8(truncatingIfNeeded: remainder)
            rest = quotient
        }
        upper &+= digits
    }
}
