import Bytes
import Dispatch
import Glibc
import Repeatable
import Synchronization
import Testing

/// Writer and readers on threads of their own, in random steps; with the thread sanitizer too. `Guarded`, not `Mutex`,
/// whose order the sanitizer does not see. One test at a time: blocked readers would use up the pool of threads.
@Suite(.serialized) struct GrowingBodyConcurrencyTests {
    struct Plan: Sendable {
        let seed: UInt64
        let length: Int
        let window: Int?
        /// From this offset on the body is limited to a window, late.
        let limitAt: Int?
        let announced: Bool
        let failsAt: Int?

        init(seed: UInt64) {
            var random = SeededGenerator(seed: seed)
            self.seed = seed
            length = Int.random(in: 0...400_000, using: &random)
            window = Int.random(in: 0..<3, using: &random) == 0 ? Int.random(in: 1...300_000, using: &random) : nil
            limitAt = Int.random(in: 0..<3, using: &random) == 0 ? Int.random(in: 0...length, using: &random) : nil
            announced = Bool.random(using: &random)
            failsAt = Int.random(in: 0..<4, using: &random) == 0 ? Int.random(in: 0...length, using: &random) : nil
        }

        var endsAt: Int { failsAt ?? length }
    }

    /// How one reader ended.
    enum Ending: Equatable { case complete(Int), failed(Int), left, tooLate, wrongByte(at: Int) }

    @Test(arguments: Rounds.seeds(24))
    func `every reader reads all bytes in order to the true end, or leaves`(_ seed: UInt64) {
        let plan = Plan(seed: seed)
        let budget = MemoryBudget(limit: 64 << 20)
        let endings = Guarded<[Ending]>([])
        do {
            let room = DispatchSemaphore(value: 0)
            let body = GrowingBody(
                budget: budget, expectedLength: plan.announced ? plan.length : nil, window: plan.window
            ) { room.signal() }
            let early = (0..<2).map { _ in body.attach() }
            let threads = DispatchGroup()
            for reader in 0..<5 {
                DispatchQueue.global().async(group: threads) {
                    var random = SeededGenerator(seed: plan.seed << 8 + UInt64(reader))
                    // The first stays to the end, so that the writer is never the only one left.
                    let patience = reader == 0 ? Int.max : Int.random(in: 0...200, using: &random)
                    for _ in 0..<Int.random(in: 0...3000, using: &random) where reader > 1 { _ = body.length }
                    let cursor = reader < 2 ? early[reader] : body.attach()
                    let ending = read(body, cursor, id: reader, patience: patience, &random)
                    endings.withLock { $0.append(ending) }
                }
            }
            DispatchQueue.global().async(group: threads) { write(plan, body, room) }
            threads.wait()
            if let pieces = body.completePieces { #expect(bytes(pieces) == pattern(0..<plan.length)) }
            #expect(budget.used == body.retained)
        }
        #expect(budget.used == 0)
        let expected: Ending = plan.failsAt.map { .failed($0) } ?? .complete(plan.length)
        for ending in endings.withLock({ $0 }) {
            #expect(ending == expected || ending == .left || ending == .tooLate, "seed \(seed)")
        }
        let reached = endings.withLock { $0.contains(expected) }
        #expect(reached)
    }

    @Test(arguments: Rounds.seeds(200))
    func `a body that completes while it is read loses no byte`(_ seed: UInt64) throws {
        let body = GrowingBody(budget: MemoryBudget(limit: 1 << 20))
        let cursors = try (0..<3).map { _ in try #require(body.attach()) }
        let threads = DispatchGroup()
        let endings = Guarded<[Ending]>([])
        for (id, cursor) in cursors.enumerated() {
            DispatchQueue.global().async(group: threads) {
                var random = SeededGenerator(seed: seed * 8 + UInt64(id))
                // No waiting for notices: reading races with completing as often as possible.
                let ending = read(body, cursor, id: nil, patience: .max, &random)
                endings.withLock { $0.append(ending) }
            }
        }
        for part in 0..<4 { _ = body.append(pattern(part * 5000..<(part + 1) * 5000)) }
        body.complete()
        threads.wait()
        let all = endings.withLock { $0 }
        #expect(all == [.complete(20_000), .complete(20_000), .complete(20_000)])
    }
}

/// The pattern as long as any body here: compared in one go, since one by one the sanitizer takes minutes for so many
/// bytes.
private let whole = pattern(0..<400_001)

private func isPattern(_ slice: ByteSlice, from offset: Int) -> Bool {
    let expected = whole.span.extracting(offset..<offset + slice.count)
    return slice.span.isEqual(to: expected)
}

private func write(_ plan: GrowingBodyConcurrencyTests.Plan, _ body: GrowingBody, _ room: DispatchSemaphore) {
    var random = SeededGenerator(seed: plan.seed &+ 1)
    var offset = 0
    var isLimited = false
    while offset < plan.endsAt {
        let size = min(
            plan.endsAt - offset, Int.random(in: 1...(Bool.random(using: &random) ? 500 : 70_000), using: &random))
        let result = body.append(whole.span.extracting(offset..<offset + size))
        offset += size
        if let limitAt = plan.limitAt, offset >= limitAt, !isLimited {
            body.limit(toWindow: 130_000)
            isLimited = true
        }
        // A wake lost or never sent hangs the test here.
        if result == .acceptedAndFull { room.wait() }
    }
    if plan.failsAt == nil { body.complete() } else { body.fail() }
}

/// Reads until the end, or `patience` looks long. Without an `id` it spins instead of following.
private func read(
    _ body: GrowingBody, _ start: GrowingBody.Cursor?, id: Int?, patience: Int, _ random: inout SeededGenerator
) -> GrowingBodyConcurrencyTests.Ending {
    guard var cursor = start else { return .tooLate }
    let news = DispatchSemaphore(value: 0)
    if let id { body.follow(id: id) { news.signal() } }
    var looks = 0
    while looks < patience {
        looks += 1
        if let id { body.rearm(id: id) }
        var slices: [ByteSlice] = []
        let (phase, reachesEnd) = body.read(
            at: cursor, into: &slices, limit: Int.random(in: 1...4, using: &random),
            bytes: Bool.random(using: &random) ? .max : Int.random(in: 1...50_000, using: &random))
        var seen = 0
        for slice in slices {
            guard isPattern(slice, from: cursor.offset + seen) else { return .wrongByte(at: cursor.offset + seen) }
            seen += slice.count
        }
        let taken = Bool.random(using: &random) ? seen : Int.random(in: 0...seen, using: &random)
        body.advance(&cursor, by: taken)
        if taken < seen || !reachesEnd { continue }
        let ending: GrowingBodyConcurrencyTests.Ending
        switch phase {
        case .complete: ending = .complete(cursor.offset)
        case .failed: ending = .failed(cursor.offset)
        case .open:
            // Spinning on an open end only keeps the writer from its core.
            if id != nil { news.wait() } else { sched_yield() }
            continue
        }
        body.detach(cursor)
        return ending
    }
    body.detach(cursor)
    return .left
}
