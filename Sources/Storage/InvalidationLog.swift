/// The keys that were invalidated last, in the order in which that happened. Protected by its shard's mutex.
///
/// Whoever begins a fetch remembers the `position`; whoever stores its response looks at what was written since. That is exact until the ring has
/// gone round meanwhile; then every key counts as invalidated, which costs one more fetch. Takes no memory before the first invalidation.
struct InvalidationLog {
    /// Invalidations that are remembered. A power of two.
    static let capacity = 128

    /// Hashes of keys, each at its position modulo `capacity`.
    private var hashes: [UInt64] = []
    /// How many were written.
    private(set) var position: UInt64 = 0

    mutating func append(_ hash: UInt64) {
        if hashes.isEmpty { hashes = Array(repeating: 0, count: Self.capacity) }
        hashes[Self.place(position)] = hash
        position += 1
    }

    /// Of every key.
    mutating func appendAll() { position += UInt64(Self.capacity) + 1 }

    /// Whether the key with `hash` was invalidated since the log stood at `former`.
    func contains(_ hash: UInt64, since former: UInt64) -> Bool {
        guard position &- former <= UInt64(Self.capacity) else { return true }
        return (former..<position).contains { hashes[Self.place($0)] == hash }
    }

    private static func place(_ position: UInt64) -> Int { Int(truncatingIfNeeded: position) & (capacity - 1) }
}
