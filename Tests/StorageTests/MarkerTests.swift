import Bytes
import HTTPSemantics
import Storage
import Testing

@Suite struct MarkerTests {
    let cache = Cache()

    @Test func `a marker holds until its time`() throws {
        cache.mark("a", until: 100)
        let marker = try #require(cache.resource("a")?.marker)
        #expect(marker.reason == .prohibited(.setCookie))
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
        cache.mark("cleared", reason)
        cache.store.clearMarker(cache.key("cleared"), after: facts)
        #expect((cache.resource("cleared")?.marker != nil) == stays)
        cache.mark("stored", reason)
        let body = try #require(Sample.body(10, budget: cache.budget))
        cache.store(Sample.response(body: body, cacheControl), "stored")
        #expect((cache.resource("stored")?.marker != nil) == stays)
    }

    @Test func `a marker whose time is over goes with the next response`() throws {
        cache.mark("a", until: 100, .prohibited(.authorization))
        let body = try #require(Sample.body(10, budget: cache.budget))
        cache.store(Sample.response(body: body, received: 100), "a")
        #expect(cache.resource("a")?.marker == nil)
    }

    @Test func `a cleared marker leaves nothing behind`() {
        cache.mark("a")
        cache.clearMarker("a")
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
