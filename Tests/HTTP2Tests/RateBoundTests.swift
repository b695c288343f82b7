import Testing

@testable import HTTP2

/// How often a peer may do something.
@Suite struct RateBoundTests {
    @Test func `a burst is admitted at once, and then so many a second`() {
        var bound = RateBound(burst: 3, perSecond: 2, at: 0)
        let first = (0..<4).map { _ in bound.admit(at: 0) }
        #expect(first == [true, true, true, false])
        let later = [bound.admit(at: 499_999_999), bound.admit(at: 500_000_000), bound.admit(at: 500_000_001)]
        #expect(later == [false, true, false])
    }

    @Test func `a rest of any length gives no more than the burst`() {
        var bound = RateBound(burst: 2, perSecond: 1000, at: 0)
        let admitted = (0..<4).map { _ in bound.admit(at: .max) }
        #expect(admitted == [true, true, false, false])
    }

    @Test func `a clock that stands or goes back gives nothing`() {
        var bound = RateBound(burst: 1, perSecond: 1, at: 10)
        let admitted = [bound.admit(at: 5), bound.admit(at: 10), bound.admit(at: 0)]
        #expect(admitted == [true, false, false])
    }

    @Test(arguments: PeerEvent.allCases) func `every event has a bound of its own`(_ event: PeerEvent) {
        var conduct = PeerConduct(at: 0)
        let others = PeerEvent.allCases.filter { $0 != event }
        var count = 0
        while conduct.admit(event, at: 0), count < 10_000 { count += 1 }
        #expect(count > 0 && count < 10_000)
        let areAdmitted = others.map { conduct.admit($0, at: 0) }
        #expect(areAdmitted.allSatisfy { $0 })
    }

    @Test func `a field section is bounded by its lines, and by its bytes with 32 for each line`() {
        var count = FieldCount(mostLines: 3, mostBytes: 100)
        let lines = [count.admit(name: 1, value: 1), count.admit(name: 1, value: 1), count.admit(name: 1, value: 1)]
        #expect(lines == [true, true, false])
        var short = FieldCount(mostLines: 1, mostBytes: 1000)
        let two = [short.admit(name: 0, value: 0), short.admit(name: 0, value: 0)]
        #expect(two == [true, false])
    }
}
