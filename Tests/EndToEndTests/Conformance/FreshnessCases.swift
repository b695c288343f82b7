import Testing

extension Conformance {
    /// RFC 9111 §4.2: how long a response is fresh. A pause is only ever a lower bound, so a slow machine changes
    /// nothing.
    @Suite struct Freshness {
        @Test(arguments: explicit) func `an explicit lifetime is respected`(_ one: Case) throws { try one.perform() }
        @Test(arguments: odd) func `a malformed or contradictory lifetime is resolved`(_ one: Case) throws {
            try one.perform()
        }
        @Test(arguments: heuristic) func `a heuristic lifetime is used if permitted`(_ one: Case) throws {
            try one.perform()
        }
        @Test(arguments: age) func `the age is right at arrival and afterwards`(_ one: Case) throws {
            try one.perform()
        }

        private static let longAgo = "Last-Modified: Tue, 01 Jan 2019 00:00:00 GMT"

        @CaseTable static var explicit: [Case] {
            Case("max-age: fresh", .answers("Cache-Control: max-age=100"), .get(.fetched), .get(.hit))
            Case(
                "max-age=1 ends after a second", .answers("Cache-Control: max-age=1"), .get(.fetched), .pause(1.1),
                .get(.fetched))
            Case("max-age=0 is never fresh", .answers("Cache-Control: max-age=0"), .get(.fetched), .get(.fetched))
            Case(
                "s-maxage takes precedence over a shorter max-age", .answers("Cache-Control: max-age=1, s-maxage=100"),
                .get(.fetched), .pause(1.1), .get(.hit))
            Case(
                "s-maxage takes precedence over a longer max-age", .answers("Cache-Control: s-maxage=1, max-age=100"),
                .get(.fetched), .pause(1.1), .get(.fetched))
            Case(
                "s-maxage=0 is never fresh", .answers("Cache-Control: s-maxage=0, max-age=100"), .get(.fetched),
                .get(.fetched))
            Case(
                "max-age takes precedence over Expires in the past",
                .answers("Cache-Control: max-age=100", "Expires: {-100}"),
                .get(.fetched), .get(.hit))
            Case(
                "max-age=0 takes precedence over Expires in the future",
                .answers("Cache-Control: max-age=0", "Expires: {100}"),
                .get(.fetched), .get(.fetched))
            Case(
                "s-maxage takes precedence over Expires in the past",
                .answers("Cache-Control: s-maxage=100", "Expires: {-100}"),
                .get(.fetched), .get(.hit))
            Case("Expires in the future", .answers("Expires: {100}"), .get(.fetched), .get(.hit))
            Case(
                "Expires in a second ends after a second", .answers("Date: {0}", "Expires: {1}"), .get(.fetched),
                .pause(2.1),
                .get(.fetched))
            Case("Expires in the past", .answers("Expires: {-100}", longAgo), .get(.fetched), .get(.validated))
            Case("Expires equal to Date", .answers("Date: {0}", "Expires: {0}"), .get(.fetched), .get(.fetched))
            Case(
                "Expires is compared with Date, not with the proxy's clock", .answers("Date: {-20}", "Expires: {-10}"),
                .get(.fetched), .get(.fetched))
            Case(
                "Expires: 0 is past, and prevents a heuristic lifetime", .answers("Expires: 0", longAgo),
                .get(.fetched),
                .get(.validated))
            Case(
                "Expires that is no date is past", .answers("Expires: tomorrow", longAgo), .get(.fetched),
                .get(.validated))
            Case("Expires that is empty is past", .answers("Expires:", longAgo), .get(.fetched), .get(.validated))
            Case(
                "Expires in the form of RFC 850", .answers("Expires: Thursday, 01-Jan-37 00:00:00 GMT"), .get(.fetched),
                .get(.hit))
            Case(
                "Expires in the form of asctime", .answers("Expires: Thu Jan  1 00:00:00 2037"), .get(.fetched),
                .get(.hit))
            Case(
                "Expires in another time zone is no date", .answers("Expires: Thu, 01 Jan 2037 00:00:00 CET"),
                .get(.fetched), .get(.fetched))
            Case(
                "Expires in small letters", .answers("Expires: thu, 01 jan 2037 00:00:00 gmt"), .get(.fetched),
                .get(.hit))
            Case(
                "Expires twice, the first past", .answers("Expires: {-100}", "Expires: {100}"), .get(.fetched),
                .get(.fetched))
            Case("Expires without Date", .answers("Date:", "Expires: {100}"), .get(.fetched), .get(.hit))
            for status in [
                200, 203, 204, 299, 300, 301, 302, 303, 307, 308, 400, 403, 404, 405, 410, 418, 451, 499, 500, 501, 503,
                599,
            ] {
                Case(
                    "\(status) is stored when its lifetime is explicit", .answers(status, "Cache-Control: max-age=100"),
                    .get(.fetched), .get(.hit, .status(status)))
            }
        }

        @CaseTable static var odd: [Case] {
            Case("directives in capitals", .answers("CACHE-CONTROL: MAX-AGE=100"), .get(.fetched), .get(.hit))
            Case("a quoted argument", .answers("Cache-Control: max-age=\"100\""), .get(.fetched), .get(.hit))
            Case(
                "a single-quoted argument is invalid", .answers("Cache-Control: max-age='100'"), .get(.fetched),
                .get(.fetched))
            Case(
                "white space and empty members", .answers("Cache-Control:  , max-age=100 ,,\tpublic ,"), .get(.fetched),
                .get(.hit))
            Case(
                "unknown directives are ignored", .answers("Cache-Control: foo, bar=baz, max-age=100, x=\"y\""),
                .get(.fetched), .get(.hit))
            Case(
                "a directive in a quoted string is ignored",
                .answers("Cache-Control: x=\"no-store, max-age=0\", max-age=100"), .get(.fetched), .get(.hit))
            Case(
                "an escaped quote ends no string", .answers("Cache-Control: x=\"a\\\", no-store\", max-age=100"),
                .get(.fetched), .get(.hit))
            Case(
                "a name that begins like a directive is another directive",
                .answers("Cache-Control: no-storey, private-ish, max-age=100"), .get(.fetched), .get(.hit))
            Case(
                "directives on several lines", .answers("Cache-Control: public", "Cache-Control: max-age=100"),
                .get(.fetched), .get(.hit))
            Case(
                "a prohibition on a second line", .answers("Cache-Control: max-age=100", "Cache-Control: no-store"),
                .get(.fetched), .get(.fetched))
            for wrong in ["abc", "-1", "1.5", "", "100s", "0x64", "1e3"] {
                Case(
                    "max-age=\(wrong) makes the response stale", .answers("Cache-Control: max-age=\(wrong)", longAgo),
                    .get(.fetched), .get(.validated))
            }
            Case(
                "max-age without argument makes the response stale", .answers("Cache-Control: max-age", longAgo),
                .get(.fetched),
                .get(.validated))
            Case(
                "an invalid s-maxage makes the response stale", .answers("Cache-Control: max-age=100, s-maxage=x"),
                .get(.fetched), .get(.fetched))
            Case("max-age beyond 2^31", .answers("Cache-Control: max-age=2147483649"), .get(.fetched), .get(.hit))
            Case(
                "max-age beyond 2^64", .answers("Cache-Control: max-age=99999999999999999999999"), .get(.fetched),
                .get(.hit))
            Case(
                "max-age with leading zeros", .answers("Cache-Control: max-age=0000000000000000000000100"),
                .get(.fetched), .get(.hit))
            Case(
                "max-age twice, the first shorter", .answers("Cache-Control: max-age=1, max-age=100"), .get(.fetched),
                .pause(1.1), .get(.fetched))
            Case(
                "Pragma: no-cache in a response is ignored",
                .answers("Pragma: no-cache", "Cache-Control: max-age=100"), .get(.fetched), .get(.hit))
            Case(
                "Pragma: no-cache permits a heuristic lifetime", .answers("Pragma: no-cache", longAgo), .get(.fetched),
                .get(.hit))
            Case(
                "immutable does not make a response fresh", .answers("Cache-Control: immutable"), .get(.fetched),
                .get(.fetched)
            )
            Case(
                "immutable, while fresh", .answers("Cache-Control: max-age=100, immutable"), .get(.fetched), .get(.hit))
        }

        @CaseTable static var heuristic: [Case] {
            for status in [200, 203, 204, 300, 301, 308, 404, 405, 410, 501] {
                Case(
                    "\(status) may have a heuristic lifetime", .answers(status, longAgo), .get(.fetched),
                    .get(.hit, .status(status)))
            }
            for status in [201, 202, 299, 302, 303, 307, 400, 403, 414, 418, 429, 500, 502, 503, 504, 599] {
                Case(
                    "\(status) has no heuristic lifetime", .answers(status, longAgo), .get(.fetched),
                    .get(.fetched))
            }
            Case(
                "public permits a heuristic lifetime for any status", .answers(403, "Cache-Control: public", longAgo),
                .get(.fetched), .get(.hit, .status(403)))
            Case(
                "a page changed just now has no heuristic lifetime", .answers("Last-Modified: {-4}"), .get(.fetched),
                .get(.validated))
            Case(
                "a page changed a minute ago is fresh for some seconds", .answers("Last-Modified: {-60}"),
                .get(.fetched), .pause(1.1), .get(.hit))
            Case(
                "a tenth of the time since the change, over soon", .answers("Last-Modified: {-12}"), .get(.fetched),
                .pause(2.1), .get(.validated))
            Case("without Last-Modified there is no heuristic lifetime", .answers(), .get(.fetched), .get(.fetched))
            Case("Last-Modified in the future", .answers("Last-Modified: {1000}"), .get(.fetched), .get(.validated))
            Case("Last-Modified that is no date", .answers("Last-Modified: yesterday"), .get(.fetched), .get(.fetched))
            Case("a query is no exception", .answers(longAgo), .get(.fetched, .at("?a=1")), .get(.hit, .at("?a=1")))
            Case(
                "no heuristic lifetime beside max-age=0", .answers("Cache-Control: max-age=0", longAgo), .get(.fetched),
                .get(.validated))
        }

        @CaseTable static var age: [Case] {
            Case("a hit has Age", .answers("Cache-Control: max-age=100"), .get(.fetched), .get(.hit, .age(0...20)))
            Case(
                "Age includes the Age of the received response", .answers("Cache-Control: max-age=1000", "Age: 100"),
                .get(.fetched), .get(.hit, .age(100...120)))
            Case(
                "the leader gets the Age of the received response", .answers("Cache-Control: max-age=1000", "Age: 100"),
                .get(.fetched, .age(100...120)))
            Case(
                "Age grows with time in the store", .answers("Cache-Control: max-age=1000", "Age: 100"), .get(.fetched),
                .pause(2.1), .get(.hit, .age(102...130)))
            Case(
                "Age as large as the lifetime", .answers("Cache-Control: max-age=100", "Age: 100"), .get(.fetched),
                .get(.fetched))
            Case(
                "Age larger than the lifetime", .answers("Cache-Control: max-age=100", "Age: 200"), .get(.fetched),
                .get(.fetched))
            Case(
                "Age beyond 2^64", .answers("Cache-Control: max-age=100", "Age: 99999999999999999999999"),
                .get(.fetched), .get(.fetched))
            for wrong in ["abc", "-10", "1.5", "", "99x"] {
                Case(
                    "Age: \(wrong) is ignored", .answers("Cache-Control: max-age=90", "Age: \(wrong)"), .get(.fetched),
                    .get(.hit, .age(0...20)))
            }
            Case(
                "Age as a list: the first", .answers("Cache-Control: max-age=100", "Age: 10, 200"), .get(.fetched),
                .get(.hit, .age(10...30)))
            Case(
                "Age twice: the first", .answers("Cache-Control: max-age=100", "Age: 10", "Age: 200"), .get(.fetched),
                .get(.hit, .age(10...30)))
            Case("Age and Expires", .answers("Expires: {100}", "Age: 200"), .get(.fetched), .get(.fetched))
            Case(
                "Date in the past is apparent age", .answers("Date: {-50}", "Cache-Control: max-age=1000"),
                .get(.fetched), .get(.hit, .age(49...80)))
            Case(
                "Date further back than the lifetime", .answers("Date: {-200}", "Cache-Control: max-age=100"),
                .get(.fetched), .get(.fetched))
            Case(
                "the larger of Age and apparent age", .answers("Date: {-50}", "Age: 10", "Cache-Control: max-age=1000"),
                .get(.fetched), .get(.hit, .age(49...80)))
            Case(
                "Date in the future is no negative age", .answers("Date: {500}", "Cache-Control: max-age=100"),
                .get(.fetched), .get(.hit, .age(0...20)))
            Case(
                "Date missing: fresh from its arrival, and a Date is added",
                .answers("Date:", "Cache-Control: max-age=100"), .get(.fetched),
                .get(.hit, .contains("Date", "GMT"), .age(0...20)))
            Case(
                "Date that is no date", .answers("Date: today", "Cache-Control: max-age=100"), .get(.fetched),
                .get(.hit, .age(0...20)))
            Case(
                "the delay of the response counts as age", .answersSlowly(1.2, 200, "Cache-Control: max-age=100"),
                .get(.fetched), .get(.hit, .age(1...30)))
            Case(
                "a response slower than its lifetime is stale on arrival",
                .answersSlowly(1.2, 200, "Cache-Control: max-age=1"), .get(.fetched), .get(.fetched))
        }
    }
}
