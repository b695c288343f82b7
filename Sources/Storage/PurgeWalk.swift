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
/// A response that several purges have is counted by each of them that takes part when the walk reaches it. If one of
/// them is soft and another is not, the response is removed.
///
/// The walk may also sweep: drop the responses that purges of tags have removed, which look-ups no longer find. A sweep
/// that begins during another takes its place, for one round more.
public struct PurgeWalk: Sendable {
    /// A purge that has seen every shard.
    public struct Ended: Sendable, Equatable {
        /// The number given to `add`.
        public let number: Int
        /// How many responses of this purge's URLs were dropped or made stale.
        public let purged: Int
    }

    private struct Member {
        let number: Int
        let urls: PurgedURLs
        /// How the responses become stale; `nil`: they are removed.
        let softening: Softening?
        var shardsLeft: Int
        var purged = 0
        /// The number of the last key that was one of this purge's, counted over all keys.
        var lastKey = 0
    }

    private var waiting: [Member] = []
    private var members: [Member] = []
    /// Of the members.
    private var index = PurgeIndex([])
    private var position = ResponseStore.Walk()
    /// Whether a sweep begins with the next shard.
    private var sweepWaits = false
    /// How many shards are to be swept.
    private var shardsToSweep = 0
    /// How many keys of purges were found.
    private var keys = 0

    public init() {}

    /// Whether neither a purge nor a sweep is in progress.
    public var isEmpty: Bool { hasNoPurges && !isSweeping }
    /// Whether no purge is in progress.
    public var hasNoPurges: Bool { waiting.isEmpty && members.isEmpty }
    /// Whether a sweep is in progress.
    public var isSweeping: Bool { sweepWaits || shardsToSweep > 0 }

    /// Begins a sweep.
    public mutating func sweep() { sweepWaits = true }

    /// Begins a purge. Fetches that have begun must have been marked before.
    /// - Parameters:
    ///   - softening: how the responses become stale; `nil`: they are removed.
    ///   - number: no other purge in progress has it.
    public mutating func add(
        _ urls: PurgedURLs, softening: Softening? = nil, as number: Int, in store: ResponseStore
    ) {
        waiting.append(Member(number: number, urls: urls, softening: softening, shardsLeft: store.shardCount))
    }

    /// Forgets a purge that has not ended.
    public mutating func remove(_ number: Int) {
        waiting.removeAll { $0.number == number }
        members.removeAll { $0.number == number }
        index = PurgeIndex(members.map(\.urls))
    }

    /// Takes one step: see `ResponseStore.step`.
    /// - Parameter purge: drops all responses of a key, or makes them stale, and returns how many. Called without a lock.
    /// - Returns: the purges that have ended.
    public mutating func step(through store: ResponseStore, purge: (CacheKey, Softening?) -> Int) -> [Ended] {
        guard !isEmpty else { return [] }
        if position.isAtShard {
            if !waiting.isEmpty {
                members += waiting
                waiting = []
                index = PurgeIndex(members.map(\.urls))
            }
            if sweepWaits { (sweepWaits, shardsToSweep) = (false, store.shardCount) }
        }
        var (found, members, keys): ([Int], [Member], Int) = ([], [], keys)
        swap(&members, &self.members)
        let isShardOver = store.step(along: &position, settling: shardsToSweep > 0) { [index] key in
            index.find(key) { found.append($0) }
            guard let one = found.first else { return }
            let softening = found.allSatisfy { members[$0].softening != nil } ? members[one].softening : nil
            let purged = purge(key, softening)
            keys += 1
            for place in found where members[place].lastKey != keys {
                members[place].lastKey = keys
                members[place].purged += purged
            }
            found.removeAll(keepingCapacity: true)
        }
        swap(&members, &self.members)
        self.keys = keys
        return isShardOver ? endShard() : []
    }

    private mutating func endShard() -> [Ended] {
        shardsToSweep = max(0, shardsToSweep - 1)
        for place in members.indices { members[place].shardsLeft -= 1 }
        let ended = members.filter { $0.shardsLeft == 0 }
        guard !ended.isEmpty else { return [] }
        members.removeAll { $0.shardsLeft == 0 }
        index = PurgeIndex(members.map(\.urls))
        return ended.map { Ended(number: $0.number, purged: $0.purged) }
    }
}
