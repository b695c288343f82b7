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
    /// When it came, and when one of the response's groups was invalidated, in seconds after the fetch began.
    @Test(
        arguments: [(arrived: 1, invalidated: nil, true), (1, 2, true), (2, 2, false), (3, 2, false)]
            as [(Int64, Int64?, Bool)])
    func `a request after a group's invalidation gets no response that was requested before`(
        arrived: Int64, invalidated: Int64?, expected: Bool
    ) throws {
        let groups = GroupInvalidations()
        let route = try #require(LoopSettings(upstreams: "one").onlyRoute)
        let parsed = try ParsedHead("GET /x")
        func request() -> ClientRequest {
            ClientRequest(
                parsed.head, parsed.fields, route: route,
                key: CacheKey(hash: 1, bytes: ByteSlice("http a.example /x")), visits: 0)
        }
        let head = block("Cache-Control: max-age=60\nCache-Groups: \"g\"")
        let facts = ResponseFacts(
            status: .ok, fields: head.view, requestTime: arrival, responseTime: arrival.after(4),
            policy: CachingPolicy())
        let (body, key) = (Array("x".utf8), [UInt8]())
        let response = StoredResponse(
            packing: head.bytes.span, body: body.span, under: key.span, facts: facts,
            groups: CacheGroups.of(head.view, requestTime: arrival))
        let leader = request()
        let circumstances = FetchedResponse.Circumstances(
            leader: leader, search: .default, server: ByteSlice("192.0.2.2:80"), requestTime: arrival,
            invalidations: groups)
        let fetched = FetchedResponse(
            response, source: .origin, .on(stored: .everyone, length: 1, isStored: true), originStatus: .ok,
            circumstances)
        if let invalidated { groups.invalidate(["g"], of: leader.authority, at: arrival.after(invalidated).monotonic) }
        #expect(fetched.mayServe(request(), arrivedAt: arrival.after(arrived)) == expected)
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
            packing: head.bytes.span, body: body.span, under: key.span, facts: facts, groups: nil)
        let fetched = FetchedResponse(
            response, source: .origin, .on(stored: .everyone, length: 1, isStored: true), originStatus: .ok,
            FetchedResponse.Circumstances(
                leader: leader, search: .default, server: .empty, requestTime: arrival, invalidations: nil))
        #expect(fetched.shortfall == nil)
        for shortfall in Self.shortfalls {
            fetched.noteShortfall(shortfall)
            #expect(fetched.shortfall == shortfall)
        }
    }
}
