import Testing

@testable import Storage

@Suite struct GhostQueueTests {
    @Test func `a remembered key is found once`() {
        var ghost = GhostQueue()
        ghost.insert(1, capacity: 100)
        let (other, first, second) = (ghost.take(2), ghost.take(1), ghost.take(1))
        #expect(!other && first && !second)
    }

    @Test func `the queue stays within 64 bytes an entry`() {
        var ghost = GhostQueue()
        for number in 0..<200_000 as Range<UInt64> { ghost.insert(number &* 0x9e37_79b9_7f4a_7c15, capacity: 5000) }
        #expect(ghost.memory > 0)
        #expect(ghost.memory <= 5000 * 64)
    }
}
