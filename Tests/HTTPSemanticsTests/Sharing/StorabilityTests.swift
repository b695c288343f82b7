import HTTPSemantics
import Testing

/// RFC 9111 §3, §3.5: what is kept for later requests.
struct StorabilityTests {
    func verdict(
        _ fields: String, status: UInt16 = 200, method: HTTPSemantics.Method = .get, asked: String = "",
        hasAuthorization: Bool = false, answersTarget: Bool = false, policy: CachingPolicy = CachingPolicy()
    ) -> Storability {
        facts(fields, status: status, policy: policy).storability(
            answering: RequestFacts(
                method: method, directives: request(asked), hasAuthorization: hasAuthorization, hasPassCookie: false,
                isBound: false),
            answersTarget: answersTarget, policy: policy
        )
    }

    @Test func `each reason has its own name, a token`() {
        let reasons =
            Prohibition.allCases.map(NotStoredReason.prohibited) + [
                .method, .notCacheable, .incremental, .noFreshness, .partial, .cachingOff, .requestContent,
                .requestCondition, .tooLarge, .outdated,
            ]
        let names = reasons.map { "\($0.name)" }
        #expect(Set(names).count == reasons.count)
        for name in names { #expect(name.allSatisfy { $0 == "-" || $0.isASCII && $0.isLowercase }, "\(name)") }
    }

    static let rules: [Row<Storability>] = [
        Row("§3 max-age", "Cache-Control: max-age=9", .store),
        Row("§3 s-maxage", "Cache-Control: s-maxage=9", .store),
        Row("§3 Expires", "Date: {0}\nExpires: {9}", .store),
        Row("§3 a guess", "Last-Modified: {-1000}", .store),
        Row("§3 nothing to gain", "", .doNotStore(.noFreshness)),
        Row("§3 nothing to gain from max-age=0", "Cache-Control: max-age=0", .doNotStore(.noFreshness)),
        Row(
            "§3 nothing to gain from being stale already", "Cache-Control: max-age=9\nAge: 10",
            .doNotStore(.noFreshness)),
        Row("§3 an entity tag to validate with", "Cache-Control: max-age=0\nETag: \"a\"", .store),
        Row("§3 a weak one", "ETag: W/\"a\"", .store),
        Row("§3 a date to validate with", "Cache-Control: max-age=0\nLast-Modified: {-9}", .store),
        Row("§3 no tag at all", "Cache-Control: max-age=0\nETag: a", .doNotStore(.noFreshness)),
        Row("RFC 5861 §3 to be served stale", "Cache-Control: max-age=0, stale-while-revalidate=9", .store),
        Row("RFC 5861 §4 to be served stale", "Cache-Control: max-age=0, stale-if-error=9", .store),
        Row(
            "§5.2.2.2 but not if it must be validated", "Cache-Control: max-age=0, stale-if-error=9, must-revalidate",
            .doNotStore(.noFreshness)),
        Row("§5.2.2.5", "Cache-Control: no-store, max-age=9", .doNotStore(.prohibited(.noStore))),
        Row(
            "§5.2.2.5 whatever else is said", "Cache-Control: public, no-store, immutable, max-age=9",
            .doNotStore(.prohibited(.noStore))),
        Row("§5.2.2.7", "Cache-Control: private, max-age=9", .doNotStore(.prohibited(.private))),
        Row(
            "§4.2.1 private and public", "Cache-Control: public, private, max-age=9", .doNotStore(.prohibited(.private))
        ),
        Row("§5.2.2.7 with names", "Cache-Control: private=\"foo\", max-age=9", .store),
        Row("§5.2.2.4 no-cache with a validator", "Cache-Control: no-cache\nETag: \"a\"", .store),
        Row("§5.2.2.4 no-cache without", "Cache-Control: no-cache, max-age=9", .doNotStore(.noFreshness)),
        Row("§5.2.2.4 with names", "Cache-Control: no-cache=\"foo\", max-age=9", .store),
        Row("§5.2.2.3 understood: no-store is ignored", "Cache-Control: no-store, must-understand, max-age=9", .store),
        Row(
            "§5.2.2.3 private is not", "Cache-Control: private, must-understand, max-age=9",
            .doNotStore(.prohibited(.private))),
        Row("§7.3 Set-Cookie", "Cache-Control: max-age=9\nSet-Cookie: a=b", .doNotStore(.prohibited(.setCookie))),
        Row("§7.3 Set-Cookie with public", "Cache-Control: public, max-age=9\nSet-Cookie: a=b", .store),
        Row(
            "§5.2.2.7 a cookie that is not stored", "Cache-Control: private=\"Set-Cookie\", max-age=9\nSet-Cookie: a=b",
            .store),
        Row("§5.2.2.4 likewise", "Cache-Control: no-cache=\"x, set-cookie\", max-age=9\nSet-Cookie: a=b", .store),
        Row("§4.1 Vary", "Cache-Control: max-age=9\nVary: Accept", .store),
        Row("§4.1 Vary: *", "Cache-Control: max-age=9\nVary: *", .doNotStore(.prohibited(.varyStar))),
        Row("§4.1 * among others", "Cache-Control: max-age=9\nVary: Accept, *", .doNotStore(.prohibited(.varyStar))),
        Row(
            "§4.1 * in another line", "Cache-Control: max-age=9\nVary: Accept\nVary: *",
            .doNotStore(.prohibited(.varyStar))),
        Row("§5.4 Pragma means nothing", "Cache-Control: max-age=9\nPragma: no-cache", .store),
        Row("§5.2.3 unknown directives", "Cache-Control: foo, max-age=9", .store),
    ]

    @Test func `public permits storing any final status`() {
        // §3: neither an explicit lifetime nor a status that may be guessed for
        #expect(verdict("Cache-Control: public\nLast-Modified: {-1000}", status: 302) == .store)
        #expect(verdict("Cache-Control: public\nETag: \"a\"", status: 403) == .store)
        #expect(verdict("ETag: \"a\"", status: 403) == .doNotStore(.notCacheable))
    }

    @Test(arguments: rules)
    func `a response to GET is stored as its directives say`(row: Row<Storability>) {
        #expect(verdict(row.fields) == row.expected)
    }

    static let authorized: [Row<Storability>] = [
        Row("§3.5 nothing said", "Cache-Control: max-age=9", .doNotStore(.prohibited(.authorization))),
        Row("§3.5 Expires", "Date: {0}\nExpires: {9}", .doNotStore(.prohibited(.authorization))),
        Row("§3.5 a validator", "ETag: \"a\"", .doNotStore(.prohibited(.authorization))),
        Row("§3.5 public", "Cache-Control: public, max-age=9", .store),
        Row("§3.5 must-revalidate", "Cache-Control: must-revalidate, max-age=9", .store),
        Row("§3.5 s-maxage", "Cache-Control: s-maxage=9", .store),
        Row(
            "§3.5 an argument that must-revalidate does not have permits nothing",
            "Cache-Control: max-age=60, must-revalidate=no", .doNotStore(.prohibited(.authorization))),
        Row(
            "§3.5 nor does a broken s-maxage", "Cache-Control: s-maxage=abc\nETag: \"a\"",
            .doNotStore(.prohibited(.authorization))),
        Row("§3.5 s-maxage=0 with a validator", "Cache-Control: s-maxage=0\nETag: \"a\"", .store),
        Row(
            "§3.5 proxy-revalidate does not", "Cache-Control: proxy-revalidate, max-age=9",
            .doNotStore(.prohibited(.authorization))),
        Row("§3.5 immutable does not", "Cache-Control: immutable, max-age=9", .doNotStore(.prohibited(.authorization))),
        Row(
            "§3.5 public does not undo no-store", "Cache-Control: public, no-store", .doNotStore(.prohibited(.noStore))),
        Row("§3.5 nor private", "Cache-Control: public, private", .doNotStore(.prohibited(.private))),
        Row(
            "§3.5 must-revalidate beside private is no word about others",
            "Cache-Control: max-age=0, private, must-revalidate", .doNotStore(.prohibited(.authorization))),
        Row(
            "§3.5 nor beside no-store", "Cache-Control: no-store, must-revalidate",
            .doNotStore(.prohibited(.authorization))),
        Row("§3.5 public in a targeted field", "CDN-Cache-Control: public, max-age=9", .store),
    ]

    @Test(arguments: authorized)
    func `a response to Authorization is stored only if the origin permits`(row: Row<Storability>) {
        #expect(verdict(row.fields, hasAuthorization: true) == row.expected)
    }

    static let statuses: [(UInt16, explicit: Storability, guessed: Storability)] = [
        (200, .store, .store), (203, .store, .store), (204, .store, .store), (300, .store, .store),
        (301, .store, .store),
        (308, .store, .store), (404, .store, .store), (405, .store, .store), (410, .store, .store),
        (501, .store, .store),
        (201, .store, .doNotStore(.notCacheable)), (202, .store, .doNotStore(.notCacheable)),
        (302, .store, .doNotStore(.notCacheable)), (303, .store, .doNotStore(.notCacheable)),
        (307, .store, .doNotStore(.notCacheable)), (400, .store, .doNotStore(.prohibited(.status))),
        (403, .store, .doNotStore(.notCacheable)),
        (500, .store, .doNotStore(.notCacheable)), (502, .store, .doNotStore(.notCacheable)),
        (503, .store, .doNotStore(.notCacheable)), (504, .store, .doNotStore(.notCacheable)),
        (299, .store, .doNotStore(.notCacheable)), (499, .store, .doNotStore(.prohibited(.status))),
        (599, .store, .doNotStore(.notCacheable)),
        (100, .doNotStore(.prohibited(.status)), .doNotStore(.prohibited(.status))),
        (103, .doNotStore(.prohibited(.status)), .doNotStore(.prohibited(.status))),
        (304, .doNotStore(.prohibited(.status)), .doNotStore(.prohibited(.status))),
    ]

    @Test(arguments: statuses)
    func `a final status that is not about one request is stored if its lifetime is explicit`(
        status: UInt16, explicit: Storability, guessed: Storability
    ) {
        #expect(verdict("Cache-Control: max-age=9", status: status) == explicit)
        #expect(verdict("Last-Modified: {-1000}", status: status) == guessed)
    }

    static let understood: [(UInt16, Bool)] = [
        (200, true), (204, true), (301, true), (302, true), (404, true), (418, false), (451, true), (503, true),
        // Understood, and so never stored (RFC 6585).
        (428, false), (429, false), (431, false), (511, false),
        (299, false), (399, false), (499, false), (512, false), (599, false), (999, false),
    ]

    @Test(arguments: understood)
    func `must-understand permits storing only statuses that are understood`(status: UInt16, isUnderstood: Bool) {
        let expected: Storability = isUnderstood ? .store : .doNotStore(.prohibited(.status))
        #expect(verdict("Cache-Control: must-understand, max-age=9", status: status) == expected)
        #expect(verdict("Cache-Control: must-understand, no-store, max-age=9", status: status) == expected)
    }

    @Test func `a redirection whose status the operator gives a lifetime is stored`() {
        var policy = CachingPolicy()
        policy.defaultLifetimes = StatusLifetimes(
            [StatusLifetimes.Lifetime(Status(302), .seconds(9))], other: .seconds(60))
        #expect(verdict("", status: 302, policy: policy) == .store)
        #expect(verdict("", status: 307, policy: policy) == .doNotStore(.notCacheable))
        #expect(verdict("Cache-Control: private", status: 302, policy: policy) == .doNotStore(.prohibited(.private)))
        #expect(verdict("Set-Cookie: a=b", status: 302, policy: policy) == .doNotStore(.prohibited(.setCookie)))
        #expect(verdict("Cache-Control: max-age=0", status: 302, policy: policy) == .doNotStore(.noFreshness))
    }

    @Test(arguments: HTTPSemantics.Method.allCases)
    func `only responses to GET are stored`(method: HTTPSemantics.Method) {
        let expected: Storability = method == .get ? .store : .doNotStore(.method)
        #expect(verdict("Cache-Control: max-age=9", method: method, answersTarget: true) == expected)
    }

    @Test func `a response to POST is stored if route, lifetime and target permit`() {
        var policy = CachingPolicy()
        policy.storesPostAnswers = true
        let fields = "Cache-Control: max-age=9"
        #expect(verdict(fields, method: .post, answersTarget: true, policy: policy) == .store)
        #expect(verdict(fields, method: .post, answersTarget: false, policy: policy) == .doNotStore(.method))
        #expect(
            verdict(fields, status: 201, method: .post, answersTarget: true, policy: policy) == .doNotStore(.method))
        #expect(
            verdict("Last-Modified: {-1000}", method: .post, answersTarget: true, policy: policy)
                == .doNotStore(.method))
        #expect(verdict(fields, method: .put, answersTarget: true, policy: policy) == .doNotStore(.method))
    }

    @Test func `a request with no-store prevents storing`() {
        // §5.2.1.5
        #expect(
            verdict("Cache-Control: max-age=9", asked: "Cache-Control: no-store")
                == .doNotStore(.prohibited(.requestNoStore)))
        // Other wishes do not.
        #expect(verdict("Cache-Control: max-age=9", asked: "Cache-Control: no-cache, max-age=0") == .store)
    }

    static let parts: [Row<Storability>] = [
        Row("§3.3 with a strong tag", "Cache-Control: max-age=9\nETag: \"a\"\nContent-Range: bytes 0-9/20", .storePart),
        Row(
            "§3.3 with a weak one, which lets nothing be combined",
            "Cache-Control: max-age=9\nETag: W/\"a\"\nContent-Range: bytes 0-9/20", .storePart),
        Row("§3.3 with none", "Cache-Control: max-age=9\nContent-Range: bytes 0-9/20", .storePart),
        Row("§3.3 not without Content-Range", "Cache-Control: max-age=9\nETag: \"a\"", .doNotStore(.partial)),
        Row(
            "§3.3 the other rules hold", "Cache-Control: no-store\nETag: \"a\"\nContent-Range: bytes 0-9/20",
            .doNotStore(.prohibited(.noStore))),
    ]

    @Test(arguments: parts)
    func `a part is stored if its range is known`(row: Row<Storability>) {
        #expect(verdict(row.fields, status: 206) == row.expected)
        var policy = CachingPolicy()
        policy.storesPartialContent = false
        #expect(verdict(row.fields, status: 206, policy: policy) != .storePart)
    }

    static let cookies: [(CachingPolicy.SetCookieRule, String, Storability)] = [
        (.whenPublic, "Cache-Control: max-age=9", .doNotStore(.prohibited(.setCookie))),
        (.whenPublic, "Cache-Control: public, max-age=9", .store),
        (.never, "Cache-Control: max-age=9", .doNotStore(.prohibited(.setCookie))),
        (.never, "Cache-Control: public, max-age=9", .doNotStore(.prohibited(.setCookie))),
        (.always, "Cache-Control: max-age=9", .store), (.always, "Cache-Control: public, max-age=9", .store),
    ]

    @Test(arguments: cookies)
    func `the operator decides whether responses with cookies are stored`(
        rule: CachingPolicy.SetCookieRule, fields: String, expected: Storability
    ) {
        var policy = CachingPolicy()
        policy.setCookie = rule
        #expect(verdict(fields + "\nSet-Cookie: a=b", policy: policy) == expected)
    }
}
