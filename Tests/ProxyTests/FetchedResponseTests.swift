import Bytes
import HTTPSemantics
import RouteTesting
import Routing
import Storage
import Telemetry
import Testing

@testable import Proxy

/// Who may have what a fetch brings, beside the request it was made for.
@Suite struct FetchedResponseTests {
    enum Purged: Sendable, CaseIterable { case tag, softly, group, otherTag, otherOrigin }

    @Test(arguments: Purged.allCases)
    func `a request after a purge gets no response that was requested before`(what: Purged) throws {
        let tags = TagTable()
        let route = try #require(LoopSettings(upstreams: "one").onlyRoute)
        let parsed = try ParsedHead("GET /x")
        func request() -> ClientRequest {
            ClientRequest(
                parsed.head, parsed.fields, route: route,
                key: CacheKey(hash: 1, bytes: ByteSlice("http a.example /x")), visits: 0)
        }
        let head = block("Cache-Control: max-age=60\nCache-Groups: \"g\"\nCache-Tag: t")
        let facts = ResponseFacts(
            status: .ok, fields: head.view, requestTime: arrival, responseTime: arrival.after(4),
            policy: CachingPolicy())
        let (body, key) = (Array("x".utf8), [UInt8]())
        let response = StoredResponse(
            packing: head.bytes.span, body: body.span, under: key.span, facts: facts,
            tags: tags.tags(in: head.view, by: .usual, at: "a.example", requested: tags.generation))
        let leader = request()
        let circumstances = FetchedResponse.Circumstances(
            leader: leader, search: .default, server: ByteSlice("192.0.2.2:80"), requestTime: arrival)
        let fetched = FetchedResponse(
            response, source: .origin, .on(stored: .everyone, length: 1, isStored: true), originStatus: .ok,
            circumstances)
        let before = tags.generation
        switch what {
        case .tag: _ = tags.purge([ByteSlice("t")])
        case .softly: _ = tags.purge([ByteSlice("g")], softening: Softening(at: 0, grace: 60))
        case .group: tags.invalidate(["g"], of: "a.example")
        case .otherTag: _ = tags.purge([ByteSlice("T")])
        case .otherOrigin: tags.invalidate(["g"], of: "b.example")
        }
        // When a request came matters no more than in which order.
        for seconds: Int64 in [1, 5] {
            #expect(fetched.mayServe(request(), arrivedAt: arrival.after(seconds), after: before))
            let mayServe = fetched.mayServe(request(), arrivedAt: arrival.after(seconds), after: tags.generation)
            #expect(mayServe == (what == .otherTag || what == .otherOrigin))
        }
    }

    static let shortfalls: [FetchedResponse.Shortfall] =
        [.noMemory]
        + UpstreamFailure.allCases.flatMap { failure in
            ([nil] + MessageSyntaxError.Reason.allCases).map { .origin(failure, $0) }
        }

    @Test func `the reason why a body ends short is kept`() throws {
        let route = try #require(LoopSettings(upstreams: "one").onlyRoute)
        let parsed = try ParsedHead("GET /x")
        let leader = ClientRequest(
            parsed.head, parsed.fields, route: route,
            key: CacheKey(hash: 1, bytes: ByteSlice("http a.example /x")), visits: 0)
        let (head, body, key) = (block("A: b"), Array("x".utf8), [UInt8]())
        let facts = ResponseFacts(
            status: .ok, fields: head.view, requestTime: arrival, responseTime: arrival, policy: CachingPolicy())
        let response = StoredResponse(
            packing: head.bytes.span, body: body.span, under: key.span, facts: facts)
        let fetched = FetchedResponse(
            response, source: .origin, .on(stored: .everyone, length: 1, isStored: true), originStatus: .ok,
            FetchedResponse.Circumstances(
                leader: leader, search: .default, server: .empty, requestTime: arrival))
        #expect(fetched.shortfall == nil)
        for shortfall in Self.shortfalls {
            fetched.noteShortfall(shortfall)
            #expect(fetched.shortfall == shortfall)
        }
    }
}
