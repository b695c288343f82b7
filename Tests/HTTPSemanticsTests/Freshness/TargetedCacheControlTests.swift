import Bytes
import HTTPSemantics
import Testing

/// RFC 9213: directives aimed at this cache take the place of `Cache-Control` and `Expires`.
struct TargetedCacheControlTests {
    private static func text(_ length: Int) -> String { String(repeating: "x", count: length) }

    static let lifetimes: [Row<UInt32>] = [
        Row("RFC 9213 §2.2 instead of Cache-Control", "CDN-Cache-Control: max-age=9\nCache-Control: max-age=5", 9),
        Row("RFC 9213 §2.2 also where that says more", "CDN-Cache-Control: max-age=9\nCache-Control: s-maxage=5", 9),
        Row("RFC 9213 §2.2 Expires is ignored too", "CDN-Cache-Control: none\nDate: {0}\nExpires: {99}", 0),
        Row("RFC 9213 §2.2 and Cache-Control without any", "CDN-Cache-Control: none\nCache-Control: max-age=5", 0),
        Row("RFC 9213 §2.1 an empty field is not there", "CDN-Cache-Control:\nCache-Control: max-age=5", 5),
        Row("RFC 9213 §2.1 nor one that does not parse", "CDN-Cache-Control: max-age=9,,\nCache-Control: max-age=5", 5),
        Row(
            "RFC 9213 §2.1 names in capitals do not parse", "CDN-Cache-Control: MAX-AGE=9\nCache-Control: max-age=5", 5),
        Row(
            "RFC 9213 §2.1 an open quote does not parse",
            "CDN-Cache-Control: max-age=9, a=\"\nCache-Control: max-age=5", 5),
        Row(
            "RFC 9213 §2.1 as long as is read",
            "CDN-Cache-Control: max-age=9;a=\"\(text(4082))\"\nCache-Control: max-age=5",
            9),
        Row(
            "RFC 9213 §2.1 one that is longer does not parse",
            "CDN-Cache-Control: max-age=9;a=\"\(text(4083))\"\nCache-Control: max-age=5", 5),
        Row(
            "RFC 9213 §2.1 nor does one that is over its lines",
            "CDN-Cache-Control: max-age=9;a=\"\(text(4082))\"\nCDN-Cache-Control: b\nCache-Control: max-age=5", 5),
        Row("RFC 9213 §2.1 a leading zero parses", "CDN-Cache-Control: max-age=009\nCache-Control: max-age=5", 9),
        Row("RFC 9213 §2.1 parameters are ignored", "CDN-Cache-Control: max-age=9;a=b\nCache-Control: max-age=5", 9),
        Row(
            "RFC 9213 §2.1 a string is no integer: stale", "CDN-Cache-Control: max-age=\"9\"\nCache-Control: max-age=5",
            0),
        Row("RFC 9213 §2.1 a decimal is none: stale", "CDN-Cache-Control: max-age=9.5\nCache-Control: max-age=5", 0),
        Row("RFC 9213 §2.1 a token is none: stale", "CDN-Cache-Control: max-age=foo\nCache-Control: max-age=5", 0),
        Row("RFC 9213 §2.1 a negative one: stale", "CDN-Cache-Control: max-age=-9\nCache-Control: max-age=5", 0),
        Row("RFC 9213 §2.1 true is none: stale", "CDN-Cache-Control: max-age\nCache-Control: max-age=5", 0),
        Row(
            "RFC 9213 §2.1 an inner list is none: stale", "CDN-Cache-Control: max-age=(9)\nCache-Control: max-age=5", 0),
        Row("RFC 9651 §3.2 the last of two", "CDN-Cache-Control: max-age=9, max-age=8", 8),
        Row("RFC 9651 §3.2 lines are one dictionary", "CDN-Cache-Control: public\nCDN-Cache-Control: max-age=8", 8),
        Row("RFC 9213 §2.2 s-maxage in it", "CDN-Cache-Control: max-age=9, s-maxage=7", 7),
        Row(
            "RFC 9213 §2.2 another's field changes nothing",
            "ExampleCDN-Cache-Control: max-age=9\nCache-Control: max-age=5", 5),
        Row("RFC 9213 §2.2 a guess is still allowed", "CDN-Cache-Control: none\nLast-Modified: {-1000}", 100),
    ]

    @Test(arguments: lifetimes)
    func `the lifetime is that of the targeted field`(row: Row<UInt32>) {
        #expect(facts(row.fields).lifetime == row.expected)
    }

    static let storability: [Row<Storability>] = [
        Row("RFC 9213 §3.1 no-store for others", "CDN-Cache-Control: max-age=600\nCache-Control: no-store", .store),
        Row("RFC 9213 §3.1 none for us", "CDN-Cache-Control: none\nCache-Control: no-store\nETag: \"a\"", .store),
        Row(
            "RFC 9213 §2.2 no-store for us", "CDN-Cache-Control: no-store\nCache-Control: max-age=600",
            .doNotStore(.prohibited(.noStore))),
        Row(
            "RFC 9213 §2.2 private for us", "CDN-Cache-Control: private, max-age=9\nCache-Control: public",
            .doNotStore(.prohibited(.private))),
        Row("RFC 9213 §2.1 no-store=?0 is not said", "CDN-Cache-Control: max-age=9, no-store=?0", .store),
        Row(
            "RFC 9213 §2.1 no-store=1 is", "CDN-Cache-Control: max-age=9, no-store=1",
            .doNotStore(.prohibited(.noStore))),
        Row(
            "RFC 9213 §2.1 private for some fields",
            "CDN-Cache-Control: max-age=9, private=\"set-cookie\"\nSet-Cookie: a=b", .store),
        Row(
            "RFC 9213 §2.1 private for more fields than are looked at",
            "CDN-Cache-Control: max-age=9, private=\"a\(String(repeating: ",a", count: 64))\"",
            .doNotStore(.prohibited(.private))),
        Row(
            "RFC 9213 §2.1 private as a number is private", "CDN-Cache-Control: max-age=9, private=1",
            .doNotStore(.prohibited(.private))),
    ]

    @Test(arguments: storability)
    func `the targeted field decides whether a response is stored`(row: Row<Storability>) {
        let verdict = facts(row.fields).storability(
            answering: .plainGet, answersTarget: false, policy: CachingPolicy()
        )
        #expect(verdict == row.expected)
    }

    @Test func `the first valid field of the target list wins`() {
        var policy = CachingPolicy()
        policy.targetedFields = [ByteSlice("coalesced-cache-control"), ByteSlice("cdn-cache-control")]
        let both = "Coalesced-Cache-Control: max-age=3\nCDN-Cache-Control: max-age=9\nCache-Control: max-age=5"
        #expect(facts(both, policy: policy).lifetime == 3)
        let broken = "Coalesced-Cache-Control: max-age=,\nCDN-Cache-Control: max-age=9\nCache-Control: max-age=5"
        #expect(facts(broken, policy: policy).lifetime == 9)
        policy.targetedFields = []
        #expect(facts(both, policy: policy).lifetime == 5)
    }
}
