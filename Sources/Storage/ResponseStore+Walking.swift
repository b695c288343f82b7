import Bytes
public import HTTPSemantics

/// A walk of the whole store, for operators, one step at a time.
extension ResponseStore {
    /// The position of a walk, which goes round and round: the first shard comes after the last one.
    public struct Walk: Sendable {
        fileprivate var shard = 0
        /// The position of the walk in that shard: see `ResourceTable.stretch`.
        fileprivate var start: UInt32 = 0

        public init() {}

        /// Whether the next step is the first one of a shard.
        public var isAtShard: Bool { start == 0 }
    }

    /// How many places of a shard's table are read under its lock at a time: this takes less than a tenth of a
    /// millisecond.
    private static let stretch = 512

    /// How many shards a walk of the whole store visits.
    public var shardCount: Int { shards.count }

    /// Visits the keys in the next stretch of the store: one step of a walk. No caller waits while keys are compared: the
    /// shard's lock is held only to take some hundred references. Any thread.
    /// - Parameters:
    ///   - settles: whether the responses that purges of tags have reached are dropped, or made stale, on the way.
    ///   - visit: called for each key that is in the shard during the whole walk of the shard, once, and perhaps for
    ///     others. May change the store.
    /// - Returns: whether the walk of this shard is over.
    public func step(along walk: inout Walk, settling settles: Bool = false, _ visit: (CacheKey) -> Void) -> Bool {
        let start = walk.start
        var found: [CachedResource] = []
        // Memory is allocated before the lock is taken. The references in `found` are released after the lock is
        // opened.
        found.reserveCapacity(Self.stretch)
        let next = shards[walk.shard].shard.withLock {
            $0.table.stretch(from: start, stride: Self.stretch, into: &found)
        }
        walk.start = next ?? 0
        if next == nil { walk.shard = (walk.shard + 1) % shards.count }
        for resource in found {
            let key = CacheKey(hash: resource.hash, bytes: resource.key)
            if settles, !resource.isChecked(by: tags) { settle(resource, under: key) }
            visit(key)
        }
        return next == nil
    }
}
