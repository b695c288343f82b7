public import Bytes
public import HTTPSemantics
import Synchronization

/// The tags by which operators purge, and the cache groups by which an origin invalidates (RFC 9875). Any thread.
///
/// There is no index from a tag to its responses. A response has references to its tags, and the number of purges when
/// it was requested; a tag has the number of its last purge. So a purge costs the same for ten responses as for a
/// million; a hit compares one number with that of the last purge of any tag, and only after a purge the tags too.
///
/// ```
/// purge                                   fetch                           look-up
/// 1 number each tag (n)                   a read the number of purges (r)  A take the response out of its shard
/// 2 publish n as the number of purges     b ask the origin                B read the number of purges (g)
/// 3 close the fetches that have a tag     c the head: find its tags       C checked at g? yes: it is valid
///   from before n                         d give the response out         D no: is a tag's number > r? yes: drop it,
/// 4 answer; drop what is stored later     e close, if a tag's number > r    or make it stale; no: checked at g
///                                         f store, unless a tag's number > r
/// ```
///
/// - *A response from before the purge is not valid after it.* If a comes before 2, r < n, and D finds it, whenever f
///   was. 'Checked at g' is true for ever, on each thread: D reads g before it looks into the tags, and the purge with
///   the number g released g after it had noted its tags, as all before it had, one after another. So D has seen every
///   purge up to g. A purge that notes its tags meanwhile has a higher number: it is published later, and then B reads
///   another g. If 2 came before 1, D could find g published and the tag not yet noted, and C would call the response
///   valid for good.
/// - *A response from after the purge is valid.* If a comes after 2, r ≥ n.
/// - *A request that comes after 4 joins no fetch from before 2.* If d comes before 3, 3 closes it. Otherwise e finds 1. A
///   request that joined between 2 and d has counted n purges when it came, and does not take the response
///   (`FetchedResponse.mayServe`).
/// - *What a fetch adds to a stored response*, or confirms of it, is not stored if that one was purged meanwhile
///   (`ResponseStore.freshen`, `storeParts`); and at the head, the fetch does not use it.
///
/// *Names.* The operator's names are one namespace for all origins. A cache group has two tags: its name, and its name
/// at its origin, by which the origin's own responses invalidate it.
///
/// *Memory.* A tag that no response has is dropped when its shard is full, and after each sweep. One that was purged is
/// kept, since a fetch from before may still bring it; if a shard has more than `mostRemembered` of these, they are
/// dropped, and each tag that is new to the shard counts as purged then.
public final class TagTable: Sendable {
    private static let shardCount = 64
    /// How many purged tags that no response has each shard keeps.
    static let mostRemembered = 256

    private let shards = FixedArray(count: TagTable.shardCount) { _ in Guarded(TagShard()) }
    private let hash: KeyedHash
    /// The number of purges so far, and 1.
    private let purges = Atomic<UInt64>(1)
    /// Held while a purge takes its number, notes it in its tags and publishes it.
    private let numbering = Guarded(())
    /// The tag of responses that have too many: every purge reaches it.
    private let unlisted = Tag(.empty, hash: 0)

    /// - Parameter hash: uses the process's secret key, so that no origin can choose colliding tags.
    public init(hash: KeyedHash = .random()) { self.hash = hash }

    /// The number of purges so far, and 1. A fetch takes it before it asks the origin, a request when it has come.
    public var generation: UInt64 { purges.load(ordering: .acquiring) }

    // MARK: - The tags of a response

    /// The tags of a response; `nil` if it has none, as most.
    /// - Parameters:
    ///   - fields: of the response.
    ///   - names: which of them name tags.
    ///   - authority: of the response's origin.
    ///   - requested: the generation before the origin was asked.
    @inlinable
    public func tags(
        in fields: FieldView, by names: TagFields, at authority: @autoclosure () -> String, requested: UInt64
    ) -> ResponseTags? {
        guard Self.mayHaveTags(fields, by: names) else { return nil }
        return find(fields, names, authority(), requested)
    }

    /// The tags of a stored response after a later answer of the origin, which may be a 304 or a part. Those of `former`
    /// stay, also if the answer has others: the stored head does not tell, as `response-headers` can remove the fields.
    /// A purge that reaches too much costs a fetch.
    /// - Parameters:
    ///   - head: the stored head, which the answer has changed.
    ///   - answer: the fields of the answer as it came.
    ///   - requested: the generation before the origin was asked for the answer.
    public func tags(
        in head: FieldView, _ answer: FieldView, after former: ResponseTags?, by names: TagFields,
        at authority: @autoclosure () -> String, requested: UInt64
    ) -> ResponseTags? {
        guard Self.mayHaveTags(answer, by: names) else {
            return former.map { ResponseTags($0.tags, requested: requested) }
        }
        let authority = authority()
        let all =
            (find(head, names, authority, requested)?.tags ?? [])
            + (find(answer, names, authority, requested)?.tags ?? []) + (former?.tags ?? [])
        guard !all.isEmpty else { return nil }
        let each = Self.eachOnce(all)
        return ResponseTags(each.count > TagFields.mostTags ? [unlisted] : each, requested: requested)
    }

    /// Whether a response with `fields` may have tags.
    @inlinable
    public static func mayHaveTags(_ fields: FieldView, by names: TagFields) -> Bool {
        fields.contains(.cacheGroups) || names.occur(in: fields)
    }

    @inline(never) // Most responses have no tags.
    @usableFromInline func find(_ fields: FieldView, _ names: TagFields, _ authority: String, _ requested: UInt64)
        -> ResponseTags?
    {
        var (found, isTooMuch) = ([Tag](), false)
        let bytes = fields.bytes
        names.forEachTag(in: fields) { range in
            if range.count > TagFields.longestTag || found.count >= TagFields.mostTags {
                isTooMuch = true
            } else {
                found.append(tag(bytes.extracting(range)))
            }
        }
        for group in CacheGroups.names(in: fields) {
            found.append(tag(ByteSlice(group)))
            found.append(tag(Self.name(group, at: authority)))
        }
        if isTooMuch { return ResponseTags([unlisted], requested: requested) }
        if found.isEmpty { return nil }
        return ResponseTags(Self.eachOnce(found), requested: requested)
    }

    private static func eachOnce(_ found: [Tag]) -> [Tag] {
        var tags: [Tag] = []
        tags.reserveCapacity(found.count)
        for tag in found.sorted(by: { ObjectIdentifier($0) < ObjectIdentifier($1) }) where tags.last !== tag {
            tags.append(tag)
        }
        return tags
    }

    private func tag(_ name: ByteSlice) -> Tag { tag(name.span) }

    private func tag(_ name: Span<UInt8>) -> Tag {
        let hash = hash.hash(name)
        return shards[Int(hash >> 58)].withLock { $0.tag(name, hash) }
    }

    /// The tag of a cache group at one origin. No field value has a line end, so no operator's name is equal.
    public static func name(_ group: String, at authority: String) -> ByteSlice { ByteSlice("\(authority)\n\(group)") }

    /// Whether a response with these fields has this tag, or has too many to tell.
    /// - Parameters:
    ///   - names: which of the fields name tags.
    ///   - authority: of the response's origin.
    public static func isTagged(
        _ fields: FieldView, with tag: Span<UInt8>, by names: TagFields, at authority: @autoclosure () -> String
    ) -> Bool {
        guard mayHaveTags(fields, by: names) else { return false }
        var (isFound, count) = (false, 0)
        let bytes = fields.bytes
        names.forEachTag(in: fields) { range in
            count += 1
            if range.count > TagFields.longestTag || count > TagFields.mostTags { isFound = true }
            if bytes.extracting(range).isEqual(to: tag) { isFound = true }
        }
        if isFound { return true }
        let groups = CacheGroups.names(in: fields)
        guard !groups.isEmpty else { return false }
        let authority = authority()
        return groups.contains { group in
            let (plain, own) = (ByteSlice(group), name(group, at: authority))
            return plain.span.isEqual(to: tag) || own.span.isEqual(to: tag)
        }
    }

    // MARK: - Purges

    /// Purges the responses that have one of `names`: from now on, look-ups find none of them.
    /// - Parameter softening: how the responses become stale; `nil`: they are removed.
    /// - Returns: how many stored responses have each of the names, added up. Responses that an earlier purge of the
    ///   same name has removed do not count again. But a response that has two of the names is counted twice, and so is one
    ///   that a purge of another of its tags has removed, until the sweep.
    public func purge(_ names: [ByteSlice], softening: Softening? = nil) -> Int {
        note(softening.map { .soften($0) } ?? .remove, in: Set(names).map { tag($0) })
    }

    /// Invalidates the groups of the origin with this authority (RFC 9875 §3).
    public func invalidate(_ groups: [String], of authority: String) {
        _ = note(.invalidate, in: Set(groups).map { tag(Self.name($0, at: authority)) })
    }

    private func note(_ effect: Tag.Effect, in tags: [Tag]) -> Int {
        numbering.withLock { _ in
            let number = purges.load(ordering: .relaxed) + 1
            let count = (tags + [unlisted]).reduce(0) { $0 + $1.note(effect, number: number) }
            // Last: who reads this number finds it, or a higher one, in each of the tags.
            purges.store(number, ordering: .releasing)
            return count
        }
    }

    /// Drops the tags that no response has and that need not be remembered.
    public func collect() { for index in 0..<shards.count { shards[index].withLock { $0.collect() } } }

    /// How many tags there are.
    var count: Int { (0..<shards.count).reduce(0) { $0 + shards[$1].withLock { $0.count } } }
}

/// Tags by their names: an open-addressing table with linear probing, at most three quarters full.
private struct TagShard {
    private static let smallest = 16

    private var places: [Tag?] = []
    private(set) var count = 0
    /// The number of the last purge of a tag that was forgotten; 0: none.
    private var forgotten: UInt64 = 0

    /// The tag with this name, which is made if there is none.
    mutating func tag(_ name: Span<UInt8>, _ hash: UInt64) -> Tag {
        if let found = find(name, hash) { return found }
        if (count + 1) * 4 > places.count * 3 { collect() }
        let tag = Tag(ByteSlice(copying: name), hash: hash, removed: forgotten)
        insert(tag)
        return tag
    }

    private func find(_ name: Span<UInt8>, _ hash: UInt64) -> Tag? {
        guard !places.isEmpty else { return nil }
        var index = home(of: hash)
        while let tag = places[index] {
            if tag.hash == hash {
                let own = tag.name
                if own.span.isEqual(to: name) { return tag }
            }
            index = next(index)
        }
        return nil
    }

    /// Drops the tags that no response has, and makes room for as many tags again as are left.
    mutating func collect() {
        var (kept, purged) = ([Tag](), [Tag]())
        for index in places.indices {
            // A tag that no response has can be found by nobody else: the lock is held.
            let isUnused = isKnownUniquelyReferenced(&places[index])
            guard let tag = places[index] else { continue }
            if !isUnused { kept.append(tag) } else if tag.lastPurge > forgotten { purged.append(tag) }
        }
        if purged.count > TagTable.mostRemembered {
            forgotten = purged.reduce(forgotten) { max($0, $1.lastPurge) }
        } else {
            kept += purged
        }
        var size = Self.smallest
        while size < 2 * kept.count { size *= 2 }
        places = Array(repeating: nil, count: size)
        count = 0
        for tag in kept { insert(tag) }
    }

    private mutating func insert(_ tag: Tag) {
        var index = home(of: tag.hash)
        while places[index] != nil { index = next(index) }
        places[index] = tag
        count += 1
    }

    private func home(of hash: UInt64) -> Int { Int(truncatingIfNeeded: hash) & (places.count - 1) }
    private func next(_ index: Int) -> Int { (index + 1) & (places.count - 1) }
}
