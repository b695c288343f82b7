/// The state of a key's invalidations at some moment: see `InvalidationLog`.
public struct InvalidationMark: Sendable {
    fileprivate let position: UInt64
    fileprivate let count: UInt32

    /// The mark before the first invalidation.
    static let none = InvalidationMark(position: 0, count: 0)
}

/// The keys that were invalidated, as far as fetches in flight need them. Protected by its shard's mutex.
///
/// A fetch takes a `mark` when it begins. When its response is to be stored, the log tells whether the key was
/// invalidated since the mark. The log remembers the last `capacity` invalidated keys one by one, so its answer is
/// exact until more invalidations than that came in between, as during a long download from a busy site. Beyond that,
/// the log has only counts, each for a 256th of the shard's keys (a stripe). A key may then be mistaken for another key
/// of its stripe, which costs one more fetch. The log takes no memory before the first invalidation.
struct InvalidationLog {
    /// The number of invalidations that are remembered one by one. A power of two.
    static let capacity = 128
    private static let stripes = 256

    /// Hashes of the invalidated keys, each at its position modulo `capacity`.
    private var hashes: [UInt64] = []
    /// The number of invalidations in each stripe.
    private var counts: [UInt32] = []
    /// The position of the next hash.
    private var position: UInt64 = 0

    func mark(_ hash: UInt64) -> InvalidationMark { InvalidationMark(position: position, count: count(hash)) }

    mutating func append(_ hash: UInt64) {
        allocate()
        hashes[Self.place(position)] = hash
        counts[Self.stripe(hash)] &+= 1
        position += 1
    }

    /// Appends an invalidation of every key.
    mutating func appendAll() {
        allocate()
        for stripe in counts.indices { counts[stripe] &+= 1 }
        position += UInt64(Self.capacity) + 1
    }

    /// Whether the key with `hash` was invalidated since its `mark` was taken.
    func contains(_ hash: UInt64, since mark: InvalidationMark) -> Bool {
        guard count(hash) != mark.count else { return false }
        guard position &- mark.position <= UInt64(Self.capacity) else { return true }
        return (mark.position..<position).contains { hashes[Self.place($0)] == hash }
    }

    private mutating func allocate() {
        guard hashes.isEmpty else { return }
        hashes = Array(repeating: 0, count: Self.capacity)
        counts = Array(repeating: 0, count: Self.stripes)
    }

    private func count(_ hash: UInt64) -> UInt32 { counts.isEmpty ? 0 : counts[Self.stripe(hash)] }
    private static func place(_ position: UInt64) -> Int { Int(truncatingIfNeeded: position) & (capacity - 1) }
    private static func stripe(_ hash: UInt64) -> Int { Int(truncatingIfNeeded: hash >> 32) & (stripes - 1) }
}
