import Testing

extension Conformance {
    /// RFC 9111 §5.2.1: what clients ask of the cache.
    @Suite struct Requests {
        @Test(arguments: directives) func `request directives are respected`(_ one: Case) throws { try one.perform() }
        @Test(arguments: ignored) func `a route may ignore request directives`(_ one: Case) throws { try one.perform() }

        private static let fresh = "Cache-Control: max-age=100"

        @CaseTable static var directives: [Case] {
            Case("no-cache asks the origin", .answers(fresh), .get(.fetched), .get(.fetched, "Cache-Control: no-cache"))
            Case(
                "no-cache asks conditionally if possible", .answers(fresh, "ETag: \"a\""), .get(.fetched),
                .answers(304, fresh, "ETag: \"a\""), .get(.validated, "Cache-Control: no-cache"))
            Case(
                "a response fetched for no-cache is stored", .answers(fresh), .get(.fetched, "Cache-Control: no-cache"),
                .get(.hit))
            Case("Pragma: no-cache is no-cache", .answers(fresh), .get(.fetched), .get(.fetched, "Pragma: no-cache"))
            Case(
                "Pragma beside Cache-Control is ignored", .answers(fresh), .get(.fetched),
                .get(.hit, "Pragma: no-cache", "Cache-Control: max-stale"))
            Case("no-store is not stored", .answers(fresh), .get(.fetched, "Cache-Control: no-store"), .get(.fetched))
            Case(
                "no-store may be answered from the store", .answers(fresh), .get(.fetched),
                .get(.hit, "Cache-Control: no-store"))
            Case(
                "max-age younger than the response", .answers("Cache-Control: max-age=1000", "Age: 100"),
                .get(.fetched), .get(.fetched, "Cache-Control: max-age=50"))
            Case(
                "max-age older than the response", .answers("Cache-Control: max-age=1000", "Age: 100"), .get(.fetched),
                .get(.hit, "Cache-Control: max-age=500"))
            Case(
                "max-age=0 asks the origin after a second", .answers(fresh), .get(.fetched), .pause(1.1),
                .get(.fetched, "Cache-Control: max-age=0"))
            Case(
                "an invalid max-age is ignored", .answers(fresh), .get(.fetched),
                .get(.hit, "Cache-Control: max-age=x"))
            Case(
                "min-fresh within the remaining lifetime", .answers(fresh), .get(.fetched),
                .get(.hit, "Cache-Control: min-fresh=10"))
            Case(
                "min-fresh beyond the remaining lifetime", .answers(fresh), .get(.fetched),
                .get(.fetched, "Cache-Control: min-fresh=200"))
            Case(
                "max-stale without value accepts a response stale for long",
                .answers("Cache-Control: max-age=10", "Age: 1000", "ETag: \"a\""), .get(.fetched),
                .get(.stale, "Cache-Control: max-stale", .age(1000...1030)), .originAsked(1))
            Case(
                "max-stale with room", .answers("Cache-Control: max-age=10", "Age: 20", "ETag: \"a\""), .get(.fetched),
                .get(.hit, "Cache-Control: max-stale=1000"))
            Case(
                "max-stale without room", .answers("Cache-Control: max-age=10", "Age: 200", "ETag: \"a\""),
                .get(.fetched), .get(.validated, "Cache-Control: max-stale=20"))
            Case(
                "max-stale does not override must-revalidate",
                .answers("Cache-Control: max-age=10, must-revalidate", "Age: 20", "ETag: \"a\""), .get(.fetched),
                .get(.validated, "Cache-Control: max-stale"))
            Case(
                "max-stale does not override proxy-revalidate",
                .answers("Cache-Control: max-age=10, proxy-revalidate", "Age: 20", "ETag: \"a\""), .get(.fetched),
                .get(.validated, "Cache-Control: max-stale"))
            Case(
                "max-stale does not override s-maxage",
                .answers("Cache-Control: s-maxage=10", "Age: 20", "ETag: \"a\""),
                .get(.fetched), .get(.validated, "Cache-Control: max-stale"))
            Case(
                "max-stale does not override no-cache", .answers("Cache-Control: max-age=100, no-cache", "ETag: \"a\""),
                .get(.fetched), .get(.validated, "Cache-Control: max-stale"))
            Case(
                "only-if-cached without a stored response: 504", .answers(fresh),
                .get(.refused, "Cache-Control: only-if-cached", .status(504)))
            Case("only-if-cached, stored", .answers(fresh), .get(.fetched), .get(.hit, "Cache-Control: only-if-cached"))
            Case(
                "only-if-cached, stored and stale: 504",
                .answers("Cache-Control: max-age=10", "Age: 20", "ETag: \"a\""), .get(.fetched),
                .get(.refused, "Cache-Control: only-if-cached", .status(504)))
            Case(
                "only-if-cached with max-stale, stored and stale",
                .answers("Cache-Control: max-age=10", "Age: 20", "ETag: \"a\""), .get(.fetched),
                .get(.hit, "Cache-Control: only-if-cached, max-stale"))
            Case(
                "only-if-cached, another variant stored: 504", .answers(fresh, "Vary: X-V"), .get(.fetched, "X-V: 1"),
                .get(.refused, "X-V: 2", "Cache-Control: only-if-cached", .status(504)))
            Case(
                "only-if-cached for HEAD", .answers(fresh),
                .head(.refused, "Cache-Control: only-if-cached", .status(504)))
            Case(
                "request directives are forwarded", .answers(fresh),
                .get(.fetched, "Cache-Control: no-cache, x-mine=1", .asked("Cache-Control", "no-cache, x-mine=1")))
            Case(
                "no-transform in a request has no effect", .answers(fresh), .get(.fetched),
                .get(.hit, "Cache-Control: no-transform"))
            Case(
                "stale-if-error of the request", .answers("Cache-Control: max-age=10", "Age: 20", "ETag: \"a\""),
                .get(.fetched), .answers(503), .get(.stale, "Cache-Control: stale-if-error=600"))
        }

        @CaseTable static var ignored: [Case] {
            for field in [
                "Cache-Control: no-cache", "Cache-Control: max-age=0", "Cache-Control: min-fresh=1000",
                "Pragma: no-cache",
            ] {
                Case(
                    "\(field) is ignored on such a route", by: "ignore", .answers(fresh), .get(.fetched), .pause(1.1),
                    .get(.hit, .with(field)))
            }
            Case(
                "no-store still prevents storing", by: "ignore", .answers(fresh),
                .get(.fetched, "Cache-Control: no-store"), .get(.fetched))
        }
    }
}
