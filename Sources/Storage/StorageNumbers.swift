/// What the store holds and did, for metrics and status. The shards are read one after another, so that the sums are of
/// slightly different moments.
public struct StorageNumbers: Sendable, Equatable {
    /// Keys about which anything is known.
    public internal(set) var resources = 0
    /// Stored responses, all variants.
    public internal(set) var responses = 0
    /// Keys with markers, whether those still hold or not.
    public internal(set) var markedKeys = 0
    /// Bytes of all of that, bodies included.
    public internal(set) var bytes = 0
    /// Evictions since the start: of responses, and of notes about keys without one.
    public internal(set) var evictedFromSmall = 0
    public internal(set) var evictedFromMain = 0

    mutating func add(_ shard: borrowing Shard) {
        resources += shard.resources
        responses += shard.responses
        markedKeys += shard.marked
        bytes += shard.bytes
        evictedFromSmall += shard.evictions.small
        evictedFromMain += shard.evictions.main
    }
}
