import Bytes
import HTTPSemantics
import Storage
import Testing

/// Removal of responses, and the responses to fetches that were marked before it (`ResponseStore.store`).
@Suite struct StoreInvalidationTests {
    let cache = Cache()

    @Test func `the response to a marked fetch is not stored`() throws {
        #expect(cache.store(try #require(cache.response()), "a", unless: { true }) == .outdated)
        #expect(cache.resource("a") == nil && cache.budget.used == 0)
        #expect(cache.put("a") == .stored)
    }

    @Test func `the mark is read once the response could be stored`() throws {
        var reads = 0
        func isMarked() -> Bool {
            reads += 1
            return false
        }
        let unfinished = Sample.response(body: GrowingBody(budget: cache.budget))
        #expect(cache.store(unfinished, "a", unless: isMarked) == .incomplete && reads == 0)
        #expect(cache.store(try #require(cache.response()), "a", unless: isMarked) == .stored && reads == 1)
    }

    @Test func `a walk below a URL removes what it finds and leaves the neighbours`() throws {
        let keys = ["http a /img", "http a /img?q", "http a /img/x", "http a /img 1 q", "http a /img\0\u{1}x"]
        let others = ["http a /imgs", "http a /im", "http b /img", "http a:8080 /img"]
        for key in keys + others { cache.put(key) }
        func remove(_ url: String) -> Int {
            let url = ByteSlice(url)
            return cache.removeAll { $0.isBelow(url.span) }
        }
        #expect(remove("http a /img") == keys.count)
        #expect(keys.allSatisfy { cache.resource($0) == nil } && others.allSatisfy { cache.resource($0) != nil })
        cache.put("http a /img/y")
        #expect(remove("http a /img/") == 1 && remove("http a /") == 2 && remove("http ") == 0)
        #expect(cache.resource("http b /img") != nil)
    }

    @Test func `an invalidated resource keeps its notes about sharing, a purged one keeps none`() throws {
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
