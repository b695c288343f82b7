import Bytes
import Testing

@Suite struct GrowingBodyWindowTests {
    let budget = MemoryBudget(limit: 4 << 20)

    @Test func `the writer pauses a window ahead of the slowest reader and is woken at half`() throws {
        let wakes = Count()
        let body = GrowingBody(budget: budget, window: 256 << 10) { wakes.up() }
        var fast = try #require(body.attach())
        var slow = try #require(body.attach())
        var written = 0
        var result = GrowingBody.AppendResult.accepted
        while result == .accepted {
            result = body.append(pattern(written..<written + 10_000))
            written += 10_000
            body.advance(&fast, by: 10_000)
        }
        #expect(result == .acceptedAndFull)
        #expect(written >= 256 << 10 && written < 300_000)
        #expect(wakes.value == 0)
        while wakes.value == 0, slow.offset < written { body.advance(&slow, by: 1000) }
        #expect(wakes.value == 1)
        #expect(written - slow.offset > 64 << 10, "woken before the slow reader had read all")
        body.detach(fast)
        body.detach(slow)
    }

    @Test(arguments: [1, 1000, 40_000, 65_536, 131_072])
    func `a paused writer is woken once the readers have read everything`(_ window: Int) throws {
        let wakes = Count()
        let body = GrowingBody(budget: budget, window: window) { wakes.up() }
        var cursor = try #require(body.attach())
        var offset = 0
        for step in 1...200 {
            let size = step * 997 % 50_000 + 1
            let before = wakes.value
            let result = body.append(pattern(offset..<offset + size))
            #expect(result != .noMemory)
            let seen = body.take(&cursor, slicesAtOnce: 100)
            #expect(seen.bytes == pattern(offset..<offset + size))
            if result == .acceptedAndFull { #expect(wakes.value == before + 1) }
            offset += size
            #expect(body.retained <= 64 << 10 + 64 << 10)
        }
    }

    @Test func `bytes stay in order after every piece has been read and freed`() throws {
        let body = GrowingBody(budget: budget, window: 1 << 20)
        var cursor = try #require(body.attach())
        _ = body.append(pattern(0..<16_384))
        #expect(body.take(&cursor).bytes == pattern(0..<16_384))
        #expect(body.retained == 0)
        _ = body.append(pattern(16_384..<40_000))
        #expect(body.take(&cursor).bytes == pattern(16_384..<40_000))
        body.complete()
        let end = body.take(&cursor)
        #expect(end.phase == .complete && end.reachesEnd && end.bytes.isEmpty)
    }

    @Test func `a body whose start is freed takes no new reader and is never complete`() throws {
        let body = GrowingBody(budget: budget)
        var cursor = try #require(body.attach())
        _ = body.append(pattern(0..<100_000))
        body.advance(&cursor, by: 100_000)
        #expect(body.keepsStart)
        body.limit(toWindow: 1 << 20)
        #expect(!body.keepsStart)
        #expect(body.attach() == nil)
        body.complete()
        #expect(body.completePieces == nil)
        #expect(body.attach() == nil)
    }

    @Test func `a body limited late that still has its start is complete at its end`() throws {
        let body = GrowingBody(budget: budget)
        var cursor = try #require(body.attach())
        _ = body.append(pattern(0..<80_000))
        body.limit(toWindow: 1 << 20)
        body.complete()
        body.advance(&cursor, by: 80_000)
        body.detach(cursor)
        #expect(body.keepsStart)
        #expect(body.retained == 80_000)
        #expect(budget.used == 80_000)
        var late = try #require(body.attach())
        #expect(body.take(&late).bytes == pattern(0..<80_000))
    }

    /// Else they would get nothing until the slowest has read nearly all that was there when it was limited.
    @Test func `a body limited with much unread grows one byte for every two that the slowest reader reads`()
        throws
    {
        let wakes = Count()
        let body = GrowingBody(budget: budget) { wakes.up() }
        var fast = try #require(body.attach())
        var slow = try #require(body.attach())
        let backlog = 2 << 20
        let window = 256 << 10
        var written = 0
        while written < backlog {
            _ = body.append(pattern(written..<written + 16_384))
            written += 16_384
        }
        body.limit(toWindow: window)
        body.advance(&fast, by: backlog)
        #expect(body.append(pattern(written..<written + 1000)) == .acceptedAndFull)
        written += 1000
        body.advance(&fast, by: 1000)
        let most = body.retained
        while slow.offset < written - window {
            let before = wakes.value
            body.advance(&slow, by: min(10_000, written - slow.offset))
            if wakes.value > before {
                while body.append(pattern(written..<written + 8192)) == .accepted { written += 8192 }
                written += 8192
                body.advance(&fast, by: written - fast.offset)
            }
            let given = written - backlog
            #expect(given <= slow.offset / 2 + window && given >= slow.offset / 2 - window)
            #expect(body.retained <= max(window, most - slow.offset / 2) + 192 << 10, "it shrinks")
        }
        #expect(wakes.value > 5 && written - backlog >= backlog * 3 / 4)
        body.detach(fast)
        body.detach(slow)
    }

    @Test func `the writer is woken when the slowest reader leaves`() throws {
        let wakes = Count()
        let body = GrowingBody(budget: budget, window: 1) { wakes.up() }
        var fast = try #require(body.attach())
        let slow = try #require(body.attach())
        #expect(body.append(pattern(0..<200_000)) == .acceptedAndFull)
        body.advance(&fast, by: 200_000)
        #expect(wakes.value == 0)
        body.detach(slow)
        #expect(wakes.value == 1)
    }
}
