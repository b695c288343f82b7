import Bytes
import HTTPSemantics
import Storage
import Testing

@Suite struct GenerationTests {
    let cache = Cache()

    @Test func `what was on its way when its key was invalidated is not stored`() throws {
        let generation = cache.generation("a")
        cache.invalidate("a")
        #expect(cache.store(try #require(cache.response()), "a", generation: generation) == .outdated)
        #expect(cache.resource("a") == nil)
        #expect(cache.put("a") == .stored)
    }

    @Test func `neither is what was on its way when its key or everything was purged`() throws {
        let before = cache.generation("a")
        _ = cache.remove("a")
        #expect(cache.store(try #require(cache.response()), "a", generation: before) == .outdated)
        let between = cache.generation("a")
        cache.store.removeAll()
        #expect(cache.store(try #require(cache.response()), "a", generation: between) == .outdated)
        #expect(cache.budget.used == 0)
    }

    @Test func `what a walk below a URL finds goes, its neighbours and what is on its way stay`() throws {
        let keys = ["http a /img", "http a /img?q", "http a /img/x", "http a /img 1 q", "http a /img\0\u{1}x"]
        let others = ["http a /imgs", "http a /im", "http b /img", "http a:8080 /img"]
        for key in keys + others { cache.put(key) }
        let generation = cache.generation("http a /img/y")
        func remove(_ url: String) -> Int {
            let url = ByteSlice(url)
            return cache.removeAll { $0.isBelow(url.span) }
        }
        #expect(remove("http a /img") == keys.count)
        #expect(keys.allSatisfy { cache.resource($0) == nil } && others.allSatisfy { cache.resource($0) != nil })
        #expect(cache.store(try #require(cache.response()), "http a /img/y", generation: generation) == .stored)
        #expect(remove("http a /img/") == 1 && remove("http a /") == 2 && remove("http ") == 0)
        #expect(cache.resource("http b /img") != nil)
    }

    @Test func `what invalidates a key itself is stored afterwards, what was on its way before is not`() throws {
        let post = cache.generation("a"), get = cache.generation("a")
        cache.put("a")
        let next = try #require(cache.invalidate("a", after: post))
        #expect(cache.resource("a")?.count ?? 0 == 0)
        #expect(cache.store(try #require(cache.response()), "a", generation: get) == .outdated)
        #expect(cache.store(try #require(cache.response()), "a", generation: next) == .stored)
    }

    @Test func `it is not where something else went over the key meanwhile`() {
        let post = cache.generation("a")
        cache.invalidate("a")
        #expect(cache.invalidate("a", after: post) == nil)
        let second = cache.generation("a")
        cache.store.removeAll()
        #expect(cache.invalidate("a", after: second) == nil)
    }

    @Test func `an invalidation of one key leaves the fetches of all others alone`() throws {
        let keys = (0..<1000).map { "k\($0)" }
        let generations = keys.map { cache.generation($0) }
        for other in 0..<100 { cache.invalidate("x\(other)") }
        _ = cache.remove("k7")
        let refused = zip(keys, generations).filter { cache.store.wasInvalidated(cache.key($0), since: $1) }
        #expect(refused.map(\.0) == ["k7"])
    }

    @Test
    func
        `where more were invalidated than are remembered one by one, only keys that share a count are taken to be concerned`()
        throws
    {
        let key = "a"
        let before = cache.generation(key)
        // All in its shard, which the upper bits choose, and only the last one under its count, which bits in the
        // middle do.
        let others: [UInt64] = (1...200).map { cache.key(key).hash ^ ($0 << 32) } + [cache.key(key).hash ^ 1]
        func invalidate(_ hashes: ArraySlice<UInt64>) {
            for hash in hashes { cache.store.invalidate(CacheKey(hash: hash, bytes: ByteSlice("x"))) }
        }
        func isConcerned(since generation: Generation) -> Bool {
            cache.store.wasInvalidated(cache.key(key), since: generation)
        }
        invalidate(others.dropLast())
        #expect(!isConcerned(since: before))
        let between = cache.generation(key)
        invalidate(others.suffix(1))
        #expect(isConcerned(since: before), "how many came since is more than is remembered")
        #expect(!isConcerned(since: between))
        #expect(!isConcerned(since: cache.generation(key)))
    }

    @Test func `an invalidated resource keeps what is known about sharing it, a purged one nothing`() throws {
        for key in ["invalidated", "purged"] {
            cache.store(try #require(cache.response(vary: "Accept", tag: key)), key)
            cache.mark(key)
        }
        #expect(cache.resource("invalidated")?.count == 1)
        cache.invalidate("invalidated")
        #expect(cache.remove("purged") == 1)
        #expect(cache.resource("invalidated")?.count == 0)
        #expect(cache.resource("invalidated")?.knownVary == [Sample.rule("Accept")])
        #expect(cache.isMarked("invalidated"))
        #expect(cache.resource("purged") == nil)
    }
}
