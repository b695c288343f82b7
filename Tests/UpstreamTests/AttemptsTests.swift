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
        /// Places of the origin, all in use.
        var places = 2
        var retriesDeadConnection = true
        var attempts = 1
        var causes: RetrySettings.Causes = [.error, .timeout]
        var hasBudget = true
        /// The endings of the attempts, and what follows each.
        let story: [(Attempts.Ending, Attempts.Next)]

        var testDescription: String {
            "\(method) \(content)\(keepsContent ? " kept" : "")\(isUpgrade ? " upgrade" : ""), \(places) places, \(attempts) attempts\(retriesDeadConnection ? "" : ", no retries")\(hasBudget ? "" : ", no budget"): \(story)"
        }
    }

    private static let unsent = Attempts.Ending.idleWasDead(isUnsent: true)
    private static let dead = Attempts.Ending.idleWasDead(isUnsent: false)
    private static let late = Attempts.Ending.noHead(.timeout)
    private static let wrong = Attempts.Ending.noHead(.error)

    static let rows: [Row] = unanswered + answered + others

    private static let unanswered: [Row] = [
        // No connection: nothing was sent, so each place is asked, whatever the method and the settings.
        Row(
            method: .get, places: 3, attempts: 0, hasBudget: false,
            story: [(.notConnected, .nextPlace), (.notConnected, .nextPlace), (.notConnected, .nextPlace)]),
        Row(
            method: .post, content: .length, retriesDeadConnection: false, causes: [],
            story: [(.notConnected, .nextPlace), (.notConnected, .nextPlace)]),
        Row(method: .get, places: 1, story: [(.notConnected, .giveUp)]),
        // The queue of one is full: nobody waits there as long as another may have room.
        Row(method: .post, places: 1, story: [(.queueIsFull, .waitForRoom), (.notConnected, .giveUp)]),
        Row(method: .get, story: [(.queueIsFull, .nextPlace), (.brokenOff, .giveUp)]),
        // An idle connection was dead and took nothing.
        Row(method: .get, places: 1, story: [(unsent, .again), (.brokenOff, .giveUp)]),
        Row(method: .post, content: .chunked, places: 1, story: [(unsent, .again)]),
        Row(method: .get, isUpgrade: true, story: [(unsent, .again)]),
        Row(method: .get, retriesDeadConnection: false, story: [(unsent, .giveUp)]),
        // An idle connection was dead, and may have taken the request.
        Row(method: .get, places: 1, story: [(dead, .again)]),
        Row(method: .delete, places: 1, story: [(dead, .again)]),
        Row(method: .post, story: [(dead, .giveUp)]),
        Row(method: .put, content: .length, story: [(dead, .giveUp)]),
        Row(method: .otherSafe, content: .chunked, keepsContent: true, story: [(dead, .again)]),
        Row(method: .otherSafe, content: .length, story: [(dead, .giveUp)]),
        Row(method: .otherSafe, places: 1, story: [(dead, .again)]),
        Row(method: .otherIdempotent, places: 1, story: [(dead, .again)]),
        Row(method: .other, places: 1, story: [(dead, .giveUp)]),
        Row(method: .get, isUpgrade: true, story: [(dead, .giveUp)]),
        Row(method: .get, retriesDeadConnection: false, story: [(dead, .giveUp)]),
    ]

    /// The place got the request, and gave no response of use.
    private static let answered: [Row] = [Attempts.Ending.closed, late, wrong, .status].flatMap { ending -> [Row] in
        [
            Row(method: .get, story: [(ending, .nextPlace), (ending, .giveUp)]),
            Row(method: .get, places: 1, story: [(ending, .giveUp)]),
            Row(method: .delete, story: [(ending, .nextPlace)]),
            Row(method: .put, story: [(ending, .nextPlace)]),
            Row(method: .otherIdempotent, story: [(ending, .nextPlace)]),
            Row(method: .otherSafe, content: .length, keepsContent: true, story: [(ending, .nextPlace)]),
            Row(method: .get, content: .length, story: [(ending, .giveUp)]),
            Row(method: .put, content: .length, story: [(ending, .giveUp)]),
            Row(method: .post, story: [(ending, .giveUp)]),
            Row(method: .get, isUpgrade: true, story: [(ending, .giveUp)]),
            Row(method: .get, attempts: 0, story: [(ending, .giveUp)]),
            Row(method: .get, hasBudget: false, story: [(ending, .giveUp)]),
            Row(method: .get, retriesDeadConnection: false, story: [(ending, .nextPlace)]),
            Row(method: .get, places: 2, attempts: 5, story: [(ending, .nextPlace), (ending, .giveUp)]),
            Row(
                method: .get, places: 4, attempts: 2,
                story: [(ending, .nextPlace), (ending, .nextPlace), (ending, .giveUp)]),
        ]
    }

    private static let others: [Row] = [
        Row(method: .get, causes: [.timeout], story: [(.closed, .giveUp)]),
        Row(method: .get, causes: [.timeout], story: [(wrong, .giveUp)]),
        Row(method: .get, causes: [.timeout], story: [(late, .nextPlace)]),
        Row(method: .get, causes: [.error], story: [(late, .giveUp)]),
        Row(method: .get, causes: [], story: [(.status, .nextPlace)]),
        // The client has seen a part.
        Row(method: .get, attempts: 9, story: [(.brokenOff, .giveUp)]),
        // What may have reached a server counts, and what did not does not.
        Row(method: .get, places: 3, story: [(dead, .again), (.closed, .giveUp)]),
        Row(method: .get, places: 3, attempts: 2, story: [(dead, .again), (.closed, .nextPlace), (dead, .giveUp)]),
        Row(method: .get, places: 3, story: [(unsent, .again), (.closed, .nextPlace), (.closed, .giveUp)]),
        Row(method: .get, story: [(unsent, .again), (.notConnected, .nextPlace), (.notConnected, .nextPlace)]),
        Row(method: .get, story: [(.notConnected, .nextPlace), (.closed, .giveUp)]),
    ]

    @Test(arguments: rows)
    func `a request is sent again only if that does no harm`(row: Row) {
        var attempts = Self.attempts(row)
        for (place, (ending, expected)) in row.story.enumerated() {
            let next = attempts.next(after: ending, at: place, isLone: row.places == 1) { tried, _ in
                row.hasBudget && tried.count < row.places
            }
            #expect(next == expected, "after \(ending)")
        }
    }

    @Test func `the places that were tried are known, so that each is tried once`() {
        var attempts = Self.attempts(Row(method: .get, places: 4, story: []))
        var known: [[Int]] = []
        for (place, ending) in [(2, Attempts.Ending.notConnected), (3, Self.unsent), (0, .notConnected), (3, .status)] {
            let next = attempts.next(after: ending, at: place) { tried, _ in tried == [2, 0, 3] }
            #expect(next != .giveUp)
            known.append(attempts.tried)
        }
        #expect(known == [[2], [2], [2, 0], [2, 0, 3]])
        attempts.noteTried([0, 7])
        #expect(attempts.tried == [2, 0, 3, 7])
    }

    @Test func `the first place whose queue was full is waited for, once`() {
        var attempts = Self.attempts(Row(method: .get, places: 3, story: []))
        func next(_ ending: Attempts.Ending, _ place: Int) -> Attempts.Next {
            attempts.next(after: ending, at: place) { _, _ in false }
        }
        #expect([next(.notConnected, 1), next(.queueIsFull, 2), next(.queueIsFull, 0)].allSatisfy { $0 == .nextPlace })
        let waits = attempts.waitsForFull()
        #expect(waits && attempts.tried == [1, 0])
        // While it was waited for an idle connection there was free, but dead: not to those that were asked.
        let again = next(Self.unsent, 2)
        #expect(again == .again && attempts.tried == [1, 0])
        let end = next(.notConnected, 2)
        let waitsAgain = attempts.waitsForFull()
        #expect(end == .nextPlace && !waitsAgain)
    }

    @Test(arguments: [
        (Attempts.Ending.notConnected, true), (unsent, false), (dead, false), (.closed, false), (.status, true),
        (late, true),
    ])
    func `after a closed connection only a new one is used`(ending: Attempts.Ending, mayUseIdle: Bool) {
        var attempts = Self.attempts(Row(method: .get, story: []))
        #expect(attempts.mayUseIdle)
        let next = attempts.next(after: ending, at: 0) { _, _ in true }
        #expect(next != .giveUp)
        #expect(attempts.mayUseIdle == mayUseIdle)
    }

    @Test(arguments: [
        (Attempts.Ending.closed, true, Attempts.Next.nextPlace), (late, true, .nextPlace), (wrong, true, .nextPlace),
        (.closed, false, .giveUp), (late, false, .giveUp), (wrong, false, .giveUp), (.status, true, .giveUp),
    ])
    func `the first retry needs no budget if its place was ejected while no head came`(
        ending: Attempts.Ending, wasEjected: Bool, expected: Attempts.Next
    ) {
        func next(_ attempts: inout Attempts, at place: Int) -> Attempts.Next {
            attempts.next(after: ending, at: place, wasEjected: wasEjected) { _, needsBudget in !needsBudget }
        }
        var attempts = Self.attempts(Row(method: .get, places: 4, attempts: 3, story: []))
        let (first, second) = (next(&attempts, at: 0), next(&attempts, at: 1))
        #expect(first == expected && second == .giveUp)
        var post = Self.attempts(Row(method: .post, places: 4, attempts: 3, story: []))
        let never = next(&post, at: 0)
        #expect(never == .giveUp)
    }

    private static func attempts(_ row: Row) -> Attempts {
        var settings = UpstreamSettings(
            name: "origin", servers: (0..<row.places).map { UpstreamServer(host: "192.0.2.\($0)") })
        settings.retriesDeadConnection = row.retriesDeadConnection
        settings.retry.attempts = row.attempts
        settings.retry.causes = row.causes
        return Attempts(
            UpstreamRequest(method: row.method, head: .empty, content: row.content, asksForUpgrade: row.isUpgrade),
            settings, keepsContent: row.keepsContent)
    }
}
