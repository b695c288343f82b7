import Bytes
public import HTTPSemantics

/// Looking at all that is stored: for operators, a step at a time.
extension ResponseStore {
    /// Where a walk of the whole store is.
    public struct Walk: Sendable {
        fileprivate var shard = 0
        /// Where the walk is in that shard: see `ResourceTable.stretch`.
        fileprivate var start: UInt32 = 0

        public init() {}
    }

    /// How many places of a shard's table are looked at under its lock at a time, for less than a tenth of a
    /// millisecond.
    private static let stretch = 512

    /// Forgets what the next stretch of the store knows of some keys: a step of a walk of the whole store, for operators.
    /// Nothing waits while keys are compared: the lock of a shard is held to take some hundred references, and anew for
    /// each key that goes. Fetches that have begun are stored all the same, unless `remove` named their keys before. Any
    /// thread.
    /// - Parameter isMeant: called for each key that is there all through the walk, and perhaps for others.
    /// - Returns: the number of responses dropped; `nil` when the walk is over.
    public func remove(along walk: inout Walk, where isMeant: (CacheKey) -> Bool) -> Int? {
        guard walk.shard < shards.count else { return nil }
        let start = walk.start
        var found: [CachedResource] = []
        // Before the lock; what is found is released after it.
        found.reserveCapacity(Self.stretch)
        let next = shards[walk.shard].shard.withLock {
            $0.table.stretch(from: start, stride: Self.stretch, into: &found)
        }
        walk.start = next ?? 0
        if next == nil { walk.shard += 1 }
        var removed = 0
        for resource in found {
            let key = CacheKey(hash: resource.hash, bytes: resource.key)
            if isMeant(key) { removed += change(key) { $0.dropAll(of: key, keepsNotes: false) } }
        }
        return removed
    }

    /// Forgets all that the next shard has: a step of a walk that forgets everything. From the first step on no fetch
    /// that has begun is stored; nor, after each further one, what began during the walk and may be made of what was
    /// still there. Any thread.
    /// - Returns: the number of responses dropped; `nil` when the walk is over.
    public func removeAll(along walk: inout Walk) -> Int? {
        guard walk.shard < shards.count else { return nil }
        defer { walk.shard += 1 }
        return removeAll(inShard: walk.shard)
    }
}
