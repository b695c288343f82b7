import Repeatable
import Testing

@testable import Bytes

/// What each event leaves to be done, without threads. What always holds is asserted by the machine itself.
@Suite struct OpenBodyTests {
    let budget = MemoryBudget(limit: 8 << 20)
    let block = [UInt8](repeating: 1, count: 200_000)

    @Test(arguments: Rounds.seeds(10))
    func `the counts are right and a paused writer is woken once, whatever the order of events`(_ seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        let expectedLength: Int? = Bool.random(using: &random) ? 1 << 20 : nil
        var body = OpenBody(
            expectedLength: expectedLength, window: Bool.random(using: &random) ? 1 << 17 : nil, writerWake: {})
        if Bool.random(using: &random) {
            let hasBegun = body.begin(budget)
            #expect(hasBegun)
        }
        // One stays to the end: a writer that nobody reads is woken by nobody.
        var cursors = [body.attach()].compactMap(\.self)
        var isPaused = false
        var written = 0
        func wake(_ effects: OpenBody.Effects) {
            guard effects.writerWake != nil else { return }
            #expect(isPaused)
            isPaused = false
        }
        for _ in 0..<200 {
            switch Int.random(in: 0..<10, using: &random) {
            case 0: if let cursor = body.attach() { cursors.append(cursor) }
            case 1 where cursors.count > 1:
                let cursor = cursors.remove(at: .random(in: 1..<cursors.count, using: &random))
                wake(body.detach(cursor, budget))
            case 2 where seed % 2 == 0: body.limit(toWindow: 1 << 17, budget)
            case 3...6 where !isPaused:
                let count = Int.random(in: 1...40_000, using: &random)
                let result = body.append(block.span.extracting(first: count), budget).0
                if result != .noMemory { written += count }
                isPaused = result == .acceptedAndFull
            default:
                guard let index = cursors.indices.randomElement(using: &random) else { continue }
                var seen = 0
                _ = body.read(at: cursors[index], limit: .max, bytes: .max) { seen += $0.count }
                #expect(cursors[index].offset + seen == written)
                wake(body.advance(&cursors[index], by: .random(in: 0...seen, using: &random), budget))
            }
            #expect(body.length == written && budget.used == body.retained)
        }
        for cursor in cursors.reversed() { wake(body.detach(cursor, budget)) }
        #expect(!isPaused, "left asleep, though nobody reads any more")
    }

    @Test func `the end notifies each follower without a pending notice`() {
        var body = OpenBody(expectedLength: nil, window: 1 << 17, writerWake: {})
        _ = body.follow(id: 1) {}
        let effects = body.append(block.span, budget).1
        #expect(effects.notices.count == 1)
        _ = body.follow(id: 2) {}
        let ending = body.end(.complete, budget)
        #expect(ending.notices.count == 1 && ending.writerWake == nil)
        let late = body.follow(id: 3) {}
        #expect(late.notices.count == 1)
        let taken = body.takePieces().reduce(0) { $0 + $1.count }
        #expect(taken == 200_000)
        let again = body.end(.failed, budget)
        #expect(again.notices.isEmpty && body.phase == .complete)
    }
}
