import Bytes
import HTTPSemantics
import Storage
import Testing

@testable import Proxy

/// What a part makes together with those that are stored: here the first hundred of a thousand bytes, with a strong
/// tag (RFC 9111 §3.4).
@Suite struct PartAnswerTests {
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

    @Test(arguments: rows) func `a part goes with those of the same representation`(_ row: Row) throws {
        let world = World([])
        let answer = try Self.answer(row.fields, to: row.request, in: world)
        let budget = world.shared.budget
        let response = answer.response(GrowingBody(budget: budget, expectedLength: 50), budget: budget)
        let parts = try #require(response.parts)
        // Runs that touch stand side by side.
        let (first, last) = (parts.runs.first?.range.lowerBound ?? 0, parts.runs.last?.range.upperBound ?? 0)
        #expect("\(first)..<\(last), \(answer.leavesParts ? "they stay" : "they go")" == row.outcome)
        #expect((answer.base == nil) == (first > 0))
    }

    /// RFC 9111 §5.2.2.7, and the operator's `set-cookie`: also where it completes what was stored.
    @Test(arguments: ["a", "b"], ["", "Set-Cookie: a=b", "X-A: b"])
    func `the leader sees the fields that are for it`(_ tag: String, _ field: String) throws {
        let own = field.isEmpty ? "" : "\(field)\n"
        let isNamed = field == "X-A: b"
        let fields =
            "ETag: \"\(tag)\"\nCache-Control: max-age=60\(isNamed ? ", private=\"x-a\"" : "")\n\(own)"
            + "Content-Range: bytes 100-149/1000"
        let answer = try Self.answer(fields, to: "GET /x\nRange: bytes=50-149", in: World([]))
        // Of another representation that sets a cookie nobody but the leader gets anything.
        #expect((answer.headForLeader != nil) == (isNamed || (tag == "a" && !field.isEmpty)))
        #expect(answer.facts.contains(.setsCookie) == (field == "Set-Cookie: a=b"))
    }

    private static func answer(_ fields: String, to text: String, in world: World) throws -> PartAnswer {
        let request = try world.request(text)
        try world.learn(.part(0..<100, of: 1_000, "Cache-Control: max-age=60\nETag: \"a\""), of: request)
        let plan = try world.plan(for: request)
        let head = block(fields)
        let part = ReceivedPart(
            head.view, status: .partialContent, contentLength: 50, asked: try #require(plan.range))
        return PartAnswer(
            try #require(part), head.view, with: plan.parts, for: request, requested: arrival.after(10),
            received: arrival.after(10))
    }
}
