import Testing

@testable import Proxy

@Suite struct MemoryLineTests {
    private let line = MemoryLine()

    @Test func `an empty line lets everybody through`() {
        #expect(line.isEmpty && line.letsThrough(nil))
    }

    @Test func `who has no place waits while anybody stands in line`() {
        var place: MemoryLine.Place? = line.enter(.head, isFirst: false)
        #expect(!line.isEmpty && !line.letsThrough(nil) && line.letsThrough(place))
        place = nil
        #expect(line.isEmpty && line.letsThrough(nil))
    }

    @Test func `heads wait until no body stands in line`() {
        let head = line.enter(.head, isFirst: false)
        var body: MemoryLine.Place? = line.enter(.body, isFirst: false)
        #expect(line.letsThrough(body) && !line.letsThrough(head))
        body = nil
        #expect(line.letsThrough(head))
    }

    @Test(arguments: [MemoryLine.Need.body, .head])
    func `the first of a kind go first, in the order in which they came`(_ need: MemoryLine.Need) {
        var places = (0..<MemoryLine.front * 2).map { _ -> MemoryLine.Place? in line.enter(need, isFirst: false) }
        func through() -> [Int] { places.indices.filter { places[$0] != nil && line.letsThrough(places[$0]) } }
        #expect(through() == Array(0..<MemoryLine.front))
        // One that is served, and one that gives up further behind.
        places[3] = nil
        places[MemoryLine.front + 1] = nil
        #expect(through() == Array(0...MemoryLine.front).filter { $0 != 3 })
    }

    @Test func `who had its turn and found nothing is before all others`() {
        let places = (0..<MemoryLine.front).map { _ in line.enter(.body, isFirst: false) }
        let again = line.enter(.body, isFirst: true)
        #expect(line.letsThrough(again) && !line.letsThrough(places.last))
    }
}
