import Bytes
import HTTPSemantics
import RouteTesting
import Storage
import Testing

@testable import Proxy

/// What a part makes together with those that are stored: here the first hundred of a thousand bytes, with a strong
/// tag (RFC 9111 §3.4).
@Suite struct PartialResponseTests {
    struct Row: Sendable, CustomTestStringConvertible {
        let fields: String
        let request: String
        /// The bytes that are there then, and whether those that were there stay.
        let outcome: String

        init(_ fields: String, to request: String = "GET /x\nRange: bytes=50-149", _ outcome: String) {
            (self.fields, self.request, self.outcome) = (fields, request, outcome)
        }

        var testDescription: String { "\(fields) → \(outcome)" }
    }

    static let rows: [Row] = [
        Row("ETag: \"a\"\nCache-Control: max-age=60\nContent-Range: bytes 100-149/1000", "0..<150, they stay"),
        Row("ETag: \"a\"\nContent-Range: bytes 100-149/1000", "0..<150, they stay"),
        Row("ETag: \"a\"\nCache-Control: max-age=60\nContent-Range: bytes 100-149/*", "0..<150, they stay"),
        // Of another representation, or perhaps of one.
        Row("ETag: \"b\"\nCache-Control: max-age=60\nContent-Range: bytes 100-149/1000", "100..<150, they go"),
        Row("ETag: \"a\"\nCache-Control: max-age=60\nContent-Range: bytes 100-149/2000", "100..<150, they go"),
        Row(
            "ETag: \"a\"\nCache-Control: max-age=60\nVary: accept\nContent-Range: bytes 100-149/1000",
            "100..<150, they go"),
        Row("ETag: \"a\"\nCache-Control: no-store\nContent-Range: bytes 100-149/1000", "0..<150, they go"),
        // The cookie is the leader's, and is no word about the rest.
        Row(
            "ETag: \"a\"\nCache-Control: max-age=60\nSet-Cookie: a=b\nContent-Range: bytes 100-149/1000",
            "0..<150, they stay"),
    ]

    @Test(arguments: rows) func `a part belongs to stored parts of the same representation`(_ row: Row) throws {
        let world = World([])
        let partial = try Self.partialResponse(row.fields, to: row.request, in: world)
        let budget = world.shared.budget
        let response = partial.response(
            GrowingBody(budget: budget, expectedLength: 50), tags: nil, budget: budget)
        let parts = try #require(response.parts)
        // Runs that touch stand side by side.
        let (first, last) = (parts.runs.first?.range.lowerBound ?? 0, parts.runs.last?.range.upperBound ?? 0)
        #expect("\(first)..<\(last), \(partial.leavesParts ? "they stay" : "they go")" == row.outcome)
        #expect((partial.base == nil) == (first > 0))
    }

    /// RFC 9111 §5.2.2.7, and the operator's `set-cookie`: also where it completes what was stored.
    @Test(arguments: ["a", "b"], ["", "Set-Cookie: a=b", "X-A: b"])
    func `the leader gets the fields meant for the leader alone`(_ tag: String, _ field: String) throws {
        let own = field.isEmpty ? "" : "\(field)\n"
        let isNamed = field == "X-A: b"
        let fields =
            "ETag: \"\(tag)\"\nCache-Control: max-age=60\(isNamed ? ", private=\"x-a\"" : "")\n\(own)"
            + "Content-Range: bytes 100-149/1000"
        let partial = try Self.partialResponse(fields, to: "GET /x\nRange: bytes=50-149", in: World([]))
        // Of another representation that sets a cookie nobody but the leader gets anything.
        #expect((partial.headForLeader != nil) == (isNamed || (tag == "a" && !field.isEmpty)))
        #expect(partial.facts.contains(.setsCookie) == (field == "Set-Cookie: a=b"))
    }

    /// §5.2.2.7: what is stored says which fields those are, where the part does not.
    @Test func `the leader gets its own fields even if only the stored parts name them`() throws {
        let partial = try Self.partialResponse(
            "ETag: \"a\"\nX-A: b\nContent-Range: bytes 100-149/1000", to: "GET /x\nRange: bytes=50-149",
            onto: "Cache-Control: max-age=60, private=\"x-a\"\nETag: \"a\"", in: World([]))
        #expect(partial.headForLeader.map { String($0.bytes) }?.contains("X-A: b") == true)
        let budget = MemoryBudget(limit: 1 << 20)
        let response = partial.response(
            GrowingBody(budget: budget, expectedLength: 50), tags: nil, budget: budget)
        #expect(!String(response.head.bytes).contains("X-A"))
    }

    struct Keeping: Sendable, CustomTestStringConvertible {
        let fields: String
        let stored: String
        let request: String
        /// Whose fields it is stored under.
        let keeper: String

        init(_ fields: String, on stored: String = "max-age=60", to request: String = "", _ keeper: String) {
            (self.fields, self.stored, self.request, self.keeper) = (fields, stored, request, keeper)
        }

        var testDescription: String { "\(fields) on \(stored), to \(request) → \(keeper)" }
    }

    static let keepings: [Keeping] = [
        Keeping("max-age=60", "its own"),
        Keeping("max-age=0", "its own"),
        Keeping("max-age=0", to: "Cookie: a=b", "those stored, never stale"),
        Keeping("max-age=0", to: "Authorization: Basic eA==", "those stored, never stale"),
        // It says nothing of others, though they may have what is stored.
        Keeping("max-age=9", on: "public, max-age=60", to: "Authorization: Basic eA==", "those stored"),
        Keeping("public, max-age=9", on: "public, max-age=60", to: "Authorization: Basic eA==", "its own"),
        // It says that it is for all, by a lifetime or in so many words.
        Keeping("max-age=60", to: "Cookie: a=b", "its own"),
        Keeping("public, max-age=0", to: "Cookie: a=b", "its own"),
        // Those stored have no lifetime themselves: nothing is new.
        Keeping("max-age=0", on: "max-age=0", to: "Cookie: a=b", "those stored"),
    ]

    @Test(arguments: keepings)
    func `a part for one session is stored under the existing fields, which are never served stale`(
        _ row: Keeping
    ) throws {
        let request = "GET /x\nRange: bytes=50-149" + (row.request.isEmpty ? "" : "\n\(row.request)")
        let fields = "ETag: \"a\"\nCache-Control: \(row.fields)\nX-A: own\nContent-Range: bytes 100-149/1000"
        let partial = try Self.partialResponse(
            fields, to: request, onto: "Cache-Control: \(row.stored)\nX-A: stored\nETag: \"a\"", in: World([]))
        #expect(partial.base != nil)
        guard let keeper = partial.keeper else {
            #expect(row.keeper == "its own")
            return
        }
        let head = keeper.head
        #expect(head.bytes == partial.base?.head.bytes)
        #expect("those stored" + (keeper.facts.contains(.isSuperseded) ? ", never stale" : "") == row.keeper)
    }

    private static func partialResponse(
        _ fields: String, to text: String, onto stored: String = "Cache-Control: max-age=60\nETag: \"a\"",
        in world: World
    ) throws -> PartialResponse {
        let request = try world.request(text)
        try world.learn(.part(0..<100, of: 1_000, stored), of: request)
        let plan = try world.plan(for: request)
        let head = block(fields)
        let part = ReceivedPart(
            head.view, status: .partialContent, contentLength: 50, asked: try #require(plan.range))
        return PartialResponse(
            try #require(part), head.view, with: plan.parts, for: request, requestTime: arrival.after(10),
            responseTime: arrival.after(10))
    }
}
