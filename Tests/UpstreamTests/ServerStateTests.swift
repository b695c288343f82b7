import Testing

@testable import Upstream

/// What several loops see of one server, put together.
@Suite struct ServerStateTests {
    static let untouched = ServerState(inUse: 1, idle: 2)
    static let failing = ServerState(isUp: false, changedAt: 10, failingLoops: 1, nextTry: 110)
    static let back = ServerState(isUp: true, changedAt: 20)
    static let failingAgain = ServerState(isUp: false, changedAt: 30, failingLoops: 1, nextTry: 90)

    @Test(arguments: [
        ([untouched, untouched], ServerState(inUse: 2, idle: 4)),
        // A loop that never saw it fail has nothing to say.
        (
            [untouched, failing],
            ServerState(isUp: false, changedAt: 10, failingLoops: 1, nextTry: 110, inUse: 1, idle: 2)
        ),
        // It is back, which a loop without requests has not seen.
        ([failing, back], ServerState(isUp: true, changedAt: 20, failingLoops: 1, nextTry: 110)),
        ([failing, back, failingAgain], ServerState(isUp: false, changedAt: 30, failingLoops: 2, nextTry: 90)),
    ])
    func `the latest change counts, in any order`(seen: [ServerState], expected: ServerState) {
        for order in [seen, seen.reversed()] {
            var merged = ServerState()
            for state in order { merged.merge(state) }
            #expect(merged == expected)
        }
    }
}
