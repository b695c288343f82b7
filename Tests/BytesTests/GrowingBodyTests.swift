import Bytes
import Repeatable
import Testing

@Suite struct GrowingBodyTests {
    let budget = MemoryBudget(limit: 1 << 20)

    @Test func `a reader gets every byte in order and then the end`() throws {
        let body = GrowingBody(budget: budget)
        var cursor = try #require(body.attach())
        #expect(body.append(pattern(0..<100)) == .accepted)
        let first = body.take(&cursor)
        #expect(first.bytes == pattern(0..<100))
        #expect(first.phase == .open)
        #expect(body.append(pattern(100..<70_000)) == .accepted)
        body.complete()
        let rest = body.take(&cursor)
        #expect(rest.bytes == pattern(100..<70_000))
        #expect(rest.phase == .complete && rest.reachesEnd)
        body.detach(cursor)
    }

    @Test func `a late reader gets the bytes that have arrived`() throws {
        let body = GrowingBody(budget: budget)
        _ = body.append(pattern(0..<50_000))
        var cursor = try #require(body.attach())
        #expect(body.take(&cursor).bytes == pattern(0..<50_000))
        body.complete()
        var afterwards = try #require(body.attach())
        #expect(body.take(&afterwards).bytes == pattern(0..<50_000))
    }

    @Test func `a body that was cut off never ends cleanly`() throws {
        let body = GrowingBody(budget: budget)
        var cursor = try #require(body.attach())
        _ = body.append(pattern(0..<10))
        body.fail()
        let seen = body.take(&cursor)
        #expect(seen.bytes == pattern(0..<10))
        #expect(seen.phase == .failed)
        body.complete()
        #expect(body.phase == .failed)
        #expect(body.completePieces == nil && body.completeLength == nil)
        #expect(body.append(pattern(0..<10)) == .accepted)
        #expect(body.length == 10)
    }

    @Test func `a read of a few slices reports whether more bytes have arrived`() throws {
        let body = GrowingBody(budget: budget)
        _ = body.append(pattern(0..<200_000))
        var open = try #require(body.attach())
        #expect(body.take(&open, slicesAtOnce: 1).reachesEnd == false)
        body.complete()
        var cursor = try #require(body.attach())
        var all: [UInt8] = []
        while true {
            let seen = body.take(&cursor, slicesAtOnce: 1)
            all += seen.bytes
            if seen.reachesEnd { break }
        }
        #expect(all == pattern(0..<200_000))
    }

    @Test(arguments: [0, 50_000, 400_000])
    func `a read passes no slice that it does not need for its bytes`(completeFrom: Int) throws {
        let body = GrowingBody(budget: budget)
        var cursor = try #require(body.attach())
        for start in stride(from: 0, to: 400_000, by: 5000) { _ = body.append(pattern(start..<start + 5000)) }
        var seen: [UInt8] = []
        while true {
            if seen.count >= completeFrom { body.complete() }
            var slices: [ByteSlice] = []
            let most = 1 + seen.count % 30_000
            let (_, reachesEnd) = body.read(at: cursor, into: &slices, limit: 100, bytes: most)
            let found = bytes(slices)
            #expect(bytes(slices.dropLast()).count < most)
            #expect(found.count >= min(most, 400_000 - seen.count))
            #expect(reachesEnd == (seen.count + found.count == 400_000))
            guard !found.isEmpty else { break }
            seen += found.prefix(most)
            body.advance(&cursor, by: min(most, found.count))
        }
        #expect(seen == pattern(0..<400_000))
        body.detach(cursor)
    }

    @Test func `a reader keeps its position when the body completes`() throws {
        let body = GrowingBody(budget: budget)
        _ = body.append(pattern(0..<100_000))
        var cursor = try #require(body.attach())
        body.advance(&cursor, by: 30_000)
        body.complete()
        #expect(body.take(&cursor).bytes == pattern(30_000..<100_000))
        body.advance(&cursor, by: 0)
        body.detach(cursor)
    }

    @Test func `an empty body is complete and has no pieces`() throws {
        let body = GrowingBody(budget: budget)
        _ = body.append([])
        body.complete(trailers: ByteSlice("x: y\r\n"))
        #expect(body.completePieces?.count == 0)
        #expect(body.completeLength == 0)
        #expect(body.trailers.map { String($0) } == "x: y\r\n")
        var cursor = try #require(body.attach())
        let seen = body.take(&cursor)
        #expect(seen.phase == .complete && seen.reachesEnd && seen.bytes.isEmpty)
    }

    @Test(arguments: [0, 1, 1023, 16_384, 16_385, 65_536, 65_537, 200_000])
    func `a complete body reserves exactly its bytes, with or without an announced length`(_ length: Int) {
        do {
            let announced = GrowingBody(budget: budget, expectedLength: length)
            let unknown = GrowingBody(budget: budget)
            let begun = [nil, length].map { GrowingBody(budget: budget, expectedLength: $0) }
            for body in begun { #expect(body.begin() && body.begin(), "once is enough") }
            for body in [announced, unknown] + begun {
                for start in stride(from: 0, to: length, by: 1000) {
                    _ = body.append(pattern(start..<min(length, start + 1000)))
                }
                body.complete()
                #expect(body.retained == length)
                #expect(body.completePieces.map { bytes($0) } == pattern(0..<length))
            }
            #expect(budget.used == 4 * length)
        }
        #expect(budget.used == 0)
    }

    @Test func `a body may grow past its announced length`() {
        let body = GrowingBody(budget: budget, expectedLength: 10)
        _ = body.append(pattern(0..<8))
        _ = body.append(pattern(8..<300))
        body.complete()
        #expect(body.completePieces.map { bytes($0) } == pattern(0..<300))
    }

    @Test(arguments: [nil, 20_000])
    func `the first piece of a body is reserved when the body begins`(_ length: Int?) {
        let firstPiece = GrowingBody.firstPiece(expecting: length)
        let small = MemoryBudget(limit: firstPiece)
        do {
            let body = GrowingBody(budget: small, expectedLength: length)
            #expect(small.reserve(1) && !body.begin() && body.retained == 0)
            small.release(1)
            #expect(body.begin() && small.used == firstPiece && body.retained == firstPiece)
            #expect(body.append(pattern(0..<1000)) == .accepted)
            #expect(body.append(pattern(1000..<firstPiece)) == .accepted)
            #expect(body.append(pattern(0..<1)) == .noMemory)
            body.fail()
        }
        #expect(small.used == 0)
    }

    /// Who makes room for it and tries again must not try for ever.
    @Test(arguments: Rounds.seeds(20))
    func `an append takes at most the memory that was announced for it`(_ seed: UInt64) throws {
        var random = SeededGenerator(seed: seed)
        let small = MemoryBudget(limit: 4 << 20)
        let body = GrowingBody(budget: small, expectedLength: Bool.random(using: &random) ? 700_000 : nil)
        for _ in 0..<10 {
            let count = Int.random(in: 1...140_000, using: &random)
            let rest = small.limit - small.used - GrowingBody.mostTaken(by: count)
            #expect(small.reserve(rest) && body.append(pattern(0..<count)) == .accepted)
            small.release(rest)
        }
    }

    @Test func `nor does more than was announced`() {
        let count = 131_072
        let small = MemoryBudget(limit: GrowingBody.mostTaken(by: count))
        let body = GrowingBody(budget: small, expectedLength: 100)
        #expect(body.append(pattern(0..<count)) == .accepted)
    }

    /// One piece is free, and what came needs two: it would wait for ever, though memory is free.
    @Test func `an append that does not fit fills the free pieces`() throws {
        let small = MemoryBudget(limit: 200_000)
        let body = GrowingBody(budget: small, expectedLength: 1_000_000, window: 1 << 17)
        var cursor = try #require(body.attach())
        #expect(body.append(pattern(0..<65_536)) == .accepted)
        #expect(small.reserve(200_000 - 65_536 - 70_000))
        body.advance(&cursor, by: 65_536)
        #expect(body.append(pattern(65_536..<300_000)) == .noMemory)
        let rest = pattern(65_536..<300_000)
        let (taken, isFull) = body.appendPartially(rest.span)
        #expect(taken == 131_072 && isFull && body.length == 196_608)
        #expect(body.appendPartially(rest.span.extracting(131_072..<rest.count)) == (0, false))
        body.detach(cursor)
    }

    @Test func `an append without memory takes no bytes and can be repeated`() {
        let small = MemoryBudget(limit: 100_000)
        let body = GrowingBody(budget: small)
        #expect(body.append(pattern(0..<16_384)) == .accepted)
        #expect(small.reserve(80_000))
        let used = small.used
        #expect(body.append(pattern(16_384..<50_000)) == .noMemory)
        #expect(small.used == used && body.length == 16_384)
        small.release(80_000)
        #expect(body.append(pattern(16_384..<50_000)) == .accepted)
        body.complete()
        #expect(body.completePieces.map { bytes($0) } == pattern(0..<50_000))
    }

    @Test func `all memory is returned when the last reference is dropped`() {
        do {
            let body = GrowingBody(budget: budget)
            _ = body.append(pattern(0..<123_456))
            #expect(budget.used > 0)
        }
        #expect(budget.used == 0)
    }
}

@Suite struct GrowingBodyFollowerTests {
    let body = GrowingBody(budget: MemoryBudget(limit: 1 << 20))

    @Test func `many appends cause one notice until the follower reads`() {
        let notices = Count()
        body.follow(id: 1) { notices.up() }
        for _ in 0..<5 { _ = body.append([1]) }
        #expect(notices.value == 1)
        body.rearm(id: 1)
        _ = body.append([1])
        #expect(notices.value == 2)
    }

    @Test func `the end notifies every follower, also a later one`() {
        let early = Count()
        let late = Count()
        body.follow(id: 1) { early.up() }
        body.complete()
        #expect(early.value == 1)
        body.follow(id: 2) { late.up() }
        #expect(late.value == 1)
    }

    @Test func `a body that has ended keeps no reference to its fetch`() {
        final class Fetch: Sendable {}
        weak var held: Fetch?
        let stored: GrowingBody
        do {
            let fetch = Fetch()
            held = fetch
            stored = GrowingBody(budget: MemoryBudget(limit: 1 << 20)) { _ = fetch }
            stored.follow(id: 1) { _ = fetch }
        }
        #expect(held != nil)
        stored.complete()
        #expect(held == nil)
    }
}
