import Coalescing
import RouteTesting
import Routing
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

    /// The same, replaced by `new`, and held by nothing else.
    private static func replacing(_ name: String, done: Int, by new: Origin, in former: inout FormerOrigins)
        -> PlainOperation
    {
        let (old, running) = origin(name, done: done)
        former.replaced([old], by: [new])
        return running
    }

    @Test func `the fetches in flight of a replaced origin count on, and its totals count after its end`() {
        let (new, other) = Self.origin("a", done: 10)
        var former = FormerOrigins()
        let running = Self.replacing("a", done: 2, by: new, in: &former)
        #expect(former.origins.count == 1)
        #expect(former.snapshot(with: new).inFlight == 2)
        #expect(former.snapshot(with: new).started == 14)

        running.finish()
        #expect(former.snapshot(with: new).inFlight == 1)
        // The next reload sees that nothing holds it, and keeps its numbers only.
        former.replaced([new], by: [new])
        #expect(former.origins.isEmpty)
        #expect(former.snapshot(with: new).started == 14 && former.snapshot(with: new).finished == 13)
        other.finish()
        former.replaced([new], by: [new])
        #expect(former.snapshot(with: new).finished == 14, "counted once")
    }

    @Test func `an origin that stays is not a former origin`() {
        let (origin, running) = Self.origin("a", done: 1)
        var former = FormerOrigins()
        former.replaced([origin], by: [origin])
        #expect(former.origins.isEmpty && former.snapshot(with: origin).started == 2)
        running.finish()
    }

    @Test func `totals belong to a name, and are forgotten with the name`() {
        var former = FormerOrigins()
        let newA = Origin(.named("a"))
        let runningA = Self.replacing("a", done: 1, by: newA, in: &former)
        let runningB = Self.replacing("b", done: 5, by: newA, in: &former)
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

    @Test func `a former origin is kept while referenced, since a fetch may begin there`() {
        let new = Origin(.named("a")), newest = Origin(.named("a"))
        var former = FormerOrigins()
        var held: Origin? = Origin(.named("a"))
        former.replaced([held].compactMap { $0 }, by: [new])
        former.replaced([new], by: [newest])
        let late = PlainOperation()
        _ = held?.fetches.enqueue(plain: late)
        #expect(former.snapshot(with: newest).inFlight == 1)
        former.replaced([newest], by: [newest])
        #expect(former.origins.count == 2 && former.origins[0] === held && former.origins[1] === new)
        late.finish()
        held = nil
        former.replaced([newest], by: [newest])
        #expect(former.origins.count == 1 && former.snapshot(with: newest).finished == 1)
        withExtendedLifetime(new) {}
    }

    @Test func `a fetch that begins at a replaced origin counts too`() {
        let old = Origin(.named("a")), new = Origin(.named("a"))
        var former = FormerOrigins()
        former.replaced([old], by: [new])
        let late = PlainOperation()
        _ = old.fetches.enqueue(plain: late)
        #expect(former.snapshot(with: new).inFlight == 1)
        late.finish()
    }
}
