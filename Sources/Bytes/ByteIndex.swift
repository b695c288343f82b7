/// The hash of bytes that are added one after another (FNV-1a). Before the last byte, `value` is the hash of the beginning
/// added so far. For tables whose contents come from the operator: a client that asks cannot make them slower.
public struct RunningHash: Sendable {
    /// The hash of the bytes so far.
    @inlinable public var value: UInt64 { state }
    @usableFromInline var state: UInt64

    /// - Parameter seed: hashes with different seeds differ.
    @inlinable
    public init(seed: Int = 0) {
        state = 0xcbf2_9ce4_8422_2325 ^ UInt64(truncatingIfNeeded: seed) &* 0x9e37_79b9_7f4a_7c15
    }

    /// Adds one byte.
    @inlinable @inline(__always)
    public mutating func add(_ byte: UInt8) { state = (state ^ UInt64(byte)) &* 0x100_0000_01b3 }

    /// The hash of `bytes`, from the first to the last.
    @inlinable
    public static func of(_ bytes: [UInt8], seed: Int = 0) -> UInt64 {
        var hash = RunningHash(seed: seed)
        for byte in bytes { hash.add(byte) }
        return hash.value
    }
}

/// Byte strings, found by their hash in a time that does not depend on their number. Made once, with the settings, and
/// never changed; a look-up allocates nothing. The caller compares: two strings may have the same bytes, or mean the same.
///
/// The strings stand one behind another in one array, so that a look-up retains no object that other threads use.
public struct ByteIndex: Sendable, Equatable {
    /// The number of an entry plus 1; 0 in a free slot. There are at least twice as many slots as entries, and their number
    /// is a power of two. An entry whose slot is taken stands in the next free one.
    @usableFromInline let slots: [UInt32]
    @usableFromInline let hashes: [UInt64]
    @usableFromInline let bytes: [UInt8]
    /// Where each entry begins in `bytes`, and behind the last where it ends.
    @usableFromInline let bounds: [Int]
    @usableFromInline let shift: UInt64

    /// - Parameter entries: in the order of their numbers, from 0. Several may have the same bytes.
    public init(_ entries: [(hash: UInt64, bytes: [UInt8])]) {
        let bits = max(3, Int.bitWidth - (2 * entries.count).leadingZeroBitCount)
        shift = UInt64(UInt64.bitWidth - bits)
        hashes = entries.map(\.hash)
        bytes = entries.flatMap(\.bytes)
        var bounds = [0]
        for entry in entries { bounds.append(bounds[bounds.count - 1] + entry.bytes.count) }
        self.bounds = bounds
        var slots = [UInt32](repeating: 0, count: 1 << bits)
        for (number, entry) in entries.enumerated() {
            var slot = Self.slot(of: entry.hash, shift)
            while slots[slot] != 0 { slot = (slot + 1) & (slots.count - 1) }
            slots[slot] = UInt32(number + 1)
        }
        self.slots = slots
    }

    /// Whether it has no entry.
    @inlinable public var isEmpty: Bool { hashes.isEmpty }

    @inlinable @inline(__always)
    static func slot(of hash: UInt64, _ shift: UInt64) -> Int {
        Int(truncatingIfNeeded: (hash &* 0x9e37_79b9_7f4a_7c15) >> shift)
    }

    /// Where a look has come to.
    public struct Look {
        @usableFromInline let hash: UInt64
        @usableFromInline var slot: Int

        @inlinable
        init(hash: UInt64, slot: Int) { (self.hash, self.slot) = (hash, slot) }
    }

    /// Begins to look for the entries with `hash`.
    @inlinable
    public func look(for hash: UInt64) -> Look { Look(hash: hash, slot: Self.slot(of: hash, shift)) }

    /// The number of the next entry with the hash, in the order of their numbers; `nil` behind the last. Whether it is
    /// the one that is looked for, the caller compares.
    @inlinable
    public func next(_ look: inout Look) -> Int? {
        while true {
            let taken = slots[look.slot]
            if taken == 0 { return nil }
            look.slot = (look.slot &+ 1) & (slots.count &- 1)
            let number = Int(taken) &- 1
            if hashes[number] == look.hash { return number }
        }
    }

    /// How many bytes the entry has.
    @inlinable
    public func count(of number: Int) -> Int { bounds[number &+ 1] &- bounds[number] }

    /// The entry's byte at `index`.
    @inlinable
    public func byte(_ index: Int, of number: Int) -> UInt8 { bytes[bounds[number] &+ index] }

    /// Whether the entry is `other`.
    @inlinable
    public func isEqual(_ number: Int, to other: Span<UInt8>) -> Bool {
        bytes.span.extracting(bounds[number]..<bounds[number &+ 1]).isEqual(to: other)
    }

    /// Whether the entry is `other`, ASCII letters of either case being the same.
    @inlinable
    public func isEqualIgnoringCase(_ number: Int, to other: Span<UInt8>) -> Bool {
        bytes.span.extracting(bounds[number]..<bounds[number &+ 1]).isEqualIgnoringCase(to: other)
    }

    /// The most places that any look passes: for tests.
    public var longestLook: Int {
        var (longest, run) = (0, 0)
        // Twice around: a run may go past the end.
        for slot in 0..<2 * slots.count {
            run = slots[slot & (slots.count - 1)] == 0 ? 0 : run + 1
            longest = max(longest, run)
        }
        return longest + 1
    }
}
