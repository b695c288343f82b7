/// The S3-FIFO ghost queue: fingerprints of the keys lately evicted from probation. The oldest is forgotten first.
///
/// A set-associative table of 8-byte entries. Each entry holds a 32-bit fingerprint and the number of its insertion. An
/// entry is valid while fewer than `capacity` insertions came after it, so forgetting costs nothing. Two keys with the
/// same fingerprint are mistaken for each other once in four billion comparisons. The only cost of such a mistake is a
/// place in the wrong queue.
struct GhostQueue {
    private static let ways = 4
    private static let smallestCapacity = 64

    /// Upper half: fingerprint. Lower half: number of the insertion.
    private var entries: [UInt64] = []
    private var inserted: UInt32 = 0
    /// The number of insertions that are remembered.
    private(set) var capacity = GhostQueue.smallestCapacity

    /// Bytes of the table: at most 64 for each of `capacity`.
    var memory: Int { entries.count * 8 }

    /// Remembers `hash`. From now on the queue remembers `capacity` insertions, within bounds.
    mutating func insert(_ hash: UInt64, capacity wanted: Int) {
        capacity = max(Self.smallestCapacity, min(wanted, Int(UInt32.max / 4)))
        if entries.count < capacity * 2 || entries.count > capacity * 8 { resize() }
        inserted &+= 1
        place(fingerprint: UInt32(truncatingIfNeeded: hash), number: inserted)
    }

    /// Whether `hash` was remembered. Forgets it.
    mutating func take(_ hash: UInt64) -> Bool {
        guard !entries.isEmpty else { return false }
        let fingerprint = UInt32(truncatingIfNeeded: hash)
        for index in bucket(fingerprint) where entries[index] >> 32 == UInt64(fingerprint) && isLive(entries[index]) {
            entries[index] = 0
            return true
        }
        return false
    }

    mutating func removeAll() {
        entries = []
        inserted = 0
        capacity = Self.smallestCapacity
    }

    private func isLive(_ entry: UInt64) -> Bool {
        entry != 0 && inserted &- UInt32(truncatingIfNeeded: entry) < UInt32(capacity)
    }

    private func bucket(_ fingerprint: UInt32) -> Range<Int> {
        let first = Int(fingerprint) & (entries.count - 1) & ~(Self.ways - 1)
        return first..<first + Self.ways
    }

    /// Writes an entry into a free place of the bucket, or over the bucket's oldest entry.
    private mutating func place(fingerprint: UInt32, number: UInt32) {
        var oldest = bucket(fingerprint).lowerBound
        var greatestAge: UInt32 = 0
        for index in bucket(fingerprint) {
            guard isLive(entries[index]) else { oldest = index; break }
            let age = inserted &- UInt32(truncatingIfNeeded: entries[index])
            if age >= greatestAge { (oldest, greatestAge) = (index, age) }
        }
        entries[oldest] = UInt64(fingerprint) << 32 | UInt64(number)
    }

    private mutating func resize() {
        let live = entries.filter(isLive)
        var size = Self.ways
        while size < capacity * 2 { size *= 2 }
        entries = Array(repeating: 0, count: size)
        for entry in live { place(fingerprint: UInt32(entry >> 32), number: UInt32(truncatingIfNeeded: entry)) }
    }
}
