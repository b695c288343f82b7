public import HTTPSemantics

/// One walk of the store for all purges in progress, however many. It goes round the shards: a purge takes part from the
/// next shard on, until it has seen every shard. So purges that begin together cost one walk, and none costs more than
/// one walk and a shard.
///
/// ```
/// add→ waiting ─a shard begins→ taking part ─has seen every shard→ ended
///         └────────remove───────────┴→ (gone)
/// ```
///
/// A response that several purges have is counted by each of them that takes part when the walk reaches it.
public struct PurgeWalk: Sendable {
    /// A purge that has seen every shard.
    public struct Ended: Sendable, Equatable {
        /// The number given to `add`.
        public let number: Int
        /// How many responses were dropped of this purge's URLs.
        public let dropped: Int
    }

    private struct Member {
        let number: Int
        let urls: PurgedURLs
        var shardsLeft: Int
        var dropped = 0
        /// The number of the last key that was one of this purge's, counted over all keys.
        var lastKey = 0
    }

    private var waiting: [Member] = []
    private var members: [Member] = []
    /// Of the members.
    private var index = PurgeIndex([])
    private var position = ResponseStore.Walk()
    /// How many keys of purges were found.
    private var keys = 0

    public init() {}

    /// Whether no purge is in progress.
    public var isEmpty: Bool { waiting.isEmpty && members.isEmpty }

    /// Begins a purge. Fetches that have begun must have been marked before.
    /// - Parameter number: no other purge in progress has it.
    public mutating func add(_ urls: PurgedURLs, as number: Int, in store: ResponseStore) {
        waiting.append(Member(number: number, urls: urls, shardsLeft: store.shardCount))
    }

    /// Forgets a purge that has not ended.
    public mutating func remove(_ number: Int) {
        waiting.removeAll { $0.number == number }
        members.removeAll { $0.number == number }
        index = PurgeIndex(members.map(\.urls))
    }

    /// Takes one step: see `ResponseStore.step`.
    /// - Parameter drop: drops all responses of a key, and returns how many. Called without a lock.
    /// - Returns: the purges that have ended.
    public mutating func step(through store: ResponseStore, drop: (CacheKey) -> Int) -> [Ended] {
        guard !isEmpty else { return [] }
        if position.isAtShard, !waiting.isEmpty {
            members += waiting
            waiting = []
            index = PurgeIndex(members.map(\.urls))
        }
        var (found, members, keys): ([Int], [Member], Int) = ([], [], keys)
        swap(&members, &self.members)
        let isShardOver = store.step(along: &position) { [index] key in
            index.find(key) { found.append($0) }
            guard !found.isEmpty else { return }
            let dropped = drop(key)
            keys += 1
            for place in found where members[place].lastKey != keys {
                members[place].lastKey = keys
                members[place].dropped += dropped
            }
            found.removeAll(keepingCapacity: true)
        }
        swap(&members, &self.members)
        self.keys = keys
        return isShardOver ? endShard() : []
    }

    private mutating func endShard() -> [Ended] {
        for place in members.indices { members[place].shardsLeft -= 1 }
        let ended = members.filter { $0.shardsLeft == 0 }
        guard !ended.isEmpty else { return [] }
        members.removeAll { $0.shardsLeft == 0 }
        index = PurgeIndex(members.map(\.urls))
        return ended.map { Ended(number: $0.number, dropped: $0.dropped) }
    }
}
