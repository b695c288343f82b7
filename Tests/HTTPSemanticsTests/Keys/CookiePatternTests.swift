import Bytes
import HTTPSemantics
import Testing

/// Which requests have a cookie that the operator named.
struct CookiePatternTests {
    private static let session = [CookiePattern(ByteSlice("s"), isPrefix: false)]
    private static let beginnings = [
        CookiePattern(ByteSlice("other"), isPrefix: false), CookiePattern(ByteSlice("wp_"), isPrefix: true),
    ]
    private static let every = [CookiePattern(.empty, isPrefix: true)]

    static let rows: [(patterns: [CookiePattern], fields: String, occurs: Bool)] = [
        ([], "Cookie: s=1", false), (session, "", false), (session, "X: s=1", false),
        (session, "Cookie: s=1", true), (session, "Cookie: t=1", false), (session, "Cookie: t=1; s=2; u=3", true),
        (session, "Cookie: t=1;s=2", true), (session, "Cookie: t=1; \t s \t= 2", true),
        (session, "Cookie: ;; s=1;", true), (session, "Cookie: t=1\nAccept: */*\nCookie: s=1", true),
        // RFC 6265 §5.3 compares names as they are, but not all origins do.
        (session, "Cookie: S=1", true), (session, "Cookie: %73=1", true), (session, "Cookie: s[x]=1", true),
        (session, "Cookie: t[s=1", true), (session, "Cookie: t[s]=1", false), (session, "Cookie: ss=1", false),
        (session, "Cookie: t=s", false),
        (session, "Cookie: t=s=1", false),
        (session, "Cookie: s=", true), (session, "Cookie: s=\"\"", true), (session, "Cookie: s==1", true),
        (session, "Cookie:", false), (session, "Cookie: =s", false),
        (session, "Cookie: " + String(repeating: "t=1;", count: 256), false),
        (session, "Cookie: " + String(repeating: "t=1;", count: 257), true),
        (session, "Cookie: " + String(repeating: ";", count: 300), false),
        ([], "Cookie: " + String(repeating: "t=1;", count: 257), false),
        // Without `=` it is a name to some origins.
        (session, "Cookie: s", true), (session, "Cookie: t; s ;u=1", true), (session, "Cookie: ss", false),
        // Some origins see this cookie, and some do not.
        (session, "Cookie: a=\"; s=1; b=\"", true),
        // These do not see any.
        (session, "Connection: cookie\nCookie: s=1", false), (every, "Connection: Cookie\nCookie: s=1", false),
        (beginnings, "Cookie: wp_=1", true), (beginnings, "Cookie: wp_a=1", true), (beginnings, "Cookie: wp=1", false),
        (beginnings, "Cookie: a_wp_=1", false), (beginnings, "Cookie: WP_a=1", true),
        (beginnings, "Cookie: wp.a=1", true),
        (beginnings, "Cookie: a=1; other=2", true), (beginnings, "Cookie: others=2", false),
        (every, "Cookie: a=1", true), (every, "Cookie: =1", true), (every, "Cookie: a", true),
        (every, "", false), (every, "Cookie:", false), (every, "Cookie: ; ;", false),
    ]

    @Test(arguments: rows)
    func `a pattern selects a cookie by its name, or by the beginning of its name`(
        patterns: [CookiePattern], fields: String, occurs: Bool
    ) {
        let request = head(fields)
        let found = CookiePatterns(patterns).occur(in: request.view)
        #expect(found == occurs, "\(fields)")
        guard !patterns.isEmpty else { return }
        // As many as are not walked, which mean no other cookie.
        let more = (0..<100).map { CookiePattern(ByteSlice("filled\($0)"), isPrefix: $0 % 2 == 0) }
        let foundInMany = CookiePatterns(patterns + more).occur(in: request.view)
        #expect(foundInMany == occurs, "\(fields)")
    }
}
