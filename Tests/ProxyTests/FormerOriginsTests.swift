import Coalescing
import Testing
import Upstream

@testable import Proxy

/// What an upstream's earlier settings have in flight, and have done, counts with it.
@Suite struct FormerOriginsTests {
    /// An origin of that name with so many fetches done, and one in flight to be ended.
    private static func origin(_ name: String, done: Int) -> (Origin, PlainOperation) {
        let origin = Origin(.named(name))
        for _ in 0..<done { _ = origin.fetches.enqueue(plain: PlainOperation { $0.finish() }) }
        let running = PlainOperation()
        _ = origin.fetches.enqueue(plain: running)
        return (origin, running)
    }

    @Test func `what an origin had in flight when it was replaced counts on, and when that is over what it had done`() {
        let (old, running) = Self.origin("a", done: 2), (new, other) = Self.origin("a", done: 10)
        var former = FormerOrigins()
        former.replaced([old], by: [new])
        #expect(former.origins.map { $0 === old } == [true])
        #expect(former.snapshot(with: new).inFlight == 2)
        #expect(former.snapshot(with: new).started == 14)

        running.finish()
        #expect(former.snapshot(with: new).inFlight == 1)
        // The next reload sees that it is over, and keeps its numbers only.
        former.replaced([new], by: [new])
        #expect(former.origins.isEmpty)
        #expect(former.snapshot(with: new).started == 14 && former.snapshot(with: new).finished == 13)
        other.finish()
        former.replaced([new], by: [new])
        #expect(former.snapshot(with: new).finished == 14, "counted once")
    }

    @Test func `an origin that stays is none of them`() {
        let (origin, running) = Self.origin("a", done: 1)
        var former = FormerOrigins()
        former.replaced([origin], by: [origin])
        #expect(former.origins.isEmpty && former.snapshot(with: origin).started == 2)
        running.finish()
    }

    @Test func `numbers go with the name, and are forgotten with it`() {
        let (a, runningA) = Self.origin("a", done: 1), (b, runningB) = Self.origin("b", done: 5)
        var former = FormerOrigins()
        let newA = Origin(.named("a"))
        former.replaced([a, b], by: [newA])
        #expect(former.snapshot(with: newA).started == 2, "not those of b")
        runningA.finish()
        runningB.finish()
        former.replaced([newA], by: [newA])
        #expect(former.origins.isEmpty)
        let newB = Origin(.named("b"))
        former.replaced([newA], by: [newA, newB])
        #expect(former.snapshot(with: newB).started == 0, "it was gone meanwhile")
        #expect(former.snapshot(with: newA).started == 2)
    }

    @Test func `a fetch that begins at an origin after it was replaced counts too`() {
        let old = Origin(.named("a")), new = Origin(.named("a"))
        var former = FormerOrigins()
        former.replaced([old], by: [new])
        let late = PlainOperation()
        _ = old.fetches.enqueue(plain: late)
        #expect(former.snapshot(with: new).inFlight == 1)
        late.finish()
    }
}
