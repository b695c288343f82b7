import Bytes
import Testing

/// Bodies that are made of ranges of others.
@Suite struct JoinedBodyTests {
    let budget = MemoryBudget(limit: 1 << 20)

    private func body(_ range: Range<Int>, fails: Bool = false) -> GrowingBody {
        let body = GrowingBody(budget: budget)
        _ = body.append(pattern(range))
        if fails { body.fail() } else { body.complete() }
        return body
    }

    @Test func `a joined body has the ranges in order and takes no memory of its own`() throws {
        let (first, second) = (body(0..<100_000), body(90_000..<200_000, fails: true))
        let used = budget.used
        let joined = GrowingBody(joining: [(first, 5..<100_000), (second, 10_000..<100_000)], budget: budget)
        #expect(budget.used == used)
        #expect(joined.completeLength == 189_995 && joined.phase == .complete)
        var cursor = try #require(joined.attach())
        var all: [UInt8] = []
        while all.count < joined.length { all += joined.take(&cursor).bytes }
        #expect(all == pattern(5..<190_000))
        #expect(joined.retained == first.retained + second.retained)
    }

    @Test func `a joined body keeps the memory of its source bodies`() {
        var joined: GrowingBody?
        do {
            let (first, second) = (body(0..<1_000), body(1_000..<2_000))
            let once = GrowingBody(joining: [(first, 0..<1_000), (second, 0..<1_000)], budget: budget)
            joined = GrowingBody(joining: [(once, 500..<1_500)], budget: budget)
        }
        #expect(joined?.completePieces.map { bytes($0) } == pattern(500..<1_500))
        #expect(budget.used > 0)
        joined = nil
        #expect(budget.used == 0)
    }

    @Test func `memory shared by several joined bodies counts once`() {
        let body = body(0..<1_000)
        let halves = [0..<500, 500..<1_000].map { GrowingBody(joining: [(body, $0)], budget: budget) }
        #expect(GrowingBody.retained(by: halves) == body.retained)
        #expect(
            GrowingBody(joining: [(halves[0], 0..<500), (halves[1], 0..<500)], budget: budget).retained == body.retained
        )
    }

    @Test func `a body joined from no ranges is empty and complete`() {
        let empty = GrowingBody(joining: [], budget: budget)
        #expect(empty.completeLength == 0 && empty.retained == 0)
    }
}
