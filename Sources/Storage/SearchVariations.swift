public import Bytes
public import HTTPSemantics
import Synchronization

/// The differences between the queries for one path that do not matter, as a stored response said. Immutable.
public final class SearchVariation: Sendable {
    /// A part of the keys made with the variation. No number is given twice, so that responses stored under a forgotten
    /// variation are never found again: they could not have been invalidated in the meantime.
    public let number: UInt64
    public let rule: NoVarySearch

    init(number: UInt64, rule: NoVarySearch) {
        self.number = number
        self.rule = rule
    }
}

/// The variations learnt from responses, by path (No-Vary-Search draft, 'Caching': `mostRecentNVS`).
///
/// A path is identified by the primary keys of its requests, up to the query: scheme, authority and path. Any thread
/// may call any method. One mutex per shard is held for one probe; if the table is full, learning one more variation
/// holds it for a search through the shard. While no path is known, a look-up costs one relaxed load.
///
/// A path keeps its last few variations. Requests are looked up under the latest. The others are kept so that two kinds
/// of responses that alternate do not lose each other's keys, and so that an invalidation reaches both kinds.
public final class SearchVariations: Sendable {
    /// Bytes of all entries together. The entry that was not looked up for the longest time is forgotten first, which
    /// costs only misses. There is room for some ten thousand paths: sites that use the field have it on a few kinds of
    /// pages.
    public static let capacity = 4 << 20
    /// The most bytes of one path, or of one variation. A larger one is not learnt: such a field is of no use, and each
    /// look-up would pay for it.
    public static let largest = 4096
    /// The most variations of one path. A server that is being updated alternates between two.
    public static let mostOfPath = 4

    private static let shardCount = 16
    /// Bytes of an entry, beside its path and its variations.
    private static let entrySize = 160
    /// How many groups of a shard's paths have an invalidation number of their own.
    private static let stripes = 64

    private struct Entry {
        let path: ByteSlice
        /// The path's variations, the latest first.
        var variations: [SearchVariation]
        /// When the entry was last looked up, counted in changes of the shard.
        var used: UInt64

        var size: Int { variations.reduce(SearchVariations.entrySize + path.count) { $0 + $1.rule.size } }
    }

    private struct Shard {
        /// The entries, by the hash of the path. Of two paths with the same hash, the later one stays.
        var entries: [UInt64: Entry] = [:]
        var size = 0
        var changes: UInt64 = 0
        /// The number of the last invalidation of one of the paths in each stripe; 0 if there was none.
        var invalidated = [UInt64](repeating: 0, count: SearchVariations.stripes)
    }

    private let shards = FixedArray(count: SearchVariations.shardCount) { _ in Guarded(Shard()) }
    private let hash: KeyedHash
    private let paths = Atomic<Int>(0)
    private let numbers = Atomic<UInt64>(0)
    private let invalidationCount = Atomic<UInt64>(0)

    /// - Parameter hash: uses the process's secret key, so that clients cannot choose colliding paths.
    public init(hash: KeyedHash) { self.hash = hash }

    /// Whether no path is known.
    public var isEmpty: Bool { paths.load(ordering: .relaxed) == 0 }

    /// The variation under which a request with the primary key `key` is looked up. Allocates nothing.
    public func latest(for key: Span<UInt8>) -> SearchVariation? {
        guard !isEmpty else { return nil }
        let path = key.extracting(SearchKey(key).path)
        let hash = hash.hash(path)
        return shards[shardIndex(of: hash)].withLock { shard in
            guard let index = shard.entries.index(forKey: hash) else { return nil }
            let known = shard.entries.values[index].path
            guard known.span.isEqual(to: path) else { return nil }
            shard.entries.values[index].used = shard.changes
            return shard.entries.values[index].variations.first
        }
    }

    /// All known variations of a path: the responses to one URL may be stored under each of them.
    public func all(for key: Span<UInt8>) -> [SearchVariation] {
        guard !isEmpty else { return [] }
        let path = key.extracting(SearchKey(key).path)
        let hash = hash.hash(path)
        return shards[shardIndex(of: hash)].withLock { shard in
            guard let entry = shard.entries[hash], entry.path.span.isEqual(to: path) else { return [] }
            return entry.variations
        }
    }

    /// The path's variation with `rule`, if there is one.
    public func known(_ rule: NoVarySearch, for key: Span<UInt8>) -> SearchVariation? {
        all(for: key).first { $0.rule == rule }
    }

    /// Learns `rule`, which is not the default, from a response that will be stored. From now on, it is the latest rule
    /// of its path.
    /// - Returns: `nil` if the path or the rule is too large to be learnt.
    public func learn(_ rule: NoVarySearch, for key: Span<UInt8>) -> SearchVariation? {
        let path = key.extracting(SearchKey(key).path)
        guard path.count <= Self.largest, rule.size <= Self.largest else { return nil }
        let hash = hash.hash(path)
        let fresh = SearchVariation(number: numbers.wrappingAdd(1, ordering: .relaxed).newValue, rule: rule)
        // Forgotten entries are freed after the lock is opened.
        var forgotten: [Entry] = []
        let (variation, change) = shards[shardIndex(of: hash)].withLock { shard in
            let before = shard.entries.count
            shard.changes += 1
            var entry = Entry(path: ByteSlice(copying: path), variations: [], used: shard.changes)
            if let known = shard.entries.removeValue(forKey: hash) {
                shard.size -= known.size
                if known.path.span.isEqual(to: path) {
                    entry.variations = known.variations
                } else {
                    forgotten.append(known)
                }
            }
            let variation = entry.variations.first { $0.rule == rule } ?? fresh
            entry.variations.removeAll { $0 === variation }
            entry.variations.insert(variation, at: 0)
            if entry.variations.count > Self.mostOfPath { entry.variations.removeLast() }
            while shard.size + entry.size > Self.capacity / Self.shardCount,
                let oldest = shard.entries.min(by: { $0.value.used < $1.value.used })
            {
                shard.entries[oldest.key] = nil
                shard.size -= oldest.value.size
                forgotten.append(oldest.value)
            }
            shard.size += entry.size
            shard.entries[hash] = entry
            return (variation, shard.entries.count - before)
        }
        paths.add(change, ordering: .relaxed)
        return variation
    }

    // MARK: - Invalidations

    // A response may belong under a key that its fetch does not know before the head. Until then, an invalidation of
    // that key cannot find the fetch, so paths remember when they were last invalidated. Paths share numbers: one may
    // be mistaken for another, and then a response is not stored that might have been.

    /// The number of invalidations so far. A fetch takes it before it sends its request.
    public var invalidations: UInt64 { invalidationCount.load(ordering: .acquiring) }

    /// Notes that the responses to a URL are about to be dropped.
    /// - Returns: all known variations of its path: the responses may be stored under each of them. One step with
    ///   `learn`: if a variation is learnt later, `wasInvalidated` then returns true for the path.
    public func invalidate(_ key: Span<UInt8>) -> [SearchVariation] {
        let path = key.extracting(SearchKey(key).path)
        let hash = hash.hash(path)
        return shards[shardIndex(of: hash)].withLock { shard in
            shard.invalidated[Self.stripe(of: hash)] = nextInvalidation()
            guard let entry = shard.entries[hash], entry.path.span.isEqual(to: path) else { return [] }
            return entry.variations
        }
    }

    /// Notes that responses to any URL are about to be dropped.
    public func invalidateAll() {
        let number = nextInvalidation()
        for index in 0..<shards.count {
            shards[index].withLock { shard in
                for stripe in 0..<Self.stripes { shard.invalidated[stripe] = max(number, shard.invalidated[stripe]) }
            }
        }
    }

    /// Whether responses to a URL of this path were invalidated since there had been `number` invalidations. Sometimes
    /// true if only URLs of another path were.
    public func wasInvalidated(_ key: Span<UInt8>, since number: UInt64) -> Bool {
        guard invalidations != number else { return false }
        let hash = hash.hash(key.extracting(SearchKey(key).path))
        return shards[shardIndex(of: hash)].withLock { $0.invalidated[Self.stripe(of: hash)] > number }
    }

    private func nextInvalidation() -> UInt64 {
        invalidationCount.wrappingAdd(1, ordering: .acquiringAndReleasing).newValue
    }

    private static func stripe(of hash: UInt64) -> Int { Int(truncatingIfNeeded: hash >> 32) & (stripes - 1) }
    private func shardIndex(of hash: UInt64) -> Int { Int(truncatingIfNeeded: hash) & (Self.shardCount - 1) }
}
