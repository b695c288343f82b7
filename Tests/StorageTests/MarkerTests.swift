import Bytes
import HTTPSemantics
import Testing

@testable import Storage

/// In the store.
@Suite struct MarkerTests {
    let cache = Cache()

    @Test func `a stored response removes the markers that it contradicts`() {
        cache.mark("a")
        cache.mark("a", .range)
        cache.put("a")
        #expect(!cache.isMarked("a"))
        #expect(cache.resource("a")?.count == 1)
        #expect(cache.store.numbers.markedKeys == 0)
    }

    @Test(arguments: [
        (NotSharedReason.prohibited(.private), "max-age=60", false),
        (.prohibited(.authorization), "max-age=60", true),
        (.prohibited(.authorization), "public, max-age=60", false),
        (.prohibited(.authorization), "max-age=60, must-revalidate", false),
        (.unlike, "no-cache, max-age=60", true),
        (.unlike, "max-age=60", false),
    ])
    func `a marker stays until a response contradicts it`(
        _ reason: NotSharedReason, _ cacheControl: String, _ stays: Bool
    ) throws {
        let facts = Sample.response(body: GrowingBody(lending: .empty), cacheControl).facts
        cache.mark("told", reason)
        cache.store.forgetMarkers(of: cache.key("told"), after: facts, keepsWhole: true)
        #expect(cache.isMarked("told") == stays)
        cache.mark("stored", reason)
        let body = try #require(Sample.body(10, budget: cache.budget))
        cache.store(Sample.response(body: body, cacheControl), "stored")
        #expect(cache.isMarked("stored") == stays)
    }

    @Test func `an expired marker is removed with the next response`() throws {
        cache.mark("a", until: 100, .prohibited(.authorization))
        let body = try #require(Sample.body(10, budget: cache.budget))
        cache.store(Sample.response(body: body, responseTime: 100), "a")
        #expect(!cache.isMarked("a"))
    }

    @Test func `a removed marker leaves nothing behind`() {
        cache.mark("a")
        cache.mark("a", .prohibited(.authorization))
        cache.forgetMarkers("a")
        #expect(cache.resource("a") == nil)
        #expect(cache.budget.used == 0)
    }

    @Test func `each marker of a key counts in bytes, and the key counts once`() {
        cache.mark("a")
        let one = cache.store.numbers
        cache.mark("a", .unlike)
        let two = cache.store.numbers
        #expect(two.bytes > one.bytes && two.bytes == cache.budget.used)
        #expect(one.markedKeys == 1 && two.markedKeys == 1)
        cache.mark("a", .unlike)
        cache.mark("a", .prohibited(.private))
        #expect(cache.store.numbers == two)
    }

    @Test func `markers count in bytes and are evicted like other entries`() {
        let cache = Cache(memory: 1 << 20)
        for number in 0..<50_000 { cache.mark("marked \(number)") }
        let numbers = cache.store.numbers
        #expect(cache.budget.used <= 1 << 20)
        #expect(numbers.markedKeys > 1000 && numbers.markedKeys < 10_000)
        #expect(numbers.bytes == cache.budget.used)
    }

    @Test func `a flood of markers does not evict used responses`() {
        let cache = Cache(memory: 4 << 20)
        for number in 0..<100 { cache.put("page \(number)", 1000, popularity: 3) }
        for number in 0..<100_000 { cache.mark("marked \(number)") }
        let kept = (0..<100).filter { cache.resource("page \($0)") != nil }
        #expect(kept.count == 100)
    }
}
