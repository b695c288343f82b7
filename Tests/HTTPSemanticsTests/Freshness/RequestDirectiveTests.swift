import HTTPSemantics
import Testing

/// RFC 9111 §5.2.1 and §5.4: what a client may ask of a cache.
struct RequestDirectiveTests {
    static let flags: [Row<RequestDirectives.Flags>] = [
        Row("§5.2.1 nothing asked", "", []),
        Row("§5.2.1 an empty field asks nothing", "Cache-Control:", []),
        Row("§5.2.1.4", "Cache-Control: no-cache", .noCache),
        Row("§5.2.1.5", "Cache-Control: no-store", .noStore),
        Row("§5.2.1.6", "Cache-Control: no-transform", []),
        Row("§5.2.1.7", "Cache-Control: only-if-cached", .onlyIfCached),
        Row("§5.2 names in any case", "Cache-Control: No-CaChE", .noCache),
        Row("§5.2 a list", "Cache-Control: no-cache,no-store", [.noCache, .noStore]),
        Row("§5.2 white space and empty members", "Cache-Control: , no-cache ,,\tno-store,", [.noCache, .noStore]),
        Row("§5.2 several lines", "Cache-Control: no-cache\nCache-Control: no-store", [.noCache, .noStore]),
        Row("§5.2.3 unknown directives are ignored", "Cache-Control: foo, bar=1, no-store", .noStore),
        Row("§5.2 not inside a quoted string", "Cache-Control: foo=\"no-store, no-cache\"", []),
        Row("§5.2 not inside one with an escaped quote", "Cache-Control: foo=\"a\\\", no-store, b\"", []),
        Row("§5.2 behind a quoted string", "Cache-Control: foo=\"bar\", no-store", .noStore),
        Row("§5.2 an open quote hides nothing", "Cache-Control: foo=\"bar, no-store", .noStore),
        Row("§5.2 no part of a longer name", "Cache-Control: xno-store, no-storex", []),
        Row("RFC 8246 §2 immutable means nothing in a request", "Cache-Control: immutable", []),
        Row("§5.2.2 response directives mean nothing", "Cache-Control: private, must-revalidate, s-maxage=0", []),
        Row("§5.4 Pragma alone", "Pragma: no-cache", .noCache),
        Row("§5.4 in any case", "Pragma: NO-CACHE", .noCache),
        Row("§5.4 among others", "Pragma: foo, no-cache", .noCache),
        Row("§5.4 with an argument it is another", "Pragma: no-cache=1", []),
        Row("§5.4 Cache-Control goes before Pragma", "Pragma: no-cache\nCache-Control: max-age=5", .limitsAge),
        Row("§5.4 nothing else in Pragma", "Pragma: no-store", []),
    ]

    @Test(arguments: flags)
    func `request directives are parsed`(row: Row<RequestDirectives.Flags>) {
        #expect(request(row.fields).flags == row.expected)
    }

    struct Limits: Sendable, Equatable {
        var maxAge: UInt32 = .max
        var minFresh: UInt32 = 0
        var maxStale: UInt32 = 0
        var staleIfError: UInt32 = 0
    }

    static let limits: [Row<Limits>] = [
        Row("§5.2.1.1", "Cache-Control: max-age=5", Limits(maxAge: 5)),
        Row("§5.2.1.1 zero", "Cache-Control: max-age=0", Limits(maxAge: 0)),
        Row("§5.2 the quoted form is accepted", "Cache-Control: max-age=\"5\"", Limits(maxAge: 5)),
        Row("§4.2.1 the more restrictive of two", "Cache-Control: max-age=9, max-age=5", Limits(maxAge: 5)),
        Row("§4.2.1 in either order", "Cache-Control: max-age=5, max-age=9", Limits(maxAge: 5)),
        Row("§5.2 white space around the sign makes no sense", "Cache-Control: max-age =5, min-fresh= 5", Limits()),
        Row("§5.2 something behind a quoted string neither", "Cache-Control: max-age=\"5\"x", Limits()),
        Row(
            "§1.2.2 overflow is for ever", "Cache-Control: max-age=99999999999999999999", Limits(maxAge: 2_147_483_648)),
        Row("§5.2.1 a wish that makes no sense is none", "Cache-Control: max-age=x", Limits()),
        Row("§5.2.1 nor a negative one", "Cache-Control: max-age=-1", Limits()),
        Row("§5.2.1 nor one without a value", "Cache-Control: max-age", Limits()),
        Row("§5.2.1.3", "Cache-Control: min-fresh=20", Limits(minFresh: 20)),
        Row("§5.2.1.3 the larger of two", "Cache-Control: min-fresh=20, min-fresh=30", Limits(minFresh: 30)),
        Row("§5.2.1.3 in either order", "Cache-Control: min-fresh=30, min-fresh=20", Limits(minFresh: 30)),
        Row("§5.2.1.2 with a value", "Cache-Control: max-stale=10", Limits(maxStale: 10)),
        Row("§5.2.1.2 without: any age", "Cache-Control: max-stale", Limits(maxStale: 2_147_483_648)),
        Row("§5.2.1.2 the smaller of two", "Cache-Control: max-stale, max-stale=10", Limits(maxStale: 10)),
        Row("§5.2.1.2 in either order", "Cache-Control: max-stale=10, max-stale", Limits(maxStale: 10)),
        Row("§5.2.1.2 a value that makes no sense", "Cache-Control: max-stale=x", Limits()),
        Row("RFC 5861 §4 in a request", "Cache-Control: stale-if-error=60", Limits(staleIfError: 60)),
        Row(
            "RFC 5861 §4 the smaller of two", "Cache-Control: stale-if-error=60, stale-if-error=90",
            Limits(staleIfError: 60)),
        Row(
            "RFC 5861 §4 in either order", "Cache-Control: stale-if-error=90, stale-if-error=60",
            Limits(staleIfError: 60)),
    ]

    @Test(arguments: limits)
    func `the limits of request directives are numbers`(row: Row<Limits>) {
        let read = request(row.fields)
        let limits = Limits(
            maxAge: read.maxAge, minFresh: read.minFresh, maxStale: read.maxStale, staleIfError: read.staleIfError
        )
        #expect(limits == row.expected)
    }

    static let ignored: [(RequestDirectivePolicy, String)] = [
        (.ignoresNoCache, "Cache-Control: no-cache"),
        (.ignoresNoCache, "Pragma: no-cache"),
        (.ignoresMaxAge, "Cache-Control: max-age=0"),
        (.ignoresMinFresh, "Cache-Control: min-fresh=99"),
        (.protectsOrigin, "Cache-Control: no-cache, max-age=0, min-fresh=9"),
    ]

    @Test(arguments: ignored)
    func `a route may ignore directives that burden the origin`(policy: RequestDirectivePolicy, fields: String) {
        #expect(request(fields, ignoring: policy) == .none)
        #expect(request(fields) != .none)
    }

    @Test func `a route that ignores one directive respects the others`() {
        let read = request("Cache-Control: no-cache, no-store, max-age=3", ignoring: .ignoresNoCache)
        #expect(read.flags == [.noStore, .limitsAge])
        #expect(read.maxAge == 3)
    }
}
