import Bytes
import HTTPSemantics
import Testing

/// Which requests get one response between them where its origin says nothing of reuse.
struct SharingMatchTests {
    struct Case: Sendable, CustomTestStringConvertible {
        let what: String, one: String, other: String, matchForSharing: Bool

        init(_ what: String, _ one: String, _ other: String, _ matchForSharing: Bool) {
            (self.what, self.one, self.other, self.matchForSharing) = (what, one, other, matchForSharing)
        }

        var testDescription: String { what }
    }

    static let telling: [Case] = [
        Case("nothing at all", "", "", true),
        Case("an argument in a field", "X-HgArg-1: key=1", "X-HgArg-1: key=2", false),
        Case("one has it", "X-HgArg-1: key=1", "", false),
        Case("the other has it", "", "X-HgArg-1: key=1", false),
        Case("absent is not empty", "X-HgArg-1:", "", false),
        Case("the same", "X-HgArg-1: key=1", "X-HgArg-1: key=1", true),
        Case("names in any case", "X-HgArg-1: key=1", "x-hgarg-1: key=1", true),
        Case("values in their case", "X-Api-Key: a", "X-Api-Key: A", false),
        Case("another name", "X-HgArg-1: a", "X-HgArg-2: a", false),
        Case("names and values do not run together", "X-A: b\nX-C: d", "X-A: bX-C: d", false),
        Case("one line more", "X-A: 1\nX-A: 2", "X-A: 1", false),
        Case("lines in another order", "X-A: 1\nX-A: 2", "X-A: 2\nX-A: 1", false),
        Case("lines joined", "X-A: 1\nX-A: 2", "X-A: 1, 2", false),
        Case("an Ajax request", "X-Requested-With: XMLHttpRequest", "", false),
        Case("an origin that answers pages of others", "Origin: https://a", "Origin: https://b", false),
        Case("cookies", "Cookie: a=1", "Cookie: a=2", false),
        Case("cookies in two lines", "Cookie: a=1\nCookie: b=2", "Cookie: a=1; b=2", false),
        Case("media types", "Accept: text/html", "Accept: application/json", false),
        Case("languages", "Accept-Language: de", "Accept-Language: en", false),
        Case("the form of content on GET", "Content-Type: a/b", "", false),
        Case("who says what user it is", "X-Forwarded-User: a\nX-A: 1", "X-Forwarded-User: a\nX-A: 2", false),
        Case("a name that only looks like one of ours", "X-Request-IDs: 1", "X-Request-IDs: 2", false),
        Case("nor one with an underscore", "X_Request_ID: 1", "X_Request_ID: 2", true),
        Case("what Connection names the origin does not see", "Connection: x-a\nX-A: 1", "", true),
        Case("the other's origin sees it", "Connection: x-a\nX-A: 1", "X-A: 1", false),
    ]

    static let indifferent: [String] = [
        "Host", "Connection", "Keep-Alive", "Proxy-Connection", "TE", "Via", "CDN-Loop", "Forwarded", "X-Forwarded-For",
        "X-Forwarded-Proto", "X-Forwarded-Host", "X-Forwarded-Server", "X-Real-IP", "CF-Connecting-IP",
        "True-Client-IP", "User-Agent", "Referer", "Cache-Control", "Pragma", "Range", "If-Range", "If-None-Match",
        "If-Modified-Since", "If-Match", "If-Unmodified-Since", "Authorization", "Date", "Expect", "DNT", "Sec-GPC",
        "Sec-CH-UA-Platform", "Sec-Fetch-Site", "Sec-Purpose", "Upgrade-Insecure-Requests", "Priority", "Purpose",
        "X-Purpose", "X-Moz", "Save-Data", "Device-Memory", "Downlink", "ECT", "RTT", "Viewport-Width", "Width", "DPR",
        "traceparent", "tracestate", "baggage", "sentry-trace", "uber-trace-id", "newrelic", "X-Request-ID",
        "Request-Id", "X-Correlation-ID", "Correlation-Id", "X-Amzn-Trace-Id", "X-Amz-Cf-Id", "X-B3-TraceId", "B3",
        "X-Datadog-Trace-Id", "X-Cloud-Trace-Context", "X-Request-Start", "X-Queue-Start", "X-Unique-ID", "X-Varnish",
        "X-Azure-Ref", "CF-Ray", "Fly-Request-Id", "X-Vercel-Id", "X-Nf-Request-Id", "X-Arr-Log-Id", "X-Timer",
        "X-Azure-SocketIP", "X-Client-Trace-Id", "EagleId", "CloudFront-Viewer-Address",
    ]

    static let codings: [Case] = [
        Case("none and some", "", "Accept-Encoding: gzip", false),
        Case("others", "Accept-Encoding: br", "Accept-Encoding: gzip", false),
        Case("the same in another order", "Accept-Encoding: gzip, br", "Accept-Encoding: br;q=1, gzip", true),
        Case("any, and only as it is", "", "Accept-Encoding: identity", false),
        Case("only as it is", "Accept-Encoding:", "Accept-Encoding: identity", true),
        Case(
            "what the origin does not see", "Connection: accept-encoding\nAccept-Encoding: gzip",
            "Accept-Encoding: gzip", false),
        Case("the same as nothing", "Connection: accept-encoding\nAccept-Encoding: gzip", "", true),
        Case("unknown ones in the same words", "Accept-Encoding: gzip, x", "Accept-Encoding: gzip, x", true),
        Case("unknown ones in other words", "Accept-Encoding: gzip, x", "Accept-Encoding: gzip, y", false),
        Case("any", "Accept-Encoding: *", "Accept-Encoding: gzip", false),
        Case("unknown ones in two lines", "Accept-Encoding: x\nAccept-Encoding: y", "Accept-Encoding: x", false),
    ]

    static let all =
        telling + codings + indifferent.map { Case($0, "\($0): a", "\($0): b", true) }
        + indifferent.map { Case("\($0) in one", "\($0): a", "", true) }

    /// A key says the same as the comparison.
    @Test(arguments: all) func `requests match for sharing if all fields that an origin may use are equal`(row: Case) {
        let (one, other) = (head(row.one), head(row.other))
        let matchForSharing = [Self.matchForSharing(one, other), Self.matchForSharing(other, one)]
        #expect(matchForSharing == [row.matchForSharing, row.matchForSharing])
        let (own, others) = (key(one), key(other))
        #expect((own == others) == row.matchForSharing)
    }

    private static func matchForSharing(_ one: HeadBlock, _ other: HeadBlock, _ policy: CachingPolicy = .init()) -> Bool
    {
        policy.matchForSharing(one.view, other.view)
    }

    private func key(_ fields: HeadBlock, under rule: VaryRule = .none) -> VariantKey? {
        VariantKey(fields.view, under: rule, tellingApartBy: CachingPolicy())
    }

    @Test func `a request without distinguishing fields has no separate key`() {
        #expect(key(head("Host: a\nUser-Agent: b")) == nil)
    }

    @Test func `the fields that Vary names are part of the separate key`() throws {
        let rule = try #require(VariantTests.rule("Vary: User-Agent"))
        let (one, other) = (head("X-A: 1\nUser-Agent: a"), head("X-A: 1\nUser-Agent: b"))
        #expect(key(one, under: rule) != key(other, under: rule))
        #expect(key(one, under: rule) == key(one, under: rule))
    }

    @Test func `a field that is not forwarded does not distinguish requests`() {
        var policy = CachingPolicy()
        let (one, other) = (head("X-Forwarded-User: a"), head("X-Forwarded-User: b"))
        let matchForSharing = Self.matchForSharing(one, other, policy)
        #expect(matchForSharing)
        policy.writesForwarded = false
        let areAlikeNow = Self.matchForSharing(one, other, policy)
        #expect(!areAlikeNow)
        let (first, second) = (head("X-Real-IP: 1.2.3.4"), head("X-Real-IP: 1.2.3.5"))
        let addressesAreAlike = Self.matchForSharing(first, second, policy)
        #expect(addressesAreAlike)
    }

    @Test(arguments: [
        ("Accept: a\nAccept-Language: b\nAccept-Encoding: gzip\nUser-Agent: c", false), ("Cookie: a=b", true),
        ("X-Api-Key: a", true), ("X-Requested-With: a", true), ("Origin: a", true),
    ])
    func `a field that most visitors share does not personalize a request`(fields: String, isPersonalized: Bool) {
        let fields = head(fields)
        let found = CachingPolicy().isPersonalized(fields.view)
        #expect(found == isPersonalized)
    }
}
