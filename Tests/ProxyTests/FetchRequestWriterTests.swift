import Bytes
import HTTPSemantics
import Storage
import Testing
import Upstream

@testable import Proxy

/// What a client asked and what is stored give the request that the origin gets. Each row is one promise; what every
/// request has (`Host`, `Via` and the like) is left out.
@Suite struct FetchRequestWriterTests {
    typealias Conditions = FetchRequestWriter.Conditions

    struct Row: Sendable, CustomTestStringConvertible {
        let request: String
        let sent: String
        let known: [World.Known]
        let conditions: Conditions
        let changes: [World.Change]

        /// - Parameters: `sent` lines are parted by ` | `; `conditions` those to ask under.
        init(
            _ request: String, _ sent: String, _ known: World.Known...,
            under conditions: Conditions = .storedAndClients,
            where changes: [World.Change] = []
        ) {
            (self.request, self.sent, self.known) = (request, sent, known)
            (self.conditions, self.changes) = (conditions, changes)
        }

        var testDescription: String { "\(request), \(conditions) → \(sent)" }
    }

    private static let stale = World.Known.response("Cache-Control: max-age=5\nETag: \"a\"")
    private static let dated = World.Known.response(
        "Cache-Control: max-age=5\nLast-Modified: Sun, 06 Nov 1994 00:00:00 GMT")
    private static let beginning = World.Known.part(0..<100, of: 1_000, "Cache-Control: max-age=60\nETag: \"a\"")
    private static let staleBeginning = World.Known.part(0..<100, of: 1_000, "Cache-Control: max-age=5\nETag: \"a\"")

    /// The answer is to fit all who wait: what only one client wants does not go on.
    static let shared: [Row] = [
        Row("GET /x?y", "GET /x?y"),
        Row("HEAD /x", "HEAD /x"),
        Row("GET /x\nRange: bytes=0-9\nIf-Range: \"c\"", "GET /x"),
        Row("GET /x\nIf-None-Match: \"c\"", "GET /x"),
        Row("GET /x\nIf-Modified-Since: Sun, 06 Nov 1994 08:49:37 GMT", "GET /x"),
        Row("GET /x\nAccept: text/html\nCookie: a=b", "GET /x | Accept: text/html | Cookie: a=b"),
        Row("GET /x\nTE: trailers", "GET /x | Connection: TE | TE: trailers"),
        Row("GET /x\nRange: bytes=0-9\nIf-None-Match: \"c\"", "GET /x", where: [.coalescingOff]),
    ]

    /// RFC 9111 §4.3.1, §4.3.2.
    static let validations: [Row] = [
        Row("GET /x", "GET /x | If-None-Match: \"a\" | under stored", stale),
        Row("HEAD /x", "HEAD /x | If-None-Match: \"a\" | under stored", stale),
        Row("GET /x", "GET /x | If-Modified-Since: Sun, 06 Nov 1994 00:00:00 GMT | under stored", dated),
        Row("GET /x", "GET /x", .response("Cache-Control: max-age=5")),
        Row(
            "GET /x\nIf-None-Match: \"c\", \"a\"", "GET /x | If-None-Match: \"a\", \"c\" | under storedAndClients",
            stale),
        // The client has nothing more to ask about, or a date that stands for something else.
        Row("GET /x\nIf-None-Match: \"a\"", "GET /x | If-None-Match: \"a\" | under stored", stale),
        Row(
            "GET /x\nIf-Modified-Since: Sun, 06 Nov 1994 08:49:37 GMT", "GET /x | If-None-Match: \"a\" | under stored",
            stale),
        // Asked once more.
        Row("GET /x\nIf-None-Match: \"c\"", "GET /x | If-None-Match: \"a\" | under stored", stale, under: .stored),
        Row("GET /x\nIf-None-Match: \"c\"", "GET /x", stale, under: .none),
        // Other variants are not asked about, whatever their tags.
        Row(
            "GET /x\nAccept-Language: fr",
            "GET /x | Accept-Language: fr",
            .variant("Cache-Control: max-age=5\nVary: accept-language\nETag: \"d\"", by: "Accept-Language: de"),
            .variant("Cache-Control: max-age=5\nVary: accept-language\nETag: \"e\"", by: "Accept-Language: en")),
    ]

    /// RFC 9111 §3.4, RFC 9110 §13.1.5.
    static let parts: [Row] = [
        Row("GET /x\nRange: bytes=0-9", "GET /x | Range: bytes=0-9", where: [.asksForParts]),
        Row("GET /x\nRange: bytes=-5", "GET /x | Range: bytes=-5", where: [.asksForParts]),
        Row(
            "GET /x\nRange: bytes=50-149", "GET /x | Range: bytes=100-149 | If-Range: \"a\" | under stored",
            beginning),
        Row("GET /x", "GET /x | Range: bytes=100- | If-Range: \"a\" | under stored", beginning),
        Row("GET /x", "GET /x | Range: bytes=100-", beginning, under: .none),
        Row(
            "GET /x\nRange: bytes=0-9", "GET /x | If-None-Match: \"a\" | Range: bytes=0-9 | under stored",
            staleBeginning),
    ]

    /// What is for one client alone goes through as it came.
    static let passed: [Row] = [
        Row(
            "POST /x\nContent-Length: 5\nIf-Match: \"c\"", "POST /x | If-Match: \"c\" | Content-Length: 5 | may be 304"),
        Row("GET /x\nIf-Match: \"c\"\nRange: bytes=0-9", "GET /x | If-Match: \"c\" | Range: bytes=0-9"),
        Row(
            "GET /x\nIf-None-Match: \"c\"", "GET /x | If-None-Match: \"c\" | may be 304", stale,
            where: [.notCached, .coalescingOff]),
        Row(
            "GET /x\nConnection: upgrade\nUpgrade: websocket", "GET /x | Connection: Upgrade | Upgrade: websocket"),
        Row("OPTIONS /x\nMax-Forwards: 5", "OPTIONS /x | Max-Forwards: 4 | may be 304"),
        Row("PROPFIND /x\nTransfer-Encoding: chunked", "PROPFIND /x | Transfer-Encoding: chunked | may be 304"),
    ]

    @Test(arguments: shared) func `a shared fetch omits one client's conditions`(_ row: Row) throws {
        try write(row)
    }
    @Test(arguments: validations) func `a stored response is validated`(_ row: Row) throws { try write(row) }
    @Test(arguments: parts) func `a response that is stored in part is completed`(_ row: Row) throws {
        try write(row)
    }
    @Test(arguments: passed) func `a fetch for one client alone is forwarded unchanged`(_ row: Row) throws {
        try write(row)
    }

    @Test func `a background refresh is a GET without fields of a client`() throws {
        let world = World([])
        let request = try world.request("HEAD /x\nIf-None-Match: \"c\"")
        try world.learn(Self.stale, of: request)
        let resource = try #require(world.store.resource(request.key))
        let plan = Lookup.refreshPlan(of: try #require(resource.responses.first), in: resource, for: request)
        let sent = Self.sent(plan, world, under: .storedAndClients, hasLeader: false)
        #expect(sent == "GET /x | If-None-Match: \"a\" | under stored")
    }

    @Test func `the tags of a client that has left are not sent`() throws {
        let world = World([])
        let request = try world.request("GET /x\nIf-None-Match: \"c\"")
        try world.learn(Self.stale, of: request)
        let plan = try world.plan(for: request)
        let sent = Self.sent(plan, world, under: .storedAndClients, hasLeader: false)
        #expect(sent == "GET /x | If-None-Match: \"a\" | under stored")
    }

    /// Where content was read ahead, its client has been told to go on.
    @Test(arguments: [true, false]) func `Expect is sent only if a client waits for 100`(_ awaits: Bool) throws {
        let world = World([])
        let request = try world.request("POST /x\nContent-Length: 5\nExpect: 100-continue")
        let plan = try world.plan(for: request)
        let sent = Self.sent(plan, world, under: .storedAndClients, awaitsContinue: awaits)
        #expect(sent == "POST /x | \(awaits ? "Expect: 100-continue | " : "")Content-Length: 5 | may be 304")
    }

    private func write(_ row: Row) throws {
        let world = World(row.changes)
        let request = try world.request(row.request)
        for known in row.known { try world.learn(known, of: request) }
        let plan = try world.plan(for: request)
        #expect(Self.sent(plan, world, under: row.conditions) == row.sent)
    }

    /// First line and fields, then the conditions, if any, or that a 304 may answer the client's own.
    private static func sent(
        _ plan: FetchPlan, _ world: World, under conditions: Conditions,
        hasLeader: Bool = true, awaitsContinue: Bool = false
    ) -> String {
        var writer = FetchRequestWriter(under: conditions, awaitsContinue: awaitsContinue, hasLeader: hasLeader)
        let written = writer.write(plan, from: .at(arrival), by: world.loopSettings, in: ByteBuffer(capacity: 1024))
        var lines = String(written.head).split(separator: "\r\n").map(String.init)
        lines[0] = lines[0].replacing(" HTTP/1.1", with: "")
        let always = ["Host:", "Via:", "X-Forwarded-", "CDN-Loop:"]
        lines.removeAll { line in always.contains { line.hasPrefix($0) } }
        if plan.isPass {
            if written.mayBeNotModified { lines.append("may be 304") }
        } else if written.mayBeNotModified {
            lines.append("under \(writer.conditions)")
        }
        return lines.joined(separator: " | ")
    }
}
