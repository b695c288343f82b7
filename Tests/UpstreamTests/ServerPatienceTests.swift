import Testing

@testable import Upstream

/// How soon a server closes idle connections, and what may be sent on one.
@Suite struct ServerPatienceTests {
    private static let second: Int64 = 1_000_000_000
    private static let millisecond: Int64 = 1_000_000

    private static func trusted(_ patience: ServerPatience, statesTimeout: Bool = false) -> Int64 {
        patience.trusted(statesTimeout: statesTimeout)
    }

    @Test func `an unknown server's connection is trusted for a second, or for the stated time`() {
        let patience = ServerPatience()
        #expect(Self.trusted(patience) == Self.second)
        #expect(Self.trusted(patience, statesTimeout: true) == .max)
    }

    @Test func `half of the observed time is trusted, and at least the initial time until a close`() {
        var patience = ServerPatience()
        patience.noteOpen(after: Self.second / 2)
        #expect(Self.trusted(patience) == Self.second)
        patience.noteOpen(after: 30 * Self.second)
        patience.noteOpen(after: 2 * Self.second)
        #expect(Self.trusted(patience) == 15 * Self.second)
    }

    @Test(arguments: [false, true])
    func `half of the shortest time until a close is trusted, whatever the server states`(_ statesTimeout: Bool) {
        var patience = ServerPatience()
        for time in [2_900, 2_000, 2_400] as [Int64] { patience.noteClosed(after: time * Self.millisecond) }
        patience.noteOpen(after: 2_800 * Self.millisecond)
        #expect(Self.trusted(patience, statesTimeout: statesTimeout) == Self.second)
    }

    @Test
    func `a server that closes at intervals is trusted for half of its shortest time`() {
        var patience = ServerPatience()
        for _ in 1...20 {
            for time in [500, 1_400, 1_300, 700, 1_490, 900] as [Int64] {
                patience.noteClosed(after: time * Self.millisecond)
            }
            #expect(Self.trusted(patience) == 250 * Self.millisecond)
        }
    }

    @Test
    func `a server that ended a trusted connection gets no second request until enough others last`() {
        var patience = ServerPatience()
        patience.noteClosed(after: 20 * Self.millisecond, metRequest: true)
        #expect(Self.trusted(patience) == 10 * Self.millisecond)
        patience.noteClosed(after: 5 * Self.millisecond, metRequest: true)
        #expect(Self.trusted(patience) == 0)
        for _ in 1...100 {
            patience.noteClosed(after: 20 * Self.millisecond)
            patience.noteOpen(after: 15 * Self.millisecond)
        }
        #expect(Self.trusted(patience) == 0)
        for _ in 1..<ServerPatience.enoughToDoubt { patience.noteOpen(after: ServerPatience.atFirst) }
        #expect(Self.trusted(patience) == 0)
        patience.noteOpen(after: ServerPatience.atFirst)
        #expect(Self.trusted(patience) == Self.second)
    }

    @Test func `a restarted server is trusted again when enough connections have lasted longer`() {
        var patience = ServerPatience()
        patience.noteClosed(after: 5 * Self.second)
        // It goes down, and closes what is open, however old that is.
        for age in [3_000, 900, 40] as [Int64] { patience.noteClosed(after: age * Self.millisecond) }
        #expect(Self.trusted(patience) == 20 * Self.millisecond)
        // What is used again at once tells nothing.
        for _ in 1...1_000 { patience.noteOpen(after: 5 * Self.millisecond) }
        #expect(Self.trusted(patience) == 20 * Self.millisecond)
        for _ in 1..<ServerPatience.enoughToDoubt { patience.noteClosed(after: 5 * Self.second) }
        #expect(Self.trusted(patience) == 20 * Self.millisecond)
        patience.noteOpen(after: 100 * Self.millisecond)
        #expect(Self.trusted(patience) == 2_500 * Self.millisecond)
    }

    @Test func `a server that closes no more connections is trusted for as long as they last`() {
        var patience = ServerPatience()
        patience.noteClosed(after: 40 * Self.millisecond)
        for _ in 1...ServerPatience.enoughToDoubt { patience.noteOpen(after: 30 * Self.second) }
        #expect(Self.trusted(patience) == 15 * Self.second)
        patience.noteClosed(after: 2 * Self.second)
        #expect(Self.trusted(patience) == Self.second)
    }
}
