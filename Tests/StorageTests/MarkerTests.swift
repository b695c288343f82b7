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

    @Test func `a cleared marker leaves nothing behind`() {
        cache.mark("a")
        cache.store.clearMarker(cache.key("a"))
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
