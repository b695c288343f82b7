import HTTPSemantics
import Testing

/// RFC 9111 §5.2.2: what an origin says to caches.
struct ResponseDirectiveTests {
    typealias Flags = ResponseDirectives.Flags

    private static func names(_ count: Int) -> String { Array(repeating: "a", count: count).joined(separator: ",") }

    static let flags: [Row<Flags>] = [
        Row("§5.2.2 nothing said", "", []),
        Row("§5.2.2.2", "Cache-Control: must-revalidate", [.mustRevalidate, .plainMustRevalidate]),
        Row("§5.2.2.2 with an argument it permits nothing", "Cache-Control: must-revalidate=no", .mustRevalidate),
        Row("§5.2.2.3", "Cache-Control: must-understand", .mustUnderstand),
        Row("§5.2.2.4", "Cache-Control: no-cache", .noCache),
        Row("§5.2.2.5", "Cache-Control: no-store", .noStore),
        Row("§5.2.2.6", "Cache-Control: no-transform", []),
        Row("§5.2.2.7", "Cache-Control: private", .private),
        Row("§5.2.2.8", "Cache-Control: proxy-revalidate", .proxyRevalidate),
        Row("§5.2.2.9", "Cache-Control: public", .public),
        Row("RFC 8246 §2 immutable changes nothing", "Cache-Control: immutable", []),
        Row("§5.2 names in any case", "Cache-Control: NO-STORE, Private", [.noStore, .private]),
        Row("§5.2 several lines", "Cache-Control: no-store\nCache-Control: private", [.noStore, .private]),
        Row("§5.2 white space", "Cache-Control:  no-store  ,  private  ", [.noStore, .private]),
        Row("§5.2.2.4 with names", "Cache-Control: no-cache=\"foo\"", .noCacheFields),
        Row("§5.2.2.4 with several", "Cache-Control: no-cache=\"foo, bar\"", .noCacheFields),
        Row("§5.2.2.4 in the token form", "Cache-Control: no-cache=foo", .noCacheFields),
        Row("§5.2.2.4 an empty list forbids everything", "Cache-Control: no-cache=\"\"", .noCache),
        Row("§5.2.2.4 so does one that names no field", "Cache-Control: no-cache=\"f oo\"", .noCache),
        Row("§5.2.2.4 and an open quote", "Cache-Control: no-cache=\"foo", .noCache),
        Row("§5.2.2.4 and junk behind the quote", "Cache-Control: no-cache=\"foo\"x", .noCache),
        Row("§5.2.2.7 with names", "Cache-Control: private=\"set-cookie\"", .privateFields),
        Row("§5.2.2.7 empty", "Cache-Control: private=", .private),
        Row("§5.2.2.7 with as many as are looked at", "Cache-Control: private=\"\(names(64))\"", .privateFields),
        Row("§5.2.2.7 with more: without names", "Cache-Control: private=\"\(names(65))\"", .private),
        Row("§5.2.2.4 the same", "Cache-Control: no-cache=\"\(names(65))\"", .noCache),
        Row("§5.2.2.4 empty ones count", "Cache-Control: no-cache=\"a\(String(repeating: ",", count: 64))\"", .noCache),
        Row(
            "§5.2.2.7 over all of them", "Cache-Control: private=\"\(names(32))\", no-cache=\"\(names(33))\"",
            [.privateFields, .noCache]),
        Row(
            "§5.2.2.7 over all lines", "Cache-Control: private=\"\(names(64))\"\nCache-Control: private=a",
            [.privateFields, .private]),
        Row(
            "§5.2.2.7 names too long", "Cache-Control: private=\"\(String(repeating: "x", count: 1025))\"", .private),
        Row(
            "§4.2.1 both forms: the stricter counts", "Cache-Control: private=\"foo\", private",
            [.private, .privateFields]),
        Row("§5.2.2.5 an argument does not undo it", "Cache-Control: no-store=1", .noStore),
        Row("§5.2.2.9 an argument undoes what permits", "Cache-Control: public=1", []),
        Row("§5.2.2.3 as well", "Cache-Control: must-understand=1", []),
        Row("§5.2.3 unknown ones are ignored", "Cache-Control: community=\"UCI\", private", .private),
        Row("§5.2 not inside a quoted string", "Cache-Control: foo=\"no-store\"", []),
        Row("§5.2 not inside one over several members", "Cache-Control: foo=\"a, no-store, b\"", []),
        Row("§5.2 an escaped quote does not end it", "Cache-Control: foo=\"a\\\"b, no-store, c\", private", .private),
        Row("§5.2 an open quote hides nothing", "Cache-Control: max-age=10, foo=\"bar, no-store", .noStore),
        Row("§5.2.1 request directives mean nothing", "Cache-Control: only-if-cached, max-stale, min-fresh=3", []),
        Row("§5.2 another separator separates nothing", "Cache-Control: no-store; private", []),
    ]

    @Test(arguments: flags)
    func `response directives are parsed`(row: Row<Flags>) {
        let block = head(row.fields)
        let read = ResponseDirectives(cacheControlOf: block.view)
        #expect(read.flags == row.expected)
    }

    struct Numbers: Sendable, Equatable {
        var maxAge: UInt32?
        var sharedMaxAge: UInt32?
        var revalidating: UInt32?
        var error: UInt32?
    }

    static let numbers: [Row<Numbers>] = [
        Row("§5.2.2.1", "Cache-Control: max-age=5", Numbers(maxAge: 5)),
        Row("§5.2.2.1 in any case", "Cache-Control: MAX-AGE=5", Numbers(maxAge: 5)),
        Row("§5.2 quoted", "Cache-Control: max-age=\"5\"", Numbers(maxAge: 5)),
        Row("§1.2.2 leading zeroes", "Cache-Control: max-age=0005", Numbers(maxAge: 5)),
        Row("§1.2.2 2^31 - 1", "Cache-Control: max-age=2147483647", Numbers(maxAge: 2_147_483_647)),
        Row("§1.2.2 2^31", "Cache-Control: max-age=2147483648", Numbers(maxAge: 2_147_483_648)),
        Row("§1.2.2 2^31 + 1 is 2^31", "Cache-Control: max-age=2147483649", Numbers(maxAge: 2_147_483_648)),
        Row("§1.2.2 2^32 does not wrap", "Cache-Control: max-age=4294967296", Numbers(maxAge: 2_147_483_648)),
        Row("§1.2.2 2^64 does not wrap", "Cache-Control: max-age=18446744073709551616", Numbers(maxAge: 2_147_483_648)),
        Row(
            "§1.2.2 a hundred digits", "Cache-Control: max-age=" + String(repeating: "9", count: 100),
            Numbers(maxAge: 2_147_483_648)),
        Row("§4.2.1 not a number: stale", "Cache-Control: max-age=abc", Numbers(maxAge: 0)),
        Row("§4.2.1 digits and letters: stale", "Cache-Control: max-age=100a", Numbers(maxAge: 0)),
        Row("§4.2.1 letters and digits: stale", "Cache-Control: max-age=a100", Numbers(maxAge: 0)),
        Row("§4.2.1 negative: stale", "Cache-Control: max-age=-100", Numbers(maxAge: 0)),
        Row("§4.2.1 a sign: stale", "Cache-Control: max-age=+100", Numbers(maxAge: 0)),
        Row("§4.2.1 a fraction: stale", "Cache-Control: max-age=100.5", Numbers(maxAge: 0)),
        Row("§4.2.1 no value: stale", "Cache-Control: max-age", Numbers(maxAge: 0)),
        Row("§4.2.1 an empty value: stale", "Cache-Control: max-age=", Numbers(maxAge: 0)),
        Row("§4.2.1 single quotes: stale", "Cache-Control: max-age='100'", Numbers(maxAge: 0)),
        Row("§4.2.1 a space before the sign: stale", "Cache-Control: max-age =100", Numbers(maxAge: 0)),
        Row("§4.2.1 a space behind it: stale", "Cache-Control: max-age= 100", Numbers(maxAge: 0)),
        Row("§4.2.1 the first of two", "Cache-Control: max-age=5, max-age=9", Numbers(maxAge: 5)),
        Row("§4.2.1 the first of two lines", "Cache-Control: max-age=9\nCache-Control: max-age=5", Numbers(maxAge: 9)),
        Row("§4.2.1 the first makes no sense: stale", "Cache-Control: max-age=x, max-age=5", Numbers(maxAge: 0)),
        Row("§4.2.1 the second makes no sense: stale", "Cache-Control: max-age=5, max-age=x", Numbers(maxAge: 0)),
        Row("§5.2.2.10", "Cache-Control: s-maxage=7", Numbers(sharedMaxAge: 7)),
        Row("§5.2.2.10 with max-age", "Cache-Control: max-age=5, s-maxage=7", Numbers(maxAge: 5, sharedMaxAge: 7)),
        Row("§4.2.1 s-maxage without sense", "Cache-Control: s-maxage=x", Numbers(sharedMaxAge: 0)),
        Row("§5.2 not inside a quoted string", "Cache-Control: foo=\"max-age=5\"", Numbers()),
        Row("§5.2.3 not a longer name", "Cache-Control: x-max-age=5, max-agex=5", Numbers()),
        Row("RFC 5861 §3", "Cache-Control: stale-while-revalidate=30", Numbers(revalidating: 30)),
        Row("RFC 5861 §4", "Cache-Control: stale-if-error=40", Numbers(error: 40)),
        Row(
            "RFC 5861 §3 without sense permits nothing", "Cache-Control: stale-while-revalidate=x",
            Numbers(revalidating: 0)),
        Row(
            "RFC 5861 §3 the smaller of two", "Cache-Control: stale-while-revalidate=30, stale-while-revalidate=3",
            Numbers(revalidating: 3)),
        Row("RFC 5861 §4 the smaller of two", "Cache-Control: stale-if-error=3, stale-if-error=30", Numbers(error: 3)),
    ]

    @Test(arguments: numbers)
    func `the durations of response directives are numbers`(row: Row<Numbers>) {
        let block = head(row.fields)
        let read = ResponseDirectives(cacheControlOf: block.view)
        let numbers = Numbers(
            maxAge: read.maxAge, sharedMaxAge: read.sharedMaxAge,
            revalidating: read.staleWhileRevalidate, error: read.staleIfError
        )
        #expect(numbers == row.expected)
    }
}
