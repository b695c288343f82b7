import Testing

@testable import Upstream

/// What several loops see of one server, put together.
@Suite struct ServerStateTests {
    static let untouched = ServerState(inUse: 1, idle: 2)
    static let failing = ServerState(isUp: false, changedAt: 10, failingLoops: 1, nextTry: 110)
    static let back = ServerState(isUp: true, changedAt: 20)
    static let failingAgain = ServerState(isUp: false, changedAt: 30, failingLoops: 1, nextTry: 90)
    /// Found failing at 60 for the last time, and no request has come for it since, for a cool-down.
    static let idle = ServerState(isUp: false, changedAt: 10, failingLoops: 1, nextTry: 110, outdatedBy: 60)

    /// Of a loop that never saw it fail.
    static func answered(at time: Int64) -> ServerState { ServerState(answeredAt: time) }

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
        // Which has had no request, while others use the server all the time.
        ([answered(at: 61), idle], ServerState(isUp: true, failingLoops: 1, nextTry: 110, answeredAt: 61)),
        // What was before tells nothing of now.
        (
            [answered(at: 60), idle],
            ServerState(isUp: false, changedAt: 10, failingLoops: 1, nextTry: 110, answeredAt: 60)
        ),
        // Its rest is not over.
        (
            [answered(at: 61), failing],
            ServerState(isUp: false, changedAt: 10, failingLoops: 1, nextTry: 110, answeredAt: 61)
        ),
        // Another loop found it failing later than anybody had an answer.
        (
            [answered(at: 61), idle, failingAgain],
            ServerState(isUp: false, changedAt: 30, failingLoops: 2, nextTry: 90, answeredAt: 61)
        ),
    ])
    func `the latest change counts, in any order`(seen: [ServerState], expected: ServerState) {
        for order in [seen, seen.reversed()] {
            #expect(ServerState(merging: order) == expected)
        }
    }
}
