import Bytes
import HTTPSemantics
import Libevent
import RouteTesting
import Routing
import Storage
import Telemetry
import Testing

@testable import Proxy

/// What answers of the origin do to what is stored (RFC 9111 §4.3). Each row is one promise.
@Suite struct RevalidationRuleTests {
    struct Row: Sendable, CustomTestStringConvertible {
        let request: String
        let answer: String
        let known: [World.Known]
        /// What the request gets, where it is a 304.
        let outcome: String
        /// What is stored then: tags, lifetimes, and whether they may be used stale.
        let stored: String

        init(_ request: String, _ answer: String, _ known: World.Known..., to stored: String, outcome: String = "") {
            (self.request, self.answer, self.known) = (request, answer, known)
            (self.outcome, self.stored) = (outcome, stored)
        }

        var testDescription: String { "\(request) ← \(answer) → \(outcome.isEmpty ? stored : outcome)" }
    }

    private static let a = World.Known.response("Cache-Control: max-age=5\nETag: \"a\"")
    private static let fresh = World.Known.response("Cache-Control: max-age=50\nETag: \"a\"")
    /// For requests with credentials too.
    private static let open = World.Known.response("Cache-Control: public, max-age=50\nETag: \"a\"")
    private static let german = World.Known.variant(
        "Cache-Control: max-age=5\nETag: \"d\"\nVary: accept-language", by: "Accept-Language: de")
    private static let english = World.Known.variant(
        "Cache-Control: max-age=5\nETag: \"e\"\nVary: accept-language", by: "Accept-Language: en")

    /// §4.3.4.
    static let notModified: [Row] = [
        Row(
            "GET /x", "ETag: \"a\"\nCache-Control: max-age=60", a, to: "\"a\" 60", outcome: "\"a\" 60, stored"),
        Row("GET /x", "Cache-Control: max-age=60", a, to: "\"a\" 60", outcome: "\"a\" 60, stored"),
        Row("GET /x", "ETag: \"b\"\nCache-Control: max-age=60", a, to: "\"a\" 5", outcome: "nothing"),
        // It may not stay; who asked gets it all the same.
        Row("GET /x", "ETag: \"a\"\nCache-Control: private", a, to: "", outcome: "\"a\" 0, not stored"),
        // One client's answer, unless it says that it is not (§3.5).
        Row(
            "GET /x\nAuthorization: Basic eA==", "ETag: \"a\"\nCache-Control: max-age=60", a, to: "\"a\" 5",
            outcome: "\"a\" 60, not stored"),
        Row(
            "GET /x\nAuthorization: Basic eA==", "ETag: \"a\"\nCache-Control: public, max-age=60", a, to: "\"a\" 60",
            outcome: "\"a\" 60, stored"),
        // Of several the request's own, and nothing for a request with other fields: the origin was not asked.
        Row(
            "GET /x\nAccept-Language: de", "ETag: \"d\"\nCache-Control: max-age=60", german, english,
            to: "\"d\" 60, \"e\" 5", outcome: "\"d\" 60, stored"),
        Row(
            "GET /x\nAccept-Language: fr", "ETag: \"d\"\nCache-Control: max-age=60", german, english,
            to: "\"d\" 5, \"e\" 5", outcome: "nothing"),
        // All of them that have the tag.
        Row(
            "GET /x\nAccept-Language: de", "ETag: \"d\"\nCache-Control: max-age=60", german,
            .response("Cache-Control: max-age=5\nETag: \"d\""), english,
            to: "\"d\" 60, \"d\" 60, \"e\" 5", outcome: "\"d\" 60, stored"),
    ]

    /// §4.3.5. Lengths are of one byte.
    static let heads: [Row] = [
        Row(
            "HEAD /x\nCache-Control: no-cache", "ETag: \"a\"\nContent-Length: 1\nCache-Control: max-age=60", fresh,
            to: "\"a\" 60"),
        Row(
            "HEAD /x\nCache-Control: no-cache", "ETag: \"b\"\nContent-Length: 1\nCache-Control: max-age=60", fresh,
            to: "\"a\" 50, stale"),
        Row(
            "HEAD /x\nCache-Control: no-cache", "ETag: \"a\"\nContent-Length: 2\nCache-Control: max-age=60", fresh,
            to: "\"a\" 50, stale"),
        Row(
            "HEAD /x\nCache-Control: no-cache\nAuthorization: Basic eA==",
            "ETag: \"a\"\nContent-Length: 1\nCache-Control: max-age=60", fresh,
            to: "\"a\" 50"),
        Row(
            "HEAD /x\nCache-Control: no-cache\nAccept-Language: de",
            "ETag: \"d\"\nVary: accept-language\nCache-Control: max-age=60", german,
            english, to: "\"d\" 60, \"e\" 5"),
        // What one client's answer does not say of others is not taken from what is stored, either (§3.5).
        Row(
            "HEAD /x\nAuthorization: Basic eA==\nCache-Control: no-cache", "Cache-Control: private", open,
            to: "\"a\" 50"),
        Row("HEAD /x\nAuthorization: Basic eA==\nCache-Control: no-cache", "X: 1", open, to: "\"a\" 50"),
        Row(
            "HEAD /x\nAuthorization: Basic eA==\nCache-Control: no-cache", "ETag: \"a\"\nVary: authorization", open,
            to: "\"a\" 50"),
        Row(
            "HEAD /x\nAuthorization: Basic eA==\nCache-Control: no-cache", "ETag: \"b\"\nCache-Control: public", fresh,
            to: "\"a\" 50, stale"),
        // Nobody has confirmed that those it was stored for still get it.
        Row("HEAD /x\nCache-Control: no-cache", "ETag: \"a\"\nVary: accept\nCache-Control: max-age=60", fresh, to: ""),
    ]

    /// §4.3.3: a full answer that is not stored.
    static let superseded: [Row] = [
        Row("GET /x", "200 Cache-Control: no-store", a, to: "\"a\" 5, never stale"),
        Row("GET /x", "404 Cache-Control: no-store", a, to: "\"a\" 5, never stale"),
        Row("GET /x", "403 Cache-Control: no-store", a, to: "\"a\" 5"),
        Row("GET /x", "503 Cache-Control: no-store", a, to: "\"a\" 5"),
        Row("GET /x\nAuthorization: Basic eA==", "200 Cache-Control: no-store", a, to: "\"a\" 5"),
        Row("GET /x", "200 Cache-Control: no-store", to: ""),
    ]

    @Test(arguments: notModified) func `a 304 freshens the stored response that it selects`(_ row: Row) throws {
        try with(row) { revalidation, head in
            let confirmed = revalidation.freshened(byNotModified: head.view, responseTime: arrival.after(10))
            let outcome =
                confirmed.map { "\(Self.text($0.response)), \($0.isStored ? "stored" : "not stored")" } ?? "nothing"
            #expect(outcome == row.outcome)
        }
    }

    @Test(arguments: heads) func `a response to HEAD freshens the stored response, or makes it stale`(_ row: Row) throws
    {
        try with(row) { revalidation, head in
            let facts = Self.facts(head)
            // What is whole has a length of its own.
            revalidation.freshen(fromHead: head.view, facts, contentLength: nil)
        }
    }

    @Test(arguments: superseded) func `a superseded response is not used stale`(_ row: Row) throws {
        try with(row) { revalidation, head in
            revalidation.forbidStaleUse(
                after: Self.facts(head, status: row.answer), head.view, willBeStored: false, staysHere: true)
        }
    }

    /// By its own `Vary`, or where that is none by taking the place of all.
    @Test(arguments: [
        ("Vary: accept-language", true, true), ("", true, true), ("", false, false), ("Vary: accept", true, false),
    ])
    func `a response that will be replaced stays unchanged until then`(
        _ fields: String, _ staysHere: Bool, _ stays: Bool
    ) throws {
        let row = Row(
            "GET /x\nAccept-Language: de", "Cache-Control: max-age=60" + (fields.isEmpty ? "" : "\n" + fields),
            Self.german, to: stays ? "\"d\" 5" : "\"d\" 5, never stale")
        try with(row) { revalidation, head in
            revalidation.forbidStaleUse(after: Self.facts(head), head.view, willBeStored: true, staysHere: staysHere)
        }
    }

    @Test(arguments: [
        // It answers what the variant for this request did, and that would go before it.
        Row("GET /x\nAccept-Language: de", "ETag: \"n\"", german, english, to: "\"e\" 5"),
        Row("GET /x\nAccept-Language: de", "ETag: \"n\"\nVary: accept", german, english, to: "\"d\" 5, \"e\" 5"),
        Row(
            "GET /x\nAccept-Language: de\nAuthorization: Basic eA==", "ETag: \"n\"", german, english,
            to: "\"d\" 5, \"e\" 5"),
    ])
    func `a response without Vary drops the variants that its request matches`(_ row: Row) throws {
        try with(row) { revalidation, head in
            let (body, key, asked) = (Array("x".utf8), [UInt8](), block(""))
            revalidation.dropVariants(
                before: StoredResponse(
                    packing: head.bytes.span, body: body.span, under: key.span, facts: Self.facts(head),
                    variant: VaryRule(head.view).map { Variant(for: asked.view, under: $0) }))
        }
    }

    /// §3.5, §4.3.4: what is stored has its origin's word that all may have it; what the 304 adds does not.
    @Test func `a 304 to one client freshens the shared response, and its other fields are for that client`() throws {
        let row = Row(
            "GET /x\nAuthorization: Basic eA==\nCache-Control: no-cache",
            "ETag: \"a\"\nDate: Thu, 01 Jan 2026 00:00:00 GMT\nX-User: me", Self.open, to: "\"a\" 50")
        try with(row) { revalidation, head in
            let confirmed = revalidation.freshened(byNotModified: head.view, responseTime: arrival.after(10))
            #expect(confirmed?.isStored == true)
            let forLeader = confirmed?.leaderResponse?.head.bytes
            #expect(forLeader.map { String($0).contains("X-User: me") } == true)
            let stored = revalidation.store.resource(revalidation.request.key)?.responses.first
            #expect(stored?.facts.responseTime == arrival.after(10))
            let fields = stored?.head.bytes
            #expect(fields.map { String($0).contains("Thu, 01 Jan 2026") && !String($0).contains("X-User") } == true)
        }
    }

    @Test(arguments: ["Vary: authorization", "Vary: *", "Set-Cookie: a=b", "Cache-Control: private"])
    func `a 304 to one client whose fields forbid sharing does not change the shared variant`(_ field: String) throws {
        let row = Row(
            "GET /x\nAuthorization: Basic eA==\nCache-Control: no-cache", "ETag: \"a\"\n" + field, Self.open,
            to: "\"a\" 50")
        try with(row) { revalidation, head in
            let confirmed = revalidation.freshened(byNotModified: head.view, responseTime: arrival.after(10))
            let stored = revalidation.store.resource(revalidation.request.key)?.responses.first
            #expect(stored?.varyRule.isEmpty == true)
            #expect(confirmed?.isStored == (field == "Set-Cookie: a=b"))
        }
    }

    @Test func `a response to a pass changes nothing`() throws {
        let row = Row("GET /x", "ETag: \"a\"\nCache-Control: max-age=60", Self.a, to: "\"a\" 5")
        try with(row, hasPassCookie: true) { revalidation, head in
            let confirmed = revalidation.freshened(byNotModified: head.view, responseTime: arrival.after(10))
            #expect(confirmed?.isStored == false)
        }
    }

    /// Whether it changes a field or makes it stale: it says nothing of who gets what GET gets.
    @Test(arguments: ["\"a\"", "\"b\""]) func `HEAD keeps the markers of the key`(_ tag: String) throws {
        let row = Row(
            "HEAD /x\nCache-Control: no-cache", "ETag: \(tag)\nCache-Control: max-age=50", Self.fresh,
            .marker(.unlike), to: "\"a\" 50" + (tag == "\"b\"" ? ", stale" : ""))
        try with(row) { revalidation, head in
            revalidation.freshen(fromHead: head.view, Self.facts(head), contentLength: nil)
            #expect(
                revalidation.store.resource(revalidation.request.key)?.separatesRequests(at: arrival.after(10)) == true)
        }
    }

    // MARK: What they share

    /// Ten seconds after what is stored came.
    private func with(
        _ row: Row, hasPassCookie: Bool = false, _ act: (Revalidation, HeadBlock) -> Void
    ) throws {
        let loop = try EventLoop()
        defer { loop.finish() }
        let world = World([])
        let request = try world.request(row.request)
        for known in row.known { try world.learn(known, of: request) }
        let revalidation = Revalidation(
            plan: try world.plan(for: request), requestTime: arrival.after(10),
            generation: world.shared.tags.generation, hasPassCookie: hasPassCookie, operation: nil,
            shared: world.shared,
            recorder: Recorder(loop: loop, metrics: LoopMetrics(), feed: nil, trustedProxies: TrustedProxies()))
        let fields = row.answer.first?.isNumber == true ? String(row.answer.dropFirst(4)) : row.answer
        act(revalidation, block(fields))
        let stored = world.store.resource(request.key)?.responses.map(Self.text) ?? []
        #expect(stored.sorted().joined(separator: ", ") == row.stored)
    }

    /// - Parameter status: at the beginning of this text; 200 if there is none.
    private static func facts(_ head: HeadBlock, status: String = "") -> ResponseFacts {
        ResponseFacts(
            status: Status(UInt16(status.prefix(3)) ?? 200), fields: head.view, requestTime: arrival.after(10),
            responseTime: arrival.after(10), policy: CachingPolicy())
    }

    private static func text(_ response: StoredResponse) -> String {
        let head = response.head
        var tag = "no tag"
        if let value = head.view.firstValue(of: .etag) { tag = String(value) }
        let facts = response.facts
        let isExpired = facts.lifetime > 0 && facts.freshUntil == arrival.after(10).monotonic
        return "\(tag) \(facts.lifetime)" + (isExpired ? ", stale" : "")
            + (facts.contains(.isSuperseded) ? ", never stale" : "")
    }
}
