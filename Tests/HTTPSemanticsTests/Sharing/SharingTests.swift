import HTTPSemantics
import Testing

/// RFC 9111 §4, on collapsed requests: who else may have a response that is only arriving.
struct SharingTests {
    static let rules: [Row<Sharing>] = [
        Row("§4 fresh", "Cache-Control: max-age=9", .everyone),
        Row("§4 fresh by s-maxage", "Cache-Control: s-maxage=9", .everyone),
        Row("§4 fresh by Expires", "Date: {0}\nExpires: {9}", .everyone),
        Row("§4.2.2 fresh by a guess", "Last-Modified: {-1000}", .everyone),
        Row("§4.1 for those who match", "Cache-Control: max-age=9\nVary: Accept", .everyone),
        Row("§4 stale from the start", "Cache-Control: max-age=0", .waitersOnly),
        Row("§4 stale by s-maxage", "Cache-Control: s-maxage=0, max-age=9", .nobody(.mustRevalidate)),
        Row("§4 stale by Expires", "Expires: 0", .waitersOnly),
        Row("§4 too old on arrival", "Cache-Control: max-age=9\nAge: 9", .waitersOnly),
        Row("§4 too old by its date", "Cache-Control: max-age=9\nDate: {-20}", .waitersOnly),
        Row("§4 stale, for those who match", "Cache-Control: max-age=0\nVary: Accept", .waitersOnly),
        Row("§4 nobody said how long", "", .whileArriving),
        Row("§4 nor with a validator", "ETag: \"a\"", .whileArriving),
        Row("§4 for those who match", "Vary: Accept", .whileArriving),
        Row("§5.2.2.9 public", "Cache-Control: public", .whileArriving),
        Row("§5.2.2.2 must-revalidate", "Cache-Control: must-revalidate", .nobody(.mustRevalidate)),
        Row("§5.2.2.8 proxy-revalidate", "Cache-Control: public, proxy-revalidate", .nobody(.mustRevalidate)),
        Row("§5.2.2.2 stale from the start", "Cache-Control: max-age=0, must-revalidate", .nobody(.mustRevalidate)),
        Row(
            "§5.2.2.2 too old on arrival", "Cache-Control: max-age=9, must-revalidate\nAge: 9", .nobody(.mustRevalidate)
        ),
        Row("§5.2.2.7 private", "Cache-Control: private, max-age=9", .nobody(.prohibited(.private))),
        Row("§5.2.2.7 private for some fields", "Cache-Control: private=\"foo\", max-age=9", .everyone),
        Row("§5.2.2.5 no-store", "Cache-Control: no-store", .nobody(.prohibited(.noStore))),
        Row("§5.2.2.4 no-cache", "Cache-Control: no-cache", .nobody(.noCache)),
        Row(
            "§5.2.2.4 no-cache, though it can be validated", "Cache-Control: no-cache, max-age=9\nETag: \"a\"",
            .nobody(.noCache)),
        Row("§5.2.2.4 no-cache for some fields", "Cache-Control: no-cache=\"foo\", max-age=9", .everyone),
        Row("§7.3 Set-Cookie", "Cache-Control: max-age=9\nSet-Cookie: a=b", .nobody(.prohibited(.setCookie))),
        Row("§7.3 Set-Cookie without anything", "Set-Cookie: a=b", .nobody(.prohibited(.setCookie))),
        Row("§7.3 Set-Cookie with public", "Cache-Control: public, max-age=9\nSet-Cookie: a=b", .everyone),
        Row("§4.1 Vary: *", "Cache-Control: max-age=9\nVary: *", .nobody(.prohibited(.varyStar))),
        Row("§5.2.2.2 must-revalidate is no obstacle", "Cache-Control: must-revalidate, max-age=9", .everyone),
        Row("§5.2.2.3 understood", "Cache-Control: must-understand, no-store, max-age=9", .everyone),
    ]

    @Test(arguments: rules)
    func `a response to GET is shared as its directives say`(row: Row<Sharing>) {
        let sharing = facts(row.fields).sharing(
            answering: .plainGet, policy: CachingPolicy())
        #expect(sharing == row.expected)
    }

    /// What its origin says, and whether several may listen.
    static let permissions: [Row<Bool>] = [
        Row("nothing said", "", false),
        Row("a guess", "Last-Modified: {-1000}", false),
        Row("the operator's default", "X: default", false),
        Row("stale from the start", "Cache-Control: max-age=0", false),
        Row("who may have it stale is not who may listen", "Cache-Control: max-age=0, stale-if-error=9", false),
        Row("by Expires", "Expires: 0", false),
        Row("§5.2.2.9 public", "Cache-Control: public", true),
        Row("public, and stale from the start", "Cache-Control: public, max-age=0", true),
        Row("a lifetime", "Cache-Control: max-age=9", true),
        Row("a lifetime that is over", "Cache-Control: max-age=9\nAge: 10", true),
        Row("§5.2.2.10 s-maxage", "Cache-Control: s-maxage=9", true),
        Row("§5.3 Expires", "Date: {0}\nExpires: {9}", true),
        Row("RFC 9213", "CDN-Cache-Control: max-age=9", true),
    ]

    @Test(arguments: permissions)
    func `an incremental response is for one client, unless the origin permits sharing`(row: Row<Bool>) {
        var policy = CachingPolicy()
        if row.fields == "X: default" { policy.defaultLifetimes = StatusLifetimes(other: .seconds(9)) }
        for kind in ["Content-Type: text/event-stream", "Incremental: ?1"] {
            let facts = facts(row.fields + (row.fields.isEmpty ? "" : "\n") + kind, policy: policy)
            let sharing = facts.sharing(answering: .plainGet, policy: policy)
            #expect((sharing == .nobody(.incremental)) == !row.expected)
            let storability = facts.storability(answering: .plainGet, answersTarget: false, policy: policy)
            #expect((storability == .doNotStore(.incremental)) == !row.expected)
        }
    }

    static let incremental: [(String, Bool)] = [
        ("Content-Type: text/event-stream", true), ("Content-Type: TEXT/EVENT-STREAM ; charset=utf-8", true),
        ("Content-Type: multipart/x-mixed-replace; boundary=x", true), ("Content-Type: multipart/mixed", false),
        ("Content-Type: text/event-stream2", false), ("Content-Type: ", false), ("X: text/event-stream", false),
        ("Incremental: ?1", true), ("INCREMENTAL: ?1;a;b=2", true), ("Incremental: ?1 ;a", true),
        ("Incremental: ?0", false), ("Incremental: 1", false), ("Incremental: ?10", false), ("Incremental: ", false),
        ("Incremental: ?1, ?1", false), ("Incremental: ?1\nIncremental: ?1", false), ("Incremental: \"?1\"", false),
        ("", false),
    ]

    @Test(arguments: incremental)
    func `a response is incremental by its media type, or by its Incremental field`(fields: String, holds: Bool) {
        #expect(facts(fields).contains(.isIncremental) == holds)
    }

    static let separating: [Row<Bool>] = [
        Row("nothing said", "", true),
        Row("stale from the start", "Cache-Control: max-age=0", true),
        Row("by Expires", "Expires: 0", true),
        Row("with a validator", "Cache-Control: max-age=0\nETag: \"a\"", true),
        Row("a lifetime, though it is over", "Cache-Control: max-age=9\nAge: 9", false),
        Row("a guessed lifetime", "Last-Modified: {-1000}", false),
        Row("§5.2.2.9 public", "Cache-Control: public", false),
        Row("public, and stale from the start", "Cache-Control: public, max-age=0", false),
        Row(
            "RFC 5861 §4: anybody may have it if the origin fails", "Cache-Control: max-age=0, stale-if-error=9", false),
        Row("RFC 5861 §3: anybody may have it stale", "Cache-Control: max-age=0, stale-while-revalidate=9", false),
    ]

    @Test(arguments: separating)
    func `only a response without lifetime that is not public is limited to matching requests`(row: Row<Bool>) {
        var policy = CachingPolicy()
        policy.staleWhileRevalidate = 9
        policy.staleIfError = 9
        #expect(facts(row.fields, policy: policy).contains(.separatesRequests) == row.expected)
        policy.sharesAcrossCookies = true
        #expect(!facts(row.fields, policy: policy).contains(.separatesRequests))
    }

    static let separatingWhereNothingIsStored: [Row<Bool>] = [
        Row("a lifetime", "Cache-Control: max-age=9", true),
        Row("a guessed lifetime", "Last-Modified: {-1000}", true),
        Row("§5.2.2.9 public", "Cache-Control: public, max-age=9", false),
        Row("§5.2.2.10 s-maxage, which is for shared caches only", "Cache-Control: s-maxage=9", false),
    ]

    @Test(arguments: separatingWhereNothingIsStored)
    func `with storing turned off, a lifetime does not make a response public`(row: Row<Bool>) {
        var policy = CachingPolicy()
        #expect(!facts(row.fields, policy: policy).contains(.separatesRequests))
        policy.storesResponses = false
        #expect(facts(row.fields, policy: policy).contains(.separatesRequests) == row.expected)
    }

    @Test func `a server error is shared even among requests that do not match`() {
        #expect(!facts("", status: 503).contains(.separatesRequests))
        #expect(facts("", status: 404).contains(.separatesRequests))
    }

    static let authorized: [Row<Sharing>] = [
        Row("§3.5 nothing said", "Cache-Control: max-age=9", .nobody(.prohibited(.authorization))),
        Row("§3.5 nothing at all", "", .nobody(.prohibited(.authorization))),
        Row("§3.5 public", "Cache-Control: public, max-age=9", .everyone),
        Row("§3.5 s-maxage", "Cache-Control: s-maxage=9", .everyone),
        Row("§3.5 s-maxage=0", "Cache-Control: s-maxage=0", .nobody(.mustRevalidate)),
        Row("§3.5 must-revalidate", "Cache-Control: max-age=9, must-revalidate", .everyone),
    ]

    @Test(arguments: authorized)
    func `a response to Authorization is shared only if the origin permits`(row: Row<Sharing>) {
        let sharing = facts(row.fields).sharing(
            answering: RequestFacts(
                method: .get, directives: .none, hasAuthorization: true, hasPassCookie: false, isBound: false),
            policy: CachingPolicy())
        #expect(sharing == row.expected)
    }

    static let statuses: [(UInt16, String, Sharing)] = [
        (404, "", .whileArriving), (301, "", .whileArriving),
        (404, "Cache-Control: max-age=9", .everyone), (302, "Cache-Control: max-age=9", .everyone),
        (302, "", .nobody(.notCacheable)), (403, "", .nobody(.notCacheable)),
        (500, "", .waitersOnly), (502, "", .waitersOnly), (503, "", .waitersOnly),
        (503, "Vary: Accept", .waitersOnly), (503, "Cache-Control: max-age=9", .everyone),
        (503, "Cache-Control: no-store", .nobody(.prohibited(.noStore))),
        (503, "Cache-Control: private", .nobody(.prohibited(.private))),
        (503, "Set-Cookie: a=b", .nobody(.prohibited(.setCookie))), (503, "Cache-Control: no-cache", .nobody(.noCache)),
        (206, "Cache-Control: max-age=9\nETag: \"a\"\nContent-Range: bytes 0-9/20", .nobody(.range)),
        (416, "Cache-Control: max-age=9", .nobody(.range)),
        (304, "Cache-Control: max-age=9", .nobody(.prohibited(.status))),
        (103, "", .nobody(.prohibited(.status))),
        (599, "Cache-Control: must-understand, max-age=9", .nobody(.prohibited(.status))),
    ]

    /// RFC 6585 §3 to §6 of the first four; RFC 9110 §15.5, RFC 8470 §5.2.
    static let aboutOneRequest: [UInt16] = [
        428, 429, 431, 511, 401, 406, 407, 408, 411, 412, 413, 414, 415, 417, 421, 425, 426,
    ]

    @Test(arguments: aboutOneRequest)
    func `a response about one request is neither shared nor stored, whatever its fields`(status: UInt16) {
        var policy = CachingPolicy()
        policy.setCookie = .always
        policy.defaultLifetimes = StatusLifetimes(
            [StatusLifetimes.Lifetime(Status(status), .seconds(9))], other: .seconds(9))
        for fields in [
            "", "Cache-Control: max-age=9", "Cache-Control: public, s-maxage=9", "Cache-Control: public",
            "Cache-Control: must-understand, no-store, max-age=9", "Last-Modified: {-1000}", "Date: {0}\nExpires: {9}",
            "CDN-Cache-Control: public, max-age=9", "Cache-Control: stale-if-error=9\nETag: \"a\"",
        ] {
            let facts = facts(fields, status: status, policy: policy)
            let sharing = facts.sharing(answering: .plainGet, policy: policy)
            let storability = facts.storability(answering: .plainGet, answersTarget: false, policy: policy)
            #expect(sharing == .nobody(.prohibited(.status)), "\(fields)")
            #expect(storability == .doNotStore(.prohibited(.status)), "\(fields)")
            #expect(!facts.supersedesStored)
        }
    }

    /// 400, 422, and what nobody registered, which counts as 400 (RFC 9110 §15).
    @Test(arguments: [400, 422, 418, 494, 499] as [UInt16])
    func `a response that may be about the resource is shared if it has a lifetime`(status: UInt16) {
        var policy = CachingPolicy()
        policy.defaultLifetimes = StatusLifetimes(other: .seconds(9))
        for fields in ["Cache-Control: max-age=9", "Cache-Control: s-maxage=9", "Date: {0}\nExpires: {9}"] {
            #expect(
                facts(fields, status: status, policy: policy).sharing(answering: .plainGet, policy: policy) == .everyone
            )
        }
        for fields in [
            "", "Cache-Control: public", "Cache-Control: public, max-age=0", "Expires: 0", "Last-Modified: {-1000}",
        ] {
            let sharing = facts(fields, status: status, policy: policy).sharing(answering: .plainGet, policy: policy)
            #expect(sharing == .nobody(.prohibited(.status)), "\(fields)")
        }
    }

    @Test func `an error to a request with Authorization marks the key for Authorization only`() {
        let request = RequestFacts(
            method: .get, directives: .none, hasAuthorization: true, hasPassCookie: false, isBound: false)
        let sharing = facts("Cache-Control: max-age=9", status: 401).sharing(
            answering: request, policy: CachingPolicy())
        #expect(sharing == .nobody(.prohibited(.authorization)))
        let allowed = facts("Cache-Control: public, max-age=9", status: 429)
        #expect(allowed.sharing(answering: request, policy: CachingPolicy()) == .nobody(.prohibited(.status)))
    }

    @Test(arguments: statuses)
    func `a status other than success is shared with care`(status: UInt16, fields: String, expected: Sharing) {
        let sharing = facts(fields, status: status).sharing(
            answering: .plainGet, policy: CachingPolicy()
        )
        #expect(sharing == expected)
    }

    @Test func `the operator can turn off the sharing of server errors`() {
        var policy = CachingPolicy()
        policy.sharesErrors = false
        let sharing = facts("", status: 503, policy: policy).sharing(
            answering: .plainGet, policy: policy
        )
        #expect(sharing == .nobody(.serverError))
    }

    @Test(arguments: HTTPSemantics.Method.allCases)
    func `only responses to GET and HEAD are shared`(method: HTTPSemantics.Method) {
        let sharing = facts("Cache-Control: max-age=9").sharing(
            answering: RequestFacts(
                method: method, directives: .none, hasAuthorization: false, hasPassCookie: false, isBound: false),
            policy: CachingPolicy()
        )
        #expect(sharing == (method == .get || method == .head ? .everyone : .nobody(.method)))
    }

    @Test func `a response to a request with no-store is not shared`() {
        let sharing = facts("Cache-Control: max-age=9").sharing(
            answering: RequestFacts(
                method: .get, directives: request("Cache-Control: no-store"), hasAuthorization: false,
                hasPassCookie: false, isBound: false),
            policy: CachingPolicy()
        )
        #expect(sharing == .nobody(.prohibited(.requestNoStore)))
    }

    @Test func `a response to a pass is not shared, whatever its fields`() {
        let request = RequestFacts(
            method: .get, directives: .none, hasAuthorization: false, hasPassCookie: true, isBound: false)
        for fields in ["Cache-Control: public, max-age=9", "Cache-Control: private", ""] {
            let facts = facts(fields)
            let sharing = facts.sharing(answering: request, policy: CachingPolicy())
            #expect(sharing == .nobody(.prohibited(.passCookie)))
            let storability = facts.storability(answering: request, answersTarget: false, policy: CachingPolicy())
            #expect(storability == .doNotStore(.prohibited(.passCookie)))
        }
    }

    @Test func `a response on a bound connection is not shared, whatever its fields`() {
        let request = RequestFacts(
            method: .get, directives: .none, hasAuthorization: false, hasPassCookie: false, isBound: true)
        for fields in ["Cache-Control: public, max-age=9", ""] {
            let facts = facts(fields)
            let sharing = facts.sharing(answering: request, policy: CachingPolicy())
            #expect(sharing == .nobody(.prohibited(.boundConnection)))
            let storability = facts.storability(answering: request, answersTarget: false, policy: CachingPolicy())
            #expect(storability == .doNotStore(.prohibited(.boundConnection)))
        }
    }

    @Test(
        arguments: [
            (401, "WWW-Authenticate: NTLM", true), (401, "WWW-Authenticate: negotiate", true),
            (401, "WWW-Authenticate: Basic realm=\"a, b\"\nWWW-Authenticate: NeGoTiAtE", true),
            (401, "WWW-Authenticate: Basic realm=\"x\", NTLM", true),
            (401, "WWW-Authenticate: Basic realm=\"x, NTLM", true),
            (401, "WWW-Authenticate: NTLM TlRMTVNTUAACAAAA==", true),
            (407, "Proxy-Authenticate: Digest a=b , ntlm", true),
            (401, "WWW-Authenticate: Basic realm=NTLM", false), (401, "WWW-Authenticate: NTLMv2", false),
            (401, "Proxy-Authenticate: NTLM", false), (407, "WWW-Authenticate: NTLM", false),
            (200, "WWW-Authenticate: Negotiate", false), (401, "A: b", false),
        ] as [(UInt16, String, Bool)])
    func `a challenge for connection credentials is distinguished from other responses`(
        status: UInt16, fields: String, expected: Bool
    ) {
        let block = head(fields)
        let found = block.view.challengesConnection(Status(status))
        #expect(found == expected)
    }

    @Test(
        arguments: [
            ("Authorization: NTLM TlRMTVNTUAABAAAA", true), ("Authorization: Negotiate YII=", true),
            ("authorization: negotiate", true), ("Proxy-Authorization: NTLM TlRM", true),
            ("Authorization: Basic TlRMTQ==", false), ("Authorization: Bearer ntlm", false), ("Cookie: NTLM", false),
        ] as [(String, Bool)])
    func `connection credentials are distinguished from request credentials`(fields: String, expected: Bool) {
        let block = head(fields)
        let found = block.view.hasConnectionCredentials
        #expect(found == expected)
    }

    @Test func `reasons have fixed public names`() {
        let prohibited = Prohibition.allCases.map(NotSharedReason.prohibited).map { "\($0.name)" }
        #expect(
            prohibited == [
                "pass-cookie", "bound-connection", "status", "request-no-store", "no-store",
                "private", "authorization", "set-cookie",
                "vary-star",
                "vary-forwarded",
            ])
        let others: [NotSharedReason] = [
            .method, .noCache, .mustRevalidate, .unlike, .range, .outgrown, .part, .notCacheable, .incremental,
            .serverError,
            .search,
        ]
        #expect(
            others.map { "\($0.name)" } == [
                "method", "no-cache", "must-revalidate", "unlike", "range", "too-large", "part", "not-cacheable",
                "incremental", "server-error",
                "no-vary-search",
            ])
    }

    static let scopes: [(HTTPSemantics.Method, String, hasContent: Bool, RequestScope)] = [
        (.get, "", false, .shareable), (.head, "", false, .shareable),
        (.get, "Authorization: Basic eA==\nCookie: a=b\nRange: bytes=0-1", false, .shareable),
        (.get, "If-None-Match: \"a\"\nIf-Modified-Since: {0}", false, .shareable),
        (.get, "", true, .pass(.bypass)), (.head, "", true, .pass(.bypass)),
        (.get, "If-Match: \"a\"", false, .pass(.bypass)), (.get, "If-Unmodified-Since: {0}", false, .pass(.bypass)),
        (.get, "Upgrade: websocket", false, .pass(.bypass)),
        (.post, "", true, .pass(.method)), (.put, "", true, .pass(.method)), (.delete, "", false, .pass(.method)),
        (.options, "", false, .pass(.method)), (.trace, "", false, .pass(.method)), (.other, "", false, .pass(.method)),
        (.otherSafe, "", true, .pass(.method)), (.otherSafe, "", false, .pass(.method)),
        (.otherIdempotent, "", false, .pass(.method)),
        (.get, "X-HTTP-Method-Override: DELETE", false, .shareable),
    ]

    @Test(arguments: scopes)
    func `a request that only the origin can answer is forwarded alone`(
        method: HTTPSemantics.Method, fields: String, hasContent: Bool, expected: RequestScope
    ) {
        let block = head(fields)
        let scope = RequestScope(
            block.view, method: method, hasContent: hasContent, hasPassCookie: false, isBound: false)
        #expect(scope == expected)
        let withCookie = RequestScope(
            block.view, method: method, hasContent: hasContent, hasPassCookie: true, isBound: false)
        #expect(withCookie == (expected == .shareable ? .pass(.bypass) : expected))
    }
}
