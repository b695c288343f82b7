import Bytes
import Dispatch
import HTTPSemantics
import Repeatable
import Synchronization
import Testing

@testable import Storage

/// Purges of stored responses by their tags.
@Suite struct TagTests {
    /// Stores a response with tags and cache groups.
    @discardableResult
    private static func put(
        _ key: String, _ fields: String, vary: String? = nil, in cache: Cache, requested: UInt64? = nil,
        _ cacheControl: String = "max-age=60"
    ) -> StoreOutcome {
        let key = cache.key(key)
        let vary = vary.map { "Vary: \($0)\r\n" } ?? ""
        let head = HeadBlock(lines: ByteSlice("Cache-Control: \(cacheControl)\r\n\(vary)\(fields)\r\n"))
        let now = Moment(monotonic: 1_000, wall: 1_000)
        let facts = ResponseFacts(
            status: .ok, fields: head.view, requestTime: now, responseTime: now, policy: CachingPolicy())
        let request = HeadBlock(lines: ByteSlice("Accept: \(String(key.bytes))\r\n"))
        let (lines, bytes, body) = (head.bytes, key.bytes, ByteSlice("body"))
        let tags = cache.store.tags
        let response = StoredResponse(
            packing: lines.span, body: body.span, under: bytes.span, facts: facts,
            variant: Variant(for: request.view, under: VaryRule(head.view) ?? .none),
            tags: tags.tags(in: head.view, by: .usual, at: "a", requested: requested ?? tags.generation))
        return cache.store.store(response, under: key, requestTime: now, unless: { false })
    }

    private static func purge(_ names: String..., softening: Softening? = nil, in cache: Cache) -> Int {
        cache.store.tags.purge(names.map { ByteSlice($0) }, softening: softening)
    }

    private static func sweep(_ cache: Cache) {
        var walk = PurgeWalk()
        walk.sweep()
        while !walk.isEmpty { _ = walk.step(through: cache.store) { _, _ in 0 } }
    }

    private static let minute = Softening(at: 1_000_000_000, grace: 60)

    @Test func `a purge reaches the responses with the tag, in whatever field, and no others`() {
        let cache = Cache()
        Self.put("a", "Cache-Tag: x, t", in: cache)
        Self.put("b", "Surrogate-Key: t y", vary: "Accept", in: cache)
        Self.put("c", "Cache-Groups: \"t\"", in: cache)
        Self.put("d", "Cache-Tag: T, tt, x", in: cache)
        #expect(Self.purge("t", in: cache) == 3)
        #expect(["a", "b", "c"].allSatisfy { cache.resource($0)?.responses.isEmpty ?? true })
        #expect(cache.resource("d")?.count == 1)
        #expect(Self.purge("t", in: cache) == 0, "those that wait for the sweep do not count")
        #expect(Self.purge("none", in: cache) == 0)
        #expect(Self.purge("x", "tt", in: cache) == 2, "twice")
        #expect(cache.resource("d") == nil)
    }

    @Test func `an origin's invalidation reaches its own groups only, and is no purge`() {
        let cache = Cache()
        Self.put("group", "Cache-Groups: \"t\"", in: cache)
        Self.put("tag", "Cache-Tag: t", in: cache)
        cache.store.tags.invalidate(["t"], of: "b")
        #expect(cache.resource("group")?.response(at: 0).facts.contains(.isInvalidated) == false)
        cache.store.tags.invalidate(["t"], of: "a")
        #expect(cache.resource("group")?.response(at: 0).facts.contains(.isInvalidated) == true)
        #expect(cache.resource("tag")?.response(at: 0).facts.contains(.isInvalidated) == false)
    }

    @Test(arguments: [true, false])
    func `what was requested before a purge is not stored after it, and what was requested later is`(isSoft: Bool) {
        let cache = Cache()
        let before = cache.store.tags.generation
        _ = Self.purge("t", softening: isSoft ? Self.minute : nil, in: cache)
        #expect(Self.put("a", "xkey: t", in: cache, requested: before) == (isSoft ? .stored : .outdated))
        let later = Moment(monotonic: Self.minute.time + 1, wall: 1_000)
        #expect(cache.resource("a")?.response(at: 0).facts.isFresh(for: .none, at: later) != true)
        #expect(Self.put("a", "xkey: t", in: cache) == .stored)
        #expect(cache.resource("a")?.response(at: 0).facts.isFresh(for: .none, at: later) == true)
    }

    @Test func `a soft purge makes fresh responses stale, for as long as it says`() {
        let cache = Cache()
        Self.put("fresh", "Cache-Tag: t", in: cache)
        Self.put("long", "Cache-Tag: t", in: cache, "max-age=60, stale-while-revalidate=3600")
        Self.put("stale", "Cache-Tag: t", in: cache, "max-age=0")
        #expect(Self.purge("t", softening: Self.minute, in: cache) == 3)
        func reuse(_ key: String, after seconds: Int64) -> Reuse? {
            let now = Moment(monotonic: Self.minute.time + seconds * 1_000_000_000, wall: 0)
            return cache.resource(key)?.response(at: 0).facts.reuse(for: .none, at: now)
        }
        #expect(reuse("fresh", after: -1) == .staleWhileRevalidate(age: 0), "by a clock that is behind")
        #expect(reuse("fresh", after: 60) == .staleWhileRevalidate(age: 60))
        #expect(reuse("fresh", after: 61) == .validate(.stale))
        #expect(reuse("long", after: 3599) == .staleWhileRevalidate(age: 3599))
        #expect(reuse("stale", after: 0) == .validate(.stale))
        #expect(cache.store.soften(cache.key("fresh"), by: Softening(at: 1_500_000_000, grace: 99)) == 1)
        #expect(reuse("fresh", after: 60) == .staleWhileRevalidate(age: 60), "it was stale already")
    }

    @Test func `a response with too many tags, or with one that is too long, is reached by each purge`() {
        let cache = Cache()
        let many = (0...TagFields.mostTags).map { "t\($0)" }.joined(separator: " ")
        Self.put("many", "xkey: \(many)", in: cache)
        Self.put("long", "xkey: " + String(repeating: "x", count: TagFields.longestTag + 1), in: cache)
        Self.put("few", "xkey: t", in: cache)
        #expect(Self.purge("other", in: cache) == 2)
        #expect(cache.resource("many") == nil && cache.resource("long") == nil && cache.resource("few") != nil)
    }

    @Test func `a purge before the first response with the tag is remembered, even when others are forgotten`() {
        let cache = Cache()
        let before = cache.store.tags.generation
        let most = TagTable.mostRemembered * 64
        for number in 0..<4 * most { _ = Self.purge("t\(number)", in: cache) }
        #expect(cache.store.tags.count < 3 * most)
        cache.store.tags.collect()
        #expect(cache.store.tags.count <= most)
        for number in [0, most, 4 * most - 1] {
            #expect(Self.put("a", "xkey: t\(number)", in: cache, requested: before) == .outdated)
            #expect(Self.put("a", "xkey: t\(number)", in: cache) == .stored)
        }
    }

    @Test func `tags that no response has are dropped, with their memory`() {
        let cache = Cache()
        for number in 0..<5_000 { Self.put("\(number)", "xkey: t\(number) all", in: cache) }
        #expect(cache.store.tags.count == 5_001)
        #expect(Self.purge("all", in: cache) == 5_000)
        Self.sweep(cache)
        cache.store.tags.collect()
        // What was purged is remembered.
        #expect(cache.store.tags.count == 1)
        #expect(cache.store.numbers.responses == 0 && cache.budget.used == 0)
    }

    /// A share of what `Benchmark purges` does with a million.
    @Test(arguments: Rounds.seeds(4)) func `purges, stores, look-ups and sweeps agree with a plain model`(seed: UInt64)
    {
        let cache = Cache(memory: 64 << 20, shards: 8)
        var random = SeededGenerator(seed: seed)
        /// The tags of each key.
        var model: [String: (tags: Set<String>, isStale: Bool)] = [:]
        func tag() -> String { "t\(Int.random(in: 0..<40, using: &random))" }
        let late = Moment(monotonic: Self.minute.time, wall: 0)
        /// Whether no responses wait for the sweep, so that the counts are exact.
        var isSwept = true
        for _ in 0..<4_000 {
            let key = "\(Int.random(in: 0..<500, using: &random))"
            switch Int.random(in: 0..<20, using: &random) {
            case 0:
                let purged = tag()
                let reached = model.filter { $0.value.tags.contains(purged) }.count
                let count = Self.purge(purged, in: cache)
                #expect(isSwept ? count == reached : count >= reached)
                isSwept = false
                model = model.filter { !$0.value.tags.contains(purged) }
            case 1:
                let purged = tag()
                let reached = model.filter { $0.value.tags.contains(purged) }.map(\.key)
                let count = Self.purge(purged, softening: Self.minute, in: cache)
                #expect(isSwept ? count == reached.count : count >= reached.count)
                for key in reached { model[key]?.isStale = true }
            case 2:
                Self.sweep(cache)
                isSwept = true
            case 3:
                cache.store.remove(cache.key(key))
                model[key] = nil
            case 4..<12:
                let tags = Set((0..<3).map { _ in tag() })
                #expect(Self.put(key, "xkey: \(tags.sorted().joined(separator: " "))", in: cache) == .stored)
                model[key] = (tags, false)
            default:
                let facts = cache.resource(key)?.response(at: 0).facts
                #expect((facts != nil) == (model[key] != nil))
                if let facts { #expect(facts.isFresh(for: .none, at: late) == (model[key]?.isStale == false)) }
            }
        }
        Self.sweep(cache)
        #expect(cache.store.numbers.responses == model.count)
        cache.store.removeAll()
        #expect(cache.budget.used == 0 && cache.budget.resting == 0)
    }

    /// As `a response fetched before an invalidation is not found afterwards`, without marks.
    @Test func `a response requested before a purge of its tag is not found afterwards, on whatever thread`() {
        let cache = Cache(memory: 4 << 20, shards: 2)
        let (store, tags) = (cache.store, cache.store.tags)
        // A fetch sees the origin's version of the moment it begins at, or a later one.
        let version = Atomic<Int>(0)
        let purged = Atomic<Int>(0)
        let stale = Atomic<Int>(0)
        let key = cache.key("http a /")
        DispatchQueue.concurrentPerform(iterations: 5) { thread in
            for _ in 0..<2000 * Rounds.count {
                switch thread {
                case 0:
                    let new = version.add(1, ordering: .sequentiallyConsistent).newValue
                    _ = tags.purge([ByteSlice("t")])
                    purged.store(new, ordering: .sequentiallyConsistent)
                case 1: Self.sweep(cache)
                case 2, 3:
                    let requested = tags.generation
                    let seen = version.load(ordering: .sequentiallyConsistent)
                    guard let body = Sample.body(10, budget: cache.budget) else { continue }
                    let plain = Sample.response(body: body, date: Int64(seen))
                    let head = HeadBlock(lines: ByteSlice("xkey: t u\(seen)\r\n"))
                    let response = plain.with(
                        head: plain.head, facts: plain.facts,
                        tags: tags.tags(in: head.view, by: .usual, at: "a", requested: requested))
                    _ = store.store(response, under: key, requestTime: Sample.never, unless: { false })
                default:
                    let least = purged.load(ordering: .sequentiallyConsistent)
                    guard let resource = store.resource(key) else { continue }
                    for response in resource.responses where response.facts.date < least {
                        stale.add(1, ordering: .sequentiallyConsistent)
                    }
                }
            }
        }
        #expect(stale.load(ordering: .sequentiallyConsistent) == 0)
        store.removeAll()
        #expect(cache.budget.used == 0)
    }

    /// A purge notes each of its tags before it counts: many tags make that time long enough to look up in it.
    @Test func `a response that is looked up while a purge notes its tags is not found afterwards`() {
        let cache = Cache()
        let names = (0..<20_000).map { "t\($0)" }
        let stored = names.enumerated().filter { $0.offset % 400 == 0 }.map(\.element)
        for _ in 0..<10 {
            for name in stored { Self.put(name, "xkey: \(name)", in: cache) }
            #expect(stored.allSatisfy { cache.resource($0)?.count == 1 })
            let isPurged = Atomic(false)
            DispatchQueue.concurrentPerform(iterations: 2) { thread in
                if thread == 0 {
                    _ = cache.store.tags.purge(names.map { ByteSlice($0) })
                    isPurged.store(true, ordering: .sequentiallyConsistent)
                } else {
                    repeat {
                        for name in stored { _ = cache.resource(name) }
                    } while !isPurged.load(
                        ordering: .sequentiallyConsistent)
                }
            }
            #expect(stored.allSatisfy { cache.resource($0)?.responses.isEmpty ?? true })
        }
    }
}
