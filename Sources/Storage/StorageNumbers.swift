/// The store's counts, for metrics and status. The shards are read one after another, so the sums combine slightly
/// different moments.
public struct StorageNumbers: Sendable, Equatable {
    /// Keys with a response or a note.
    public internal(set) var resources = 0
    /// Stored responses, each variant counted.
    public internal(set) var responses = 0
    /// Keys with markers, expired markers included.
    public internal(set) var markedKeys = 0
    /// Bytes of all the above, bodies included.
    public internal(set) var bytes = 0
    /// Evictions since the start, of responses and of notes about keys without a response, from each queue.
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
