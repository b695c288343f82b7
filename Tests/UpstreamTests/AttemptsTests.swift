import Bytes
import HTTPSemantics
import Testing

@testable import Upstream

/// RFC 9110 §9.2, RFC 9112 §9.3.1: which requests go out again, and where to.
struct AttemptsTests {
    struct Row: CustomTestStringConvertible {
        let method: HTTPSemantics.Method
        var content = UpstreamRequest.Content.none
        var keepsContent = false
        var isUpgrade = false
        var servers = 2
        var retries = true
        /// The endings of the attempts, and what follows each.
        let story: [(Attempts.Ending, Attempts.Next)]

        var testDescription: String {
            "\(method) \(content)\(keepsContent ? " kept" : "")\(isUpgrade ? " upgrade" : ""), \(servers) servers\(retries ? "" : ", no retries"): \(story)"
        }
    }

    private static let unsent = Attempts.Ending.idleWasDead(isUnsent: true)
    private static let dead = Attempts.Ending.idleWasDead(isUnsent: false)

    static let rows = [
        // No connection: nothing was sent, so each server is asked, whatever the method and the setting.
        Row(
            method: .get, servers: 3,
            story: [(.notConnected, .nextServer), (.notConnected, .nextServer), (.notConnected, .giveUp)]),
        Row(
            method: .post, content: .length, retries: false,
            story: [(.notConnected, .nextServer), (.notConnected, .giveUp)]),
        Row(method: .get, servers: 1, story: [(.notConnected, .giveUp)]),
        // The queue of one is full: nobody waits there as long as another may have room.
        Row(method: .post, servers: 1, story: [(.queueIsFull, .waitForRoom), (.notConnected, .giveUp)]),
        Row(method: .get, story: [(.queueIsFull, .nextServer), (.failed, .giveUp)]),
        Row(
            method: .get, servers: 3,
            story: [(.queueIsFull, .nextServer), (.queueIsFull, .nextServer), (.notConnected, .waitForRoom)]),
        // An idle connection was dead and took nothing.
        Row(method: .get, servers: 1, story: [(unsent, .again), (.failed, .giveUp)]),
        Row(method: .post, content: .chunked, servers: 1, story: [(unsent, .again)]),
        Row(method: .get, isUpgrade: true, story: [(unsent, .again)]),
        Row(method: .get, retries: false, story: [(unsent, .giveUp)]),
        // An idle connection was dead, and may have taken the request.
        Row(method: .get, servers: 1, story: [(dead, .again)]),
        Row(method: .delete, servers: 1, story: [(dead, .again)]),
        Row(method: .post, story: [(dead, .giveUp)]),
        Row(method: .put, content: .length, story: [(dead, .giveUp)]),
        Row(method: .otherSafe, content: .chunked, keepsContent: true, story: [(dead, .again)]),
        Row(method: .otherSafe, content: .length, story: [(dead, .giveUp)]),
        Row(method: .otherSafe, servers: 1, story: [(dead, .again)]),
        Row(method: .otherIdempotent, servers: 1, story: [(dead, .again)]),
        Row(method: .other, servers: 1, story: [(dead, .giveUp)]),
        Row(method: .get, isUpgrade: true, story: [(dead, .giveUp)]),
        Row(method: .get, retries: false, story: [(dead, .giveUp)]),
        // A new connection was closed.
        Row(method: .get, story: [(.closed, .nextServer)]),
        Row(method: .get, servers: 1, story: [(.closed, .giveUp)]),
        Row(method: .delete, story: [(.closed, .giveUp)]),
        Row(method: .otherIdempotent, story: [(.closed, .giveUp)]),
        Row(method: .otherSafe, content: .length, keepsContent: true, story: [(.closed, .nextServer)]),
        Row(method: .get, content: .length, story: [(.closed, .giveUp)]),
        Row(method: .get, retries: false, story: [(.closed, .giveUp)]),
        // A response was late, wrong or cut short.
        Row(method: .get, story: [(.failed, .giveUp)]),
        // Sent twice at most; what was not sent does not count, and the new connection may be to any server.
        Row(method: .get, servers: 3, story: [(.closed, .nextServer), (.closed, .giveUp)]),
        Row(method: .get, servers: 3, story: [(dead, .again), (.closed, .giveUp)]),
        Row(method: .get, servers: 3, story: [(unsent, .again), (.closed, .nextServer), (.closed, .giveUp)]),
        Row(method: .get, story: [(unsent, .again), (.notConnected, .nextServer), (.notConnected, .giveUp)]),
        Row(method: .get, story: [(dead, .again), (.notConnected, .nextServer), (.notConnected, .giveUp)]),
        Row(method: .get, story: [(.notConnected, .nextServer), (.closed, .giveUp)]),
    ]

    @Test(arguments: rows)
    func `a request is sent again only if that does no harm`(row: Row) {
        var attempts = Self.attempts(row)
        for (server, (ending, expected)) in row.story.enumerated() {
            let next = attempts.next(after: ending, at: server)
            #expect(next == expected, "after \(ending)")
        }
    }

    @Test func `the servers that were tried are known, so that each is tried once`() {
        var attempts = Self.attempts(Row(method: .get, servers: 4, story: []))
        var known: [[Int]] = []
        for (server, ending) in [(2, Attempts.Ending.notConnected), (3, Self.unsent), (0, .notConnected), (3, .closed)]
        {
            let next = attempts.next(after: ending, at: server)
            #expect(next != .giveUp)
            known.append(attempts.triedServers)
        }
        #expect(known == [[2], [2], [2, 0], [2, 0, 3]])
    }

    @Test func `the first server whose queue was full is waited for, once`() {
        var attempts = Self.attempts(Row(method: .get, servers: 3, story: []))
        let next = [
            attempts.next(after: .notConnected, at: 1), attempts.next(after: .queueIsFull, at: 2),
            attempts.next(after: .queueIsFull, at: 0),
        ]
        #expect(next == [.nextServer, .nextServer, .waitForRoom] && attempts.triedServers == [1, 0])
        // While it was waited for an idle connection there was free, but dead: not to those that were asked.
        let again = attempts.next(after: Self.unsent, at: 2)
        #expect(again == .again && attempts.triedServers == [1, 0])
        let end = attempts.next(after: .notConnected, at: 2)
        #expect(end == .giveUp)
    }

    @Test(arguments: [(Attempts.Ending.notConnected, true), (unsent, false), (dead, false), (.closed, false)])
    func `after a closed connection only a new one is used`(ending: Attempts.Ending, mayUseIdle: Bool) {
        var attempts = Self.attempts(Row(method: .get, story: []))
        #expect(attempts.mayUseIdle)
        let next = attempts.next(after: ending, at: 0)
        #expect(next != .giveUp)
        #expect(attempts.mayUseIdle == mayUseIdle)
    }

    private static func attempts(_ row: Row) -> Attempts {
        var settings = UpstreamSettings(
            name: "origin", servers: (0..<row.servers).map { UpstreamServer(host: "192.0.2.\($0)") })
        settings.retriesDeadConnection = row.retries
        return Attempts(
            UpstreamRequest(method: row.method, head: .empty, content: row.content, asksForUpgrade: row.isUpgrade),
            settings, keepsContent: row.keepsContent)
    }
}
