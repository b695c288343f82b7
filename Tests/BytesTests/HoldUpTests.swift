import Bytes
import Testing

/// Who must make way when a body that is not kept whole is held up.
@Suite struct HoldUpTests {
    private let budget = MemoryBudget(limit: 4 << 20)
    private let bound = HoldUpBound(bytesPerSecond: 64 << 10)

    /// A body whose window is full.
    private func heldUp(_ readers: Int) throws -> (GrowingBody, [GrowingBody.Cursor]) {
        let body = GrowingBody(budget: budget, window: 256 << 10)
        let cursors = try (0..<readers).map { _ in try #require(body.attach()) }
        #expect(body.append(pattern(0..<256 << 10)) == .acceptedAndFull)
        return (body, cursors)
    }

    /// After how many seconds it is told to make way, when it looks every second and reads so much in between; `nil`:
    /// not within 100.
    private func lasts(
        _ body: GrowingBody, _ cursor: inout GrowingBody.Cursor, reading bytes: Int = 0, from start: Int64 = 0,
        meanwhile: (Int) -> Void = { _ in }
    ) -> Int? {
        for look in 1...100 {
            body.advance(&cursor, by: bytes)
            meanwhile(cursor.offset)
            if body.isHeldUpTooLong(by: cursor, at: (start + Int64(look)) * second, bound) { return look }
        }
        return nil
    }

    @Test func `who reads nothing while another waits makes way after the time for that`() throws {
        var (body, cursors) = try heldUp(2)
        body.advance(&cursors[1], by: 256 << 10)
        #expect(lasts(body, &cursors[0]) == 5)
        #expect(!body.isHeldUpTooLong(by: cursors[1], at: 6 * second, bound), "who waits")
    }

    @Test(
        arguments: [
            (rate: 4 << 10, lasts: 6), (32 << 10, 9), (60 << 10, 65), (64 << 10, nil), (100 << 10, nil),
        ] as [(rate: Int, lasts: Int?)])
    func `who reads below the lowest rate makes way in the end, and any at that rate or above does not`(
        _ reader: (rate: Int, lasts: Int?)
    ) throws {
        let (body, cursors) = try heldUp(2)
        var (slow, fast) = (cursors[0], cursors[1])
        var written = 256 << 10
        body.advance(&fast, by: written)
        let lasted = lasts(body, &slow, reading: reader.rate) { offset in
            // The origin and the other reader are as fast as they may be.
            while written - offset < 256 << 10 {
                _ = body.append([UInt8](repeating: 0, count: 64 << 10))
                written += 64 << 10
                body.advance(&fast, by: 64 << 10)
            }
        }
        #expect(lasted == reader.lasts)
    }

    @Test func `nobody makes way while nobody waits`() throws {
        var (body, cursors) = try heldUp(3)
        #expect(lasts(body, &cursors[0]) == nil, "all have just begun")
        body.advance(&cursors[1], by: (256 << 10) - 1)
        #expect(lasts(body, &cursors[0], from: 100) == nil, "the other has bytes to read")
        body.advance(&cursors[1], by: 1)
        body.detach(cursors[1])
        #expect(lasts(body, &cursors[0], from: 200) == nil, "who waited has left")
        body.advance(&cursors[2], by: 256 << 10)
        #expect(lasts(body, &cursors[0], from: 300) != nil)
    }

    @Test func `nor is the writer held up while the window has room, nor once it is done`() throws {
        let body = GrowingBody(budget: budget, window: 256 << 10)
        var slow = try #require(body.attach())
        var fast = try #require(body.attach())
        _ = body.append(pattern(0..<100_000))
        body.advance(&fast, by: 100_000)
        #expect(lasts(body, &slow) == nil)
        #expect(body.append(pattern(100_000..<300_000)) == .acceptedAndFull)
        body.advance(&fast, by: 200_000)
        body.fail()
        #expect(lasts(body, &slow, from: 100) == nil)
    }

    @Test(arguments: [false, true])
    func `nobody makes way for others in a body that is kept whole`(_ isComplete: Bool) throws {
        let body = GrowingBody(budget: budget)
        var slow = try #require(body.attach())
        var fast = try #require(body.attach())
        _ = body.append(pattern(0..<1_000_000))
        body.advance(&fast, by: 1_000_000)
        if isComplete { body.complete() }
        #expect(lasts(body, &slow) == nil)
    }

    @Test func `who stands further on makes way only once the others before it have`() throws {
        var (body, cursors) = try heldUp(3)
        body.advance(&cursors[2], by: 256 << 10)
        body.advance(&cursors[1], by: 100_000)
        #expect(lasts(body, &cursors[0]) == 5)
        #expect(!body.isHeldUpTooLong(by: cursors[1], at: 5 * second, bound))
        body.detach(cursors[0])
        // It has the time for the bytes that it is further on, not all of it again: any number of readers, one after
        // the other, hold up no more than one.
        #expect(lasts(body, &cursors[1], from: 5) == 2)
    }

    @Test func `two who look in turn are given the time once`() throws {
        var (body, cursors) = try heldUp(3)
        body.advance(&cursors[2], by: 256 << 10)
        var looks = 0
        while looks < 100, !body.isHeldUpTooLong(by: cursors[looks % 2], at: Int64(looks) * second / 2, bound) {
            looks += 1
        }
        #expect(looks == 8, "4 s after the first look, which counts for one")
        #expect(body.isHeldUpTooLong(by: cursors[1], at: 5 * second, bound))
    }

    @Test func `time in which nobody looks, since nobody was blocked, does not count`() throws {
        var (body, cursors) = try heldUp(2)
        body.advance(&cursors[1], by: 256 << 10)
        for look in 1...4 { #expect(!body.isHeldUpTooLong(by: cursors[0], at: Int64(look) * 1000 * second, bound)) }
    }

    private let second: Int64 = 1_000_000_000
}
