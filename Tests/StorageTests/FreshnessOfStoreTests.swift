import Bytes
import HTTPSemantics
import Storage
import Testing

@Suite struct GenerationTests {
    let cache = Cache()

    @Test func `what was on its way when its key was invalidated is not stored`() throws {
        let generation = cache.generation("a")
        #expect(cache.invalidate("a") == 0)
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
        _ = cache.invalidate("a")
        #expect(cache.invalidate("a", after: post) == nil)
        let second = cache.generation("a")
        cache.store.removeAll()
        #expect(cache.invalidate("a", after: second) == nil)
    }

    @Test func `an invalidation of one key leaves the fetches of all others alone`() throws {
        let keys = (0..<1000).map { "k\($0)" }
        let generations = keys.map { cache.generation($0) }
        for other in 0..<100 { _ = cache.invalidate("x\(other)") }
        _ = cache.remove("k7")
        let refused = zip(keys, generations).filter { cache.store.wasInvalidated(hash: cache.hash($0), since: $1) }
        #expect(refused.map(\.0) == ["k7"])
    }

    @Test func `where more were invalidated than are remembered one by one, only keys that share a count are taken to be concerned`() throws {
        let key = "a"
        let before = cache.generation(key)
        // All in its shard, which the upper bits choose, and only the last one under its count, which bits in the middle do.
        let others: [UInt64] = (1...200).map { cache.hash(key) ^ ($0 << 32) } + [cache.hash(key) ^ 1]
        func invalidate(_ hashes: ArraySlice<UInt64>) {
            for hash in hashes { cache.store.invalidate(hash: hash, key: Array("x".utf8).span) }
        }
        func isConcerned(since generation: Generation) -> Bool { cache.store.wasInvalidated(hash: cache.hash(key), since: generation) }
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
        #expect(cache.invalidate("invalidated") == 1)
        #expect(cache.remove("purged") == 1)
        #expect(cache.resource("invalidated")?.count == 0)
        #expect(cache.resource("invalidated")?.knownVary == [Sample.rule("Accept")])
        #expect(cache.resource("invalidated")?.marker != nil)
        #expect(cache.resource("purged") == nil)
    }
}

@Suite struct FresheningTests {
    let cache = Cache()

    private func freshen(_ former: StoredResponse, _ new: StoredResponse, generation: Generation? = nil) -> StoreOutcome {
        cache.store.freshen(
            former, with: new, hash: cache.hash("a"), key: Array("a".utf8).span, generation: generation ?? cache.generation("a")
        )
    }

    @Test func `a freshened response has the same body, and its bytes count once`() throws {
        let former = try #require(cache.response(5000, tag: "former"))
        cache.store(former, "a")
        former.noteUse()
        let used = cache.budget.used
        let new = Sample.response(body: former.body, tag: "newer!")
        #expect(freshen(former, new) == .stored)
        let stored = try #require(cache.resource("a")?.response(at: 0))
        #expect(stored.tag == "newer!" && stored.body === former.body)
        #expect(stored.frequency == 1)
        #expect(cache.budget.used == used)
    }

    @Test func `what was replaced or removed meanwhile is not brought back`() throws {
        cache.put("a")
        let former = try #require(cache.resource("a")?.response(at: 0))
        cache.store(try #require(cache.response(tag: "other")), "a")
        #expect(freshen(former, Sample.response(body: former.body)) == .gone)
        #expect(cache.resource("a")?.responses.map(\.tag) == ["other"])
        let generation = cache.generation("a")
        cache.store.removeAll()
        #expect(freshen(former, Sample.response(body: former.body), generation: generation) == .outdated)
        #expect(freshen(former, Sample.response(body: former.body)) == .gone)
    }

    @Test func `a response that after its freshening answers what another answers takes its place`() throws {
        cache.store(try #require(cache.response(vary: "Accept", request: [("Accept", "x")], tag: "one")), "a")
        cache.store(try #require(cache.response(tag: "two")), "a")
        let german = try #require(cache.resource("a")?.responses.first { $0.tag == "one" })
        #expect(freshen(german, Sample.response(body: german.body, tag: "three")) == .stored)
        #expect(cache.resource("a")?.responses.map(\.tag) == ["three"])
    }

    @Test func `one that is dropped takes neither others nor what is on its way with it`() throws {
        for value in ["x", "y"] { cache.store(try #require(cache.response(vary: "Accept", request: [("Accept", value)], tag: value)), "a") }
        let generation = cache.generation("a")
        let former = try #require(cache.resource("a")?.responses.first { $0.tag == "x" })
        for _ in 1...2 { cache.store.drop(former, hash: cache.hash("a"), key: Array("a".utf8).span) }
        #expect(cache.resource("a")?.responses.map(\.tag) == ["y"])
        let outcome = try cache.store(#require(cache.response(vary: "Accept", request: [("Accept", "x")], tag: "x")), "a", generation: generation)
        #expect(outcome == .stored)
    }
}

@Suite struct MarkerTests {
    let cache = Cache()

    @Test func `a marker holds until its time`() throws {
        cache.mark("a", until: 100)
        let marker = try #require(cache.resource("a")?.marker)
        #expect(marker.reason == .setCookie)
        #expect(marker.holds(at: Moment(monotonic: 99, wall: 0)))
        #expect(!marker.holds(at: Moment(monotonic: 100, wall: 0)))
    }

    @Test func `a stored response takes the marker away`() {
        cache.mark("a")
        cache.put("a")
        #expect(cache.resource("a")?.marker == nil)
        #expect(cache.resource("a")?.count == 1)
        #expect(cache.store.numbers.markers == 0)
    }

    @Test func `a cleared marker leaves nothing behind`() {
        cache.mark("a")
        cache.store.clearMarker(hash: cache.hash("a"), key: Array("a".utf8).span)
        #expect(cache.resource("a") == nil)
        #expect(cache.budget.used == 0)
    }

    @Test func `markers are counted in bytes and evicted like everything else`() {
        let cache = Cache(memory: 1 << 20)
        for number in 0..<50_000 { cache.mark("marked \(number)") }
        let numbers = cache.store.numbers
        #expect(cache.budget.used <= 1 << 20)
        #expect(numbers.markers > 1000 && numbers.markers < 10_000)
        #expect(numbers.bytes == cache.budget.used)
    }

    @Test func `a flood of markers does not flush what is used`() {
        let cache = Cache(memory: 4 << 20)
        for number in 0..<100 { cache.put("page \(number)", 1000, popularity: 3) }
        for number in 0..<100_000 { cache.mark("marked \(number)") }
        let kept = (0..<100).filter { cache.resource("page \($0)") != nil }
        #expect(kept.count == 100)
    }
}
