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

    @Test func `a reader that reads nothing while another waits must leave after the time bound`() throws {
        var (body, cursors) = try heldUp(2)
        body.advance(&cursors[1], by: 256 << 10)
        #expect(lasts(body, &cursors[0]) == 5)
        #expect(!body.isHeldUpTooLong(by: cursors[1], at: 6 * second, bound), "who waits")
    }

    @Test(
        arguments: [
            (rate: 4 << 10, lasts: 6), (32 << 10, 9), (60 << 10, 65), (64 << 10, nil), (100 << 10, nil),
        ] as [(rate: Int, lasts: Int?)])
    func `a reader below the lowest rate must leave, one at that rate or above may stay`(
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

    @Test func `no reader must leave while no other waits`() throws {
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

    @Test func `a body is not held up while its window has room, nor after its end`() throws {
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
    func `a body that is kept whole is never held up`(_ isComplete: Bool) throws {
        let body = GrowingBody(budget: budget)
        var slow = try #require(body.attach())
        var fast = try #require(body.attach())
        _ = body.append(pattern(0..<1_000_000))
        body.advance(&fast, by: 1_000_000)
        if isComplete { body.complete() }
        #expect(lasts(body, &slow) == nil)
    }

    @Test func `a reader further ahead must leave only after the slower readers have left`() throws {
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

    @Test func `alternate checks by two readers count the time once`() throws {
        var (body, cursors) = try heldUp(3)
        body.advance(&cursors[2], by: 256 << 10)
        var looks = 0
        while looks < 100, !body.isHeldUpTooLong(by: cursors[looks % 2], at: Int64(looks) * second / 2, bound) {
            looks += 1
        }
        #expect(looks == 8, "4 s after the first look, which counts for one")
        #expect(body.isHeldUpTooLong(by: cursors[1], at: 5 * second, bound))
    }

    @Test func `time without checks does not count, since no reader was blocked`() throws {
        var (body, cursors) = try heldUp(2)
        body.advance(&cursors[1], by: 256 << 10)
        for look in 1...4 { #expect(!body.isHeldUpTooLong(by: cursors[0], at: Int64(look) * 1000 * second, bound)) }
    }

    private let second: Int64 = 1_000_000_000
}
