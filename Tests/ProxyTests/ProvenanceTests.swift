import Bytes
import HTTPSemantics
import RouteTesting
import Routing
import Storage
import Telemetry
import Testing
import Upstream

@testable import Proxy

/// What `Cache-Status` (RFC 9211), the metrics and the access log tell of a response.
@Suite struct ProvenanceTests {
    /// How a request came to its response.
    struct Course: Sendable {
        /// Why the origin was asked, and with which part in the fetch.
        var forwarded: ForwardReason?
        var role = Role.none
        /// What the fetch brought: fields, from where, for whom.
        var fields = "Cache-Control: max-age=60"
        var source = FetchedResponse.Source.origin
        var sharing = Sharing.everyone
        var status: UInt16 = 200
        var isStored = false
        var notStored: NotStoredReason?
        var hasAge = false
    }

    struct Row: Sendable, CustomTestStringConvertible {
        let testDescription: String
        let course: Course
        let verdict: Verdict
        let line: String
        let sendsAge: Bool

        init(
            _ what: String, _ verdict: Verdict, _ line: String, sendsAge: Bool = false, _ change: (inout Course) -> Void
        ) {
            var course = Course()
            change(&course)
            (testDescription, self.course, self.verdict, self.line, self.sendsAge) = (
                what, course, verdict, line, sendsAge
            )
        }
    }

    /// Ten seconds after the response came.
    @Test(arguments: [
        Row("led, and stored", .miss, "fwd=uri-miss; fwd-status=200; stored; ttl=50") {
            ($0.forwarded, $0.role, $0.isStored) = (.uriMiss, .led, true)
        },
        Row("joined before the head", .miss, "fwd=uri-miss; fwd-status=200; stored; collapsed; ttl=50") {
            ($0.forwarded, $0.role, $0.isStored) = (.uriMiss, .joined, true)
        },
        Row(
            "joined late: made for somebody before", .miss, "fwd=vary-miss; fwd-status=200; collapsed; ttl=50",
            sendsAge: true
        ) {
            ($0.forwarded, $0.role) = (.varyMiss, .joinedLate)
        },
        Row("from another cache", .miss, "fwd=stale; fwd-status=200; ttl=50", sendsAge: true) {
            ($0.forwarded, $0.role, $0.hasAge) = (.stale, .led, true)
        },
        Row("no lifetime to tell", .miss, "fwd=uri-miss; fwd-status=404") {
            ($0.forwarded, $0.role, $0.fields, $0.status) = (.uriMiss, .led, "X: 1", 404)
        },
        Row("shared with nobody, and why", .miss, "fwd=uri-miss; fwd-status=200; ttl=50; detail=set-cookie") {
            ($0.forwarded, $0.role, $0.sharing, $0.notStored) = (
                .uriMiss, .led, .nobody(.prohibited(.setCookie)), .tooLarge
            )
        },
        Row(
            "shared but not stored, and why", .miss, "fwd=uri-miss; fwd-status=200; collapsed; ttl=50; detail=too-large"
        ) {
            ($0.forwarded, $0.role, $0.notStored) = (.uriMiss, .joined, .tooLarge)
        },
        Row("a method that is not looked up", .pass, "fwd=method; fwd-status=201; ttl=50") {
            ($0.forwarded, $0.role, $0.status) = (.method, .alone, 201)
        },
        Row("known to be unshareable", .pass, "fwd=bypass; fwd-status=200; ttl=50") {
            ($0.forwarded, $0.role) = (.bypass, .alone)
        },
        Row("of a route that is not cached, joined", .miss, "fwd=bypass; fwd-status=200; collapsed; ttl=50") {
            ($0.forwarded, $0.role) = (.bypass, .joined)
        },
        Row("the request's own wish", .pass, "fwd=request; fwd-status=200; ttl=50") {
            ($0.forwarded, $0.role) = (.request, .led)
        },
        Row("confirmed by the origin", .revalidated, "fwd=stale; fwd-status=304; stored; ttl=50", sendsAge: true) {
            ($0.forwarded, $0.role, $0.source, $0.status, $0.isStored) = (.stale, .led, .validated, 304, true)
        },
        Row(
            "in place of an error", .stale, "fwd=stale; fwd-status=503; collapsed; ttl=-5; detail=stale-if-error",
            sendsAge: true
        ) {
            ($0.forwarded, $0.role, $0.source, $0.status, $0.fields) = (
                .stale, .joined, .staleOnError(.status(Status(503))), 503, "Cache-Control: max-age=5"
            )
        },
        Row(
            "in place of an origin that does not answer", .stale, "fwd=stale; ttl=-5; detail=stale-if-error",
            sendsAge: true
        ) {
            ($0.forwarded, $0.role, $0.source, $0.status, $0.fields) = (
                .stale, .led, .staleOnError(.unreachable), 0, "Cache-Control: max-age=5"
            )
        },
    ])
    func `a fetched response is reported as the table says`(_ row: Row) throws {
        let course = row.course
        var provenance = Provenance(.synthetic)
        (provenance.forwarded, provenance.role) = (course.forwarded, course.role)
        provenance.note(try Self.fetched(course), at: arrival.after(10))
        #expect(provenance.verdict == row.verdict)
        #expect(provenance.sendsAge == row.sendsAge)
        #expect(Self.line(provenance) == row.line)
    }

    @Test func `a response from the store is reported as a hit`() {
        let stored = Self.stored("Cache-Control: max-age=60")
        var provenance = Provenance(.synthetic)
        // Of an earlier look, which led nowhere.
        provenance.forwarded = .uriMiss
        provenance.note(stored, detail: nil, at: arrival.after(10))
        #expect(provenance.verdict == .hit && provenance.sendsAge && Self.line(provenance) == "hit; ttl=50")
        provenance.note(stored, detail: "waiters-full", at: arrival.after(70))
        #expect(
            provenance.verdict == .stale && provenance.sendsAge
                && Self.line(provenance) == "hit; ttl=-10; detail=waiters-full")
    }

    @Test func `a stale response for the failure of a joined fetch is reported as stale`() {
        var provenance = Provenance(.miss)
        (provenance.forwarded, provenance.role) = (.stale, .joined)
        provenance.noteStandIn(Self.stored("Cache-Control: max-age=60"), status: .badGateway, at: arrival.after(70))
        #expect(provenance.verdict == .stale && provenance.sendsAge)
        #expect(Self.line(provenance) == "fwd=stale; fwd-status=502; collapsed; ttl=-10; detail=stale-if-error")
    }

    @Test(
        arguments: [
            (Verdict.synthetic, nil), (.refused, nil), (.miss, nil), (.pass, nil), (.hit, "hit"), (.stale, "hit"),
            (.revalidated, "hit"),
        ] as [(Verdict, String?)])
    func `a response neither fetched nor stored is reported without a status`(verdict: Verdict, line: String?) {
        let provenance = Provenance(verdict)
        #expect(Self.line(provenance) == line)
    }

    /// The members behind our name.
    private static func line(_ provenance: Provenance) -> String? {
        guard let status = provenance.cacheStatus else { return nil }
        let buffer = ByteBuffer(capacity: 128)
        CacheStatusWriter(name: ByteSlice("us")).write(status, detail: provenance.detail, to: buffer)
        // The end of the line is one character.
        return String(String(buffer.span).dropFirst("Cache-Status: us; ".count).dropLast())
    }

    private static func stored(_ fields: String, status: UInt16 = 200) -> StoredResponse {
        let (head, body, key) = (block(fields), Array("x".utf8), [UInt8]())
        let facts = ResponseFacts(
            status: Status(status), fields: head.view, requestTime: arrival, responseTime: arrival,
            policy: CachingPolicy())
        return StoredResponse(packing: head.bytes.span, body: body.span, under: key.span, facts: facts)
    }

    private static func fetched(_ course: Course) throws -> FetchedResponse {
        let parsed = try ParsedHead("GET /x")
        let loopSettings = LoopSettings(upstreams: "one")
        let route = try #require(loopSettings.onlyRoute)
        let key = CacheKey(hash: 1, bytes: ByteSlice("http a.example /x"))
        let leader = ClientRequest(
            parsed.head, parsed.fields, route: route, key: key, visits: 0)
        // What stands in, or was confirmed, has a status of its own.
        let status = course.source == .origin ? course.status : 200
        let circumstances = FetchedResponse.Circumstances(
            leader: leader, search: .default, server: ByteSlice("192.0.2.2:80"), requestTime: arrival)
        return FetchedResponse(
            stored(course.fields, status: status), source: course.source,
            .on(stored: course.sharing, length: 1, isStored: course.isStored, notStored: course.notStored),
            originStatus: course.status == 0 ? nil : Status(course.status), hasAge: course.hasAge, circumstances)
    }
}
