import Bytes
public import HTTPSemantics

/// Walks of the whole store, for operators, one step at a time.
extension ResponseStore {
    /// The position of a walk of the whole store.
    public struct Walk: Sendable {
        fileprivate var shard = 0
        /// The position of the walk in that shard: see `ResourceTable.stretch`.
        fileprivate var start: UInt32 = 0

        public init() {}
    }

    /// How many places of a shard's table are read under its lock at a time: this takes less than a tenth of a
    /// millisecond.
    private static let stretch = 512

    /// Forgets the keys for which `isMeant` holds in the next stretch of the store: one step of a walk of the whole
    /// store. No caller waits while keys are compared: a shard's lock is held to take some hundred references, and
    /// again for each key that is removed. Fetches that have begun must have been marked before. Any thread.
    /// - Parameter isMeant: called for each key that is in the store during the whole walk, and perhaps for others.
    /// - Returns: the number of responses dropped; `nil` when the walk is over.
    public func remove(along walk: inout Walk, where isMeant: (CacheKey) -> Bool) -> Int? {
        guard walk.shard < shards.count else { return nil }
        let start = walk.start
        var found: [CachedResource] = []
        // Memory is allocated before the lock is taken. The references in `found` are released after the lock is
        // opened.
        found.reserveCapacity(Self.stretch)
        let next = shards[walk.shard].shard.withLock {
            $0.table.stretch(from: start, stride: Self.stretch, into: &found)
        }
        walk.start = next ?? 0
        if next == nil { walk.shard += 1 }
        var removed = 0
        for resource in found {
            let key = CacheKey(hash: resource.hash, bytes: resource.key)
            if isMeant(key) { removed += remove(key) }
        }
        return removed
    }

    /// Forgets all keys of the next shard: one step of a walk that forgets everything. Fetches must be
    /// marked before each step, also fetches begun during the walk: their responses may be made from responses that the
    /// walk had not reached. Any thread.
    /// - Returns: the number of responses dropped; `nil` when the walk is over.
    public func removeAll(along walk: inout Walk) -> Int? {
        guard walk.shard < shards.count else { return nil }
        defer { walk.shard += 1 }
        return removeAll(inShard: walk.shard)
    }
}
