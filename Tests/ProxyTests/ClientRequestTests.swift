import Bytes
import HTTPSemantics
import RouteTesting
import Routing
import Storage
import Testing

@testable import Proxy

@Suite struct ClientRequestTests {
    @Test(arguments: [("https", false), ("wss", false), ("http", true)])
    func `the scheme that a head states is believed from a trusted proxy alone`(stated: String, isForBoth: Bool)
        throws
    {
        let route = try #require(LoopSettings(upstreams: "one").onlyRoute)
        let parsed = try ParsedHead("GET /x\nX-Forwarded-Proto: \(stated)")
        for isTrusted in [true, false] {
            let request = ClientRequest(
                parsed.head, parsed.fields, route: route,
                scheme: ClientScheme(of: parsed.fields.view, isFromTrustedProxy: isTrusted, isSecure: false),
                key: CacheKey(hash: 1, bytes: ByteSlice("http a.example /x")), visits: 0)
            #expect(request.isForSameURL(isFromTrustedProxy: isTrusted, isSecure: false))
            #expect(request.isForSameURL(isFromTrustedProxy: !isTrusted, isSecure: false) == isForBoth)
        }
    }
}
