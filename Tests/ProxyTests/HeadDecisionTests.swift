import Bytes
import HTTPSemantics
import RouteTesting
import Routing
import Storage
import Testing

@testable import Proxy

/// Who may have a response whose head is there, whether it is stored, and how much of its body is held: by the request
/// that led, what is known, and the head. Each row is one promise.
@Suite struct HeadDecisionTests {
    /// What the decision is given besides request and head.
    enum Given: Sendable {
        /// That the leader's cookies go past the cache by settings that came since.
        case passCookie
        /// That a group of the response, or the key, was invalidated since.
        case outdatedGroup, invalidatedKey
        /// That the part came that was asked for.
        case part
    }

    struct Row: Sendable, CustomTestStringConvertible {
        let request: String
        let status: UInt16
        let fields: String
        let verdict: String
        let length: Int?
        let given: [Given]
        let known: [World.Known]
        let changes: [World.Change]

        init(
            _ request: String, status: UInt16 = 200, _ fields: String, _ verdict: String, length: Int? = 10,
            given: Given..., known: [World.Known] = [], where changes: World.Change...
        ) {
            (self.request, self.status, self.fields, self.verdict) = (request, status, fields, verdict)
            (self.length, self.given, self.known, self.changes) = (length, given, known, changes)
        }

        var testDescription: String { "\(request) ← \(status) \(fields) → \(verdict)" }
    }

    private static let fresh = "Cache-Control: max-age=60"
    /// The most content that may be stored.
    private static let limit = 100

    /// All who wait and who come get it, and it is stored; unless it has no lifetime.
    static let stored: [Row] = [
        Row("GET /x", fresh, "everyone, stored"),
        Row("GET /x", fresh, "everyone, stored", length: nil),
        Row("GET /x", fresh, "everyone, stored", length: limit),
        Row("GET /x", status: 404, fresh, "everyone, stored"),
        Row("GET /x", status: 400, fresh, "everyone, stored"),
        Row("GET /x", fresh, "everyone, stored", where: .coalescingOff),
        Row("GET /x", "ETag: \"a\"", "whileArriving, stored"),
        Row("GET /x", "Cache-Control: max-age=0\nETag: \"a\"", "waitersOnly, stored"),
        Row("GET /x", "Cache-Control: no-cache\nETag: \"a\"", "nobody: no-cache, stored"),
        Row("GET /x\nAuthorization: Basic eA==", "Cache-Control: public, max-age=60", "everyone, stored"),
        Row("GET /x\nRange: bytes=0-9", fresh, "everyone, stored"),
        Row(
            "GET /x\nRange: bytes=0-9", status: 206, fresh + "\nETag: \"a\"\nContent-Range: bytes 0-9/100",
            "everyone, stored", given: .part, where: .asksForParts),
        Row(
            "POST /x\nContent-Length: 5", fresh + "\nContent-Location: /x", "nobody: method, stored",
            where: .storesPostAnswers),
    ]

    /// For each reason. What several may have is held whole for those who come late.
    static let notStored: [Row] = [
        Row("HEAD /x", fresh, "everyone, method, forSharing"),
        Row("POST /x\nContent-Length: 5", fresh, "nobody: method, method, window"),
        Row("GET /x", "Cache-Control: no-store", "nobody: no-store, no-store, window"),
        Row("GET /x", "Cache-Control: private", "nobody: private, private, window"),
        Row("GET /x", fresh + "\nSet-Cookie: a=b", "nobody: set-cookie, set-cookie, window"),
        Row("GET /x", fresh + "\nVary: *", "nobody: vary-star, vary-star, window"),
        Row("GET /x\nCache-Control: no-store", fresh, "nobody: request-no-store, request-no-store, window"),
        Row("GET /x\nAuthorization: Basic eA==", fresh, "nobody: authorization, authorization, window"),
        Row("GET /x\nCookie: session=1", fresh, "nobody: pass-cookie, pass-cookie, window", where: .passesSessions),
        Row("GET /x\nCookie: session=1", fresh, "nobody: pass-cookie, pass-cookie, window", given: .passCookie),
        Row("GET /x", status: 403, "ETag: \"a\"", "nobody: not-cacheable, not-cacheable, window"),
        Row("GET /x", "Incremental: ?1", "nobody: incremental, incremental, window"),
        Row("GET /x", status: 503, "", "waitersOnly, not-cacheable, forSharing"),
        Row("GET /x", "", "whileArriving, no-freshness, forSharing"),
        Row(
            "GET /x", status: 206, fresh + "\nETag: \"a\"\nContent-Range: bytes 0-9/100",
            "nobody: range, partial, window"),
        Row(
            "GET /x", status: 206, fresh + "\nETag: W/\"a\"\nContent-Range: bytes 0-9/100",
            "nobody: range, partial, window"),
        Row(
            "GET /x\nRange: bytes=0-9", status: 206, fresh + "\nETag: \"a\"\nContent-Range: bytes 0-9/100",
            "everyone, partial, forSharing", given: .part, where: .asksForParts, .storesNoParts),
        Row("GET /x", fresh, "everyone, caching-off, forSharing", where: .notCached),
        Row("GET /x\nContent-Length: 5", fresh, "everyone, request-content, forSharing"),
        Row("GET /x\nIf-Match: \"a\"", status: 404, fresh, "everyone, request-condition, forSharing"),
        Row("GET /x\nIf-Match: \"a\"", fresh, "everyone, stored"),
        Row("GET /x", status: 412, fresh, "nobody: status, request-condition, window"),
        Row("GET /x", status: 429, "Cache-Control: public, max-age=60", "nobody: status, status, window"),
        Row("GET /x", status: 400, "ETag: \"a\"", "nobody: status, status, window"),
        Row("GET /x", status: 416, fresh, "nobody: range, request-condition, window"),
        Row("GET /x", fresh, "everyone, too-large, window", length: limit + 1),
        Row("GET /x", fresh, "everyone, outdated, forSharing", given: .outdatedGroup),
        Row("GET /x", fresh, "everyone, outdated, forSharing", given: .invalidatedKey),
        Row(
            "POST /x\nContent-Length: 5", fresh + "\nContent-Location: /y", "nobody: method, method, window",
            where: .storesPostAnswers),
    ]

    /// The one that is told, where there are several.
    static let order: [Row] = [
        Row("GET /x", "Cache-Control: private", "nobody: private, outdated, window", given: .outdatedGroup),
        Row("GET /x", "Cache-Control: private", "nobody: private, private, window", given: .invalidatedKey),
        Row("GET /x", fresh, "everyone, too-large, window", length: limit + 1, given: .invalidatedKey),
        Row("GET /x", fresh, "everyone, outdated, window", length: limit + 1, given: .outdatedGroup),
        Row("GET /x", "Cache-Control: private", "nobody: private, caching-off, window", where: .notCached),
    ]

    @Test(arguments: stored) func `a storable response is stored`(_ row: Row) throws { try decide(row) }
    @Test(arguments: notStored) func `each reason prevents storing`(_ row: Row) throws { try decide(row) }
    @Test(arguments: order) func `the first of several reasons counts`(_ row: Row) throws { try decide(row) }

    @Test
    func `an invalidated key prevents storing, and the body is still held for several clients`()
        throws
    {
        var stored = try Self.decision(Row("GET /x", Self.fresh, ""))
        stored.forbidStoring(because: .outdated)
        #expect(Self.verdict(stored) == "everyone, outdated, forSharing")
        var alone = try Self.decision(Row("GET /x", "Cache-Control: no-cache\nETag: \"a\"", ""))
        alone.forbidStoring(because: .outdated)
        #expect(Self.verdict(alone) == "nobody: no-cache, outdated, window")
        var tooLarge = try Self.decision(Row("GET /x", Self.fresh, "", length: Self.limit + 1))
        tooLarge.forbidStoring(because: .outdated)
        #expect(Self.verdict(tooLarge) == "everyone, outdated, window")
    }

    /// A part is told by its range; of a body of unknown length nothing is told.
    @Test(
        arguments: [
            (Row("GET /x", fresh, "", length: 7), 7), (Row("GET /x", fresh, "", length: nil), nil),
            (Row("GET /x\nRange: bytes=0-9", status: 206, fresh, "", given: .part, where: .asksForParts), nil),
        ] as [(Row, Int?)])
    func `the length is that of a full response's content, and a part has none`(_ row: Row, _ expected: Int?) throws {
        #expect(try Self.decision(row).length == expected)
    }

    // MARK: What is remembered

    struct Memory: Sendable, CustomTestStringConvertible {
        let sharing: Sharing
        var request = "GET /x"
        var status: UInt16 = 200
        var wasReleased = false
        var changes: [World.Change] = []
        let expected: NotSharedReason?

        var testDescription: String { "\(request) ← \(status) \(sharing) → \(expected.map { "\($0)" } ?? "nothing")" }
    }

    private static let remembered: [NotSharedReason] =
        [Prohibition.noStore, .private, .authorization, .setCookie, .varyStar, .varyForwarded, .status].map {
            .prohibited($0)
        }
        + [.noCache, .mustRevalidate, .notCacheable, .incremental, .serverError, .part]
    private static let forgotten: [NotSharedReason] =
        [Prohibition.passCookie, .requestNoStore].map { .prohibited($0) } + [.method, .search, .unlike]

    static let memories: [Memory] =
        remembered.map { Memory(sharing: .nobody($0), expected: $0) }
        + forgotten.map { Memory(sharing: .nobody($0), expected: nil) }
        + [Sharing.everyone, .whileArriving, .waitersOnly].map { Memory(sharing: $0, expected: nil) }
        + [
            // Nobody asked for a part.
            Memory(sharing: .nobody(.range), expected: .part),
            Memory(
                sharing: .nobody(.range), request: "GET /x\nRange: bytes=0-9", changes: [.asksForParts], expected: nil),
            Memory(sharing: .nobody(.noCache), request: "HEAD /x", expected: nil),
            // They speak of the request, unless they do so of each.
            Memory(sharing: .nobody(.prohibited(.status)), status: 429, expected: nil),
            Memory(
                sharing: .nobody(.prohibited(.status)), status: 429, wasReleased: true,
                expected: .prohibited(.status)),
        ]

    @Test(arguments: memories) func `an unshareable response makes later requests fetch alone for a while`(
        _ row: Memory
    ) throws {
        let world = World(row.changes)
        let request = try world.request(row.request)
        let plan = try world.plan(for: request)
        let reason = row.sharing.reasonToRemember(
            Status(row.status), for: plan, leaderWasReleased: row.wasReleased)
        #expect(reason == row.expected)
    }

    @Test func `an error about one client is remembered for less time than one about a page`() {
        let (second, twoMinutes) = (1_000_000_000 as Int64, 120_000_000_000 as Int64)
        func memory(_ reason: NotSharedReason, _ status: UInt16, atMost limit: Int64) -> Int64 {
            reason.memory(after: Status(status), atMost: limit)
        }
        #expect(memory(.prohibited(.private), 200, atMost: twoMinutes) == twoMinutes)
        #expect(memory(.notCacheable, 403, atMost: twoMinutes) == twoMinutes)
        #expect(memory(.prohibited(.status), 429, atMost: twoMinutes) == 5 * second)
        #expect(memory(.prohibited(.authorization), 401, atMost: twoMinutes) == 5 * second)
        #expect(memory(.prohibited(.status), 429, atMost: 0) == 0)
        #expect(memory(.serverError, 503, atMost: twoMinutes) == second)
    }

    // MARK: Deciding

    private func decide(_ row: Row) throws {
        let decision = try Self.decision(row)
        #expect(Self.verdict(decision) == row.verdict)
    }

    private static func decision(_ row: Row) throws -> HeadDecision {
        let world = World(row.changes)
        let request = try world.request(row.request)
        for known in row.known { try world.learn(known, of: request) }
        let plan = try world.plan(for: request)
        let head = block(row.fields)
        let policy = request.route.policy
        let part = try row.given.contains(.part) ? part() : nil
        let facts = ResponseFacts(
            status: part == nil ? Status(row.status) : .ok, fields: head.view, requestTime: arrival,
            responseTime: arrival,
            policy: policy)
        return HeadDecision.on(
            facts, head.view, length: row.length, part: part, for: plan, policy,
            hasPassCookie: request.hasPassCookie || row.given.contains(.passCookie),
            objectLimit: StoredResponse.mostObjectSize(head.view, content: limit, partOf: nil),
            isOutdated: row.given.contains(.outdatedGroup), wasInvalidated: row.given.contains(.invalidatedKey))
    }

    private static func part() throws -> ReceivedPart {
        let head = block("ETag: \"a\"\nContent-Range: bytes 0-9/100")
        let part = ReceivedPart(head.view, status: .partialContent, contentLength: 10, asked: .between(0, 9))
        return try #require(part)
    }

    private static func verdict(_ decision: HeadDecision) -> String {
        let sharing =
            switch decision.sharing {
            case .nobody(let reason): "nobody: \(reason.name)"
            case .everyone, .whileArriving, .waitersOnly: "\(decision.sharing)"
            }
        guard let reason = decision.notStored else { return "\(sharing), \(decision.keeping)" }
        return "\(sharing), \(reason.name), \(decision.keeping)"
    }
}
