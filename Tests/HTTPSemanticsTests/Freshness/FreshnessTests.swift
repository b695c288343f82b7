import HTTPSemantics
import Testing

/// RFC 9111 §4.2.1, §4.2.2, §5.3: how long a response stays fresh, and who says so.
struct FreshnessTests {
    struct Lifetime: Sendable, Equatable {
        let seconds: UInt32
        let source: LifetimeSource
        init(_ seconds: UInt32, _ source: LifetimeSource) { self.seconds = seconds; self.source = source }
        init(_ facts: ResponseFacts) { self.init(facts.lifetime, facts.lifetimeSource) }
    }

    static let explicit: [Row<Lifetime>] = [
        Row("§4.2.1 max-age", "Cache-Control: max-age=60", Lifetime(60, .maxAge)),
        Row("§4.2.1 s-maxage before max-age", "Cache-Control: max-age=60, s-maxage=5", Lifetime(5, .sharedMaxAge)),
        Row(
            "§4.2.1 s-maxage before Expires", "Cache-Control: s-maxage=5\nDate: {0}\nExpires: {99}",
            Lifetime(5, .sharedMaxAge)),
        Row(
            "§5.3 max-age before Expires", "Cache-Control: max-age=60\nDate: {0}\nExpires: {99}", Lifetime(60, .maxAge)),
        Row(
            "§5.3 max-age=0 before Expires", "Cache-Control: max-age=0\nDate: {0}\nExpires: {99}", Lifetime(0, .maxAge)),
        Row("§5.3 max-age before a wrong Expires", "Cache-Control: max-age=60\nExpires: 0", Lifetime(60, .maxAge)),
        Row(
            "§4.2.1 a wrong max-age does not give way to Expires", "Cache-Control: max-age=x\nDate: {0}\nExpires: {99}",
            Lifetime(0, .maxAge)),
        Row(
            "§4.2.1 a wrong s-maxage does not give way to max-age", "Cache-Control: s-maxage=x, max-age=60",
            Lifetime(0, .sharedMaxAge)),
        Row("§4.2.1 Expires minus Date", "Date: {0}\nExpires: {99}", Lifetime(99, .expires)),
        Row("§4.2.1 by the origin's clock, if it is behind", "Date: {-1000}\nExpires: {-900}", Lifetime(100, .expires)),
        Row("§4.2.1 by the origin's clock, if it is ahead", "Date: {1000}\nExpires: {1100}", Lifetime(100, .expires)),
        Row("§4.2.1 without Date, from when it arrived", "Expires: {99}", Lifetime(99, .expires)),
        Row("§4.2.1 with a wrong Date, from when it arrived", "Date: foo\nExpires: {99}", Lifetime(99, .expires)),
        Row("§4.2 Expires equal to Date", "Date: {0}\nExpires: {0}", Lifetime(0, .expires)),
        Row("§4.2 Expires before Date", "Date: {0}\nExpires: {-1}", Lifetime(0, .expires)),
        Row("§5.3 0 is the past", "Expires: 0", Lifetime(0, .expires)),
        Row("§5.3 so is -1", "Expires: -1", Lifetime(0, .expires)),
        Row("§5.3 and an empty value", "Expires:", Lifetime(0, .expires)),
        Row("§5.3 and words", "Expires: tomorrow", Lifetime(0, .expires)),
        Row("§5.3 and a number", "Expires: 784111900", Lifetime(0, .expires)),
        Row(
            "§5.3 the obsolete RFC 850 form", "Date: {0}\nExpires: Sunday, 06-Nov-94 08:50:37 GMT",
            Lifetime(60, .expires)),
        Row("§5.3 the obsolete asctime form", "Date: {0}\nExpires: Sun Nov  6 08:50:37 1994", Lifetime(60, .expires)),
        Row("§4.2 letters in any case", "Date: {0}\nExpires: sun, 06 nov 1994 08:50:37 gmt", Lifetime(60, .expires)),
        Row("§4.2 another zone is no date", "Date: {0}\nExpires: Sun, 06 Nov 1994 08:50:37 CET", Lifetime(0, .expires)),
        Row("§4.2 UTC is no date", "Date: {0}\nExpires: Sun, 06 Nov 1994 08:50:37 UTC", Lifetime(0, .expires)),
        Row("§5.3 one digit too few", "Date: {0}\nExpires: Sun, 6 Nov 1994 08:50:37 GMT", Lifetime(0, .expires)),
        Row("§5.3 with dashes", "Date: {0}\nExpires: Sun, 06-Nov-1994 08:50:37 GMT", Lifetime(0, .expires)),
        Row("§5.3 with dots", "Date: {0}\nExpires: Sun, 06 Nov 1994 08.50.37 GMT", Lifetime(0, .expires)),
        Row("§5.3 a time that is none", "Date: {0}\nExpires: Sun, 06 Nov 1994 25:50:37 GMT", Lifetime(0, .expires)),
        Row(
            "§5.3 the year 9999, as far as the operator allows", "Date: {0}\nExpires: Fri, 31 Dec 9999 23:59:59 GMT",
            Lifetime(31_536_000, .expires)),
        Row("§5.3 the year 1", "Date: {0}\nExpires: Mon, 01 Jan 0001 00:00:00 GMT", Lifetime(0, .expires)),
        Row("§4.2.1 the first of two Expires", "Date: {0}\nExpires: {9}\nExpires: {99}", Lifetime(9, .expires)),
        Row("§4.2.1 the first of two, which is past", "Date: {0}\nExpires: {-9}\nExpires: {99}", Lifetime(0, .expires)),
        Row("§5.3 two in one line are none", "Date: {0}\nExpires: {9}, {99}", Lifetime(0, .expires)),
    ]

    @Test(arguments: explicit)
    func `the first explicit lifetime in order of precedence counts`(row: Row<Lifetime>) {
        #expect(Lifetime(facts(row.fields)) == row.expected)
    }

    static let heuristic: [Row<Lifetime>] = [
        Row(
            "§4.2.2 a tenth of the time since Last-Modified", "Date: {0}\nLast-Modified: {-1000}",
            Lifetime(100, .heuristic)),
        Row("§4.2.2 without Date, until it arrived", "Last-Modified: {-1000}", Lifetime(100, .heuristic)),
        Row("§4.2.2 by the origin's clock", "Date: {5000}\nLast-Modified: {4000}", Lifetime(100, .heuristic)),
        Row(
            "§4.2.2 at most the operator's limit", "Date: {0}\nLast-Modified: {-9999999}", Lifetime(86_400, .heuristic)),
        Row("§4.2.2 rounded down to a second", "Date: {0}\nLast-Modified: {-199}", Lifetime(19, .heuristic)),
        Row("§4.2.2 of what changed a minute ago", "Date: {0}\nLast-Modified: {-60}", Lifetime(6, .heuristic)),
        Row("§4.2.2 too short for a second", "Date: {0}\nLast-Modified: {-9}", Lifetime(0, .none)),
        Row("§4.2.2 Last-Modified equal to Date", "Date: {0}\nLast-Modified: {0}", Lifetime(0, .none)),
        Row("§4.2.2 Last-Modified after Date", "Date: {0}\nLast-Modified: {500}", Lifetime(0, .none)),
        Row("§4.2.2 no Last-Modified", "Date: {0}", Lifetime(0, .none)),
        Row("§4.2.2 a wrong Last-Modified", "Date: {0}\nLast-Modified: yesterday", Lifetime(0, .none)),
        Row("§4.2.2 not beside max-age", "Cache-Control: max-age=0\nLast-Modified: {-1000}", Lifetime(0, .maxAge)),
        Row(
            "§4.2.2 not beside s-maxage", "Cache-Control: s-maxage=0\nLast-Modified: {-1000}",
            Lifetime(0, .sharedMaxAge)),
        Row("§4.2.2 not beside Expires", "Expires: 0\nLast-Modified: {-1000}", Lifetime(0, .expires)),
        Row(
            "§4.2.2 beside directives without a lifetime", "Cache-Control: public\nLast-Modified: {-1000}",
            Lifetime(100, .heuristic)),
        Row(
            "§5.4 Pragma in a response means nothing", "Pragma: no-cache\nLast-Modified: {-1000}",
            Lifetime(100, .heuristic)),
    ]

    @Test(arguments: heuristic)
    func `a heuristic lifetime is used only without an explicit one`(row: Row<Lifetime>) {
        #expect(Lifetime(facts(row.fields)) == row.expected)
    }

    static let statuses: [(UInt16, Bool)] = [
        (200, true), (203, true), (204, true), (206, true), (300, true), (301, true), (308, true), (404, true),
        (405, true), (410, true), (414, true), (501, true),
        (201, false), (202, false), (205, false), (207, false), (299, false), (302, false), (303, false), (307, false),
        (400, false), (401, false), (403, false), (429, false), (451, false), (500, false), (502, false), (503, false),
        (599, false),
    ]

    @Test(arguments: statuses)
    func `only heuristically cacheable statuses have a heuristic lifetime`(status: UInt16, allowed: Bool) {
        // RFC 9110 §15.1
        #expect(facts("Last-Modified: {-1000}", status: status).lifetime == (allowed ? 100 : 0))
        // RFC 9111 §5.2.2.9: public makes any of them heuristically cacheable.
        #expect(facts("Cache-Control: public\nLast-Modified: {-1000}", status: status).lifetime == 100)
    }

    @Test func `the operator sets fraction and limit of the heuristic lifetime`() {
        var policy = CachingPolicy()
        policy.heuristicPercent = 50
        #expect(facts("Last-Modified: {-1000}", policy: policy).lifetime == 500)
        policy.heuristicLimit = 20
        #expect(facts("Last-Modified: {-1000}", policy: policy).lifetime == 20)
        policy.heuristicLimit = .max
        policy.heuristicPercent = 250
        #expect(facts("Last-Modified: {-1000}", policy: policy).lifetime == 1000, "no more than the time itself")
        #expect(facts("Last-Modified: {-99}", policy: policy).lifetime == 99)
        policy.heuristicPercent = 0
        #expect(facts("Last-Modified: {-1000}", policy: policy).lifetime == 0)
        policy.defaultLifetimes = StatusLifetimes(other: .seconds(7))
        #expect(facts("Last-Modified: {-1000}", policy: policy).lifetime == 7, "no heuristic applies")
        (policy.heuristicPercent, policy.heuristicLimit) = (10, 0)
        #expect(facts("Last-Modified: {-1000}", policy: policy).lifetime == 7)
    }

    static let defaults: [Row<Lifetime>] = [
        Row("nothing to guess by", "Date: {0}", Lifetime(60, .heuristic)),
        Row("a wrong Last-Modified is nothing", "Last-Modified: yesterday", Lifetime(60, .heuristic)),
        Row("nor is one equal to Date", "Date: {0}\nLast-Modified: {0}", Lifetime(60, .heuristic)),
        Row("nor one after it", "Date: {0}\nLast-Modified: {500}", Lifetime(60, .heuristic)),
        Row("a guess goes first", "Date: {0}\nLast-Modified: {-1000}", Lifetime(100, .heuristic)),
        Row("one that is short as well", "Date: {0}\nLast-Modified: {-10}", Lifetime(1, .heuristic)),
        Row("not one of no second", "Date: {0}\nLast-Modified: {-9}", Lifetime(60, .heuristic)),
        Row("not beside max-age", "Cache-Control: max-age=0", Lifetime(0, .maxAge)),
        Row("not beside Expires", "Expires: 0", Lifetime(0, .expires)),
    ]

    @Test(arguments: defaults)
    func `the operator's default applies to responses without explicit and heuristic lifetime`(row: Row<Lifetime>) {
        var policy = CachingPolicy()
        policy.defaultLifetimes = StatusLifetimes(other: .seconds(60))
        #expect(Lifetime(facts(row.fields, policy: policy)) == row.expected)
    }

    @Test(arguments: statuses)
    func `the operator's default applies to heuristically cacheable statuses`(status: UInt16, allowed: Bool) {
        var policy = CachingPolicy()
        policy.defaultLifetimes = StatusLifetimes(other: .seconds(60))
        #expect(facts("Date: {0}", status: status, policy: policy).lifetime == (allowed ? 60 : 0))
    }

    static let byStatus: [(fields: String, status: UInt16, Lifetime)] = [
        ("", 200, Lifetime(60, .heuristic)), ("", 404, Lifetime(5, .heuristic)), ("", 301, Lifetime(0, .none)),
        ("", 410, Lifetime(7, .heuristic)), ("", 203, Lifetime(7, .heuristic)),
        // Part of a 200.
        ("Content-Range: bytes 0-1/2", 206, Lifetime(60, .heuristic)),
        // Named.
        ("", 302, Lifetime(9, .heuristic)), ("Date: {0}\nLast-Modified: {-1000}", 302, Lifetime(9, .heuristic)),
        ("Cache-Control: max-age=0", 302, Lifetime(0, .maxAge)),
        // What is not to be guessed about is named in vain, and not among the others.
        ("", 303, Lifetime(0, .none)), ("", 307, Lifetime(0, .none)), ("", 500, Lifetime(0, .none)),
        ("", 304, Lifetime(0, .none)),
        // RFC 9111 §5.2.2.9
        ("Cache-Control: public", 302, Lifetime(9, .heuristic)),
        ("Cache-Control: public", 500, Lifetime(7, .heuristic)),
        ("Cache-Control: max-age=1", 404, Lifetime(1, .maxAge)), ("Expires: 0", 404, Lifetime(0, .expires)),
        ("Date: {0}\nLast-Modified: {-1000}", 404, Lifetime(100, .heuristic)),
        ("Date: {0}\nLast-Modified: {0}", 404, Lifetime(5, .heuristic)),
    ]

    @Test(arguments: byStatus)
    func `the operator's default may differ by status`(fields: String, status: UInt16, expected: Lifetime) {
        var policy = CachingPolicy()
        policy.defaultLifetimes = StatusLifetimes(
            [(200, 60), (404, 5), (301, 0), (302, 9), (303, 9)].map {
                StatusLifetimes.Lifetime(Status($0.0), .seconds($0.1))
            }, other: .seconds(7))
        #expect(Lifetime(facts(fields, status: status, policy: policy)) == expected)
    }

    @Test func `a freshened response keeps the lifetime of its own status`() {
        var policy = CachingPolicy()
        policy.defaultLifetimes = StatusLifetimes([StatusLifetimes.Lifetime(Status(404), .seconds(5))])
        let update = head("ETag: \"a\"")
        let freshened = ResponseFacts(
            freshened: facts("ETag: \"a\"", status: 404, policy: policy), head: update.view, by: update.view,
            requestTime: arrival, responseTime: arrival, policy: policy)
        #expect(Lifetime(freshened) == Lifetime(5, .heuristic))
    }

    @Test func `a default below a second is exact to the nanosecond, and reported as one second`() {
        var policy = CachingPolicy()
        policy.defaultLifetimes = StatusLifetimes(other: .milliseconds(500))
        let response = facts("Date: {0}", policy: policy)
        func at(_ milliseconds: Int64) -> Moment {
            Moment(monotonic: arrival.monotonic + milliseconds * 1_000_000, wall: arrival.wall)
        }
        #expect(response.isFresh(at: at(499)) && !response.isFresh(at: at(500)))
        #expect(response.lifetime == 1 && response.timeToLive(at: at(0)) == 1)
        #expect(
            response.reuse(for: request("Cache-Control: min-fresh=0, max-stale"), at: at(0)) == .fresh(age: 0, ttl: 1))
        #expect(response.reuse(for: request("Cache-Control: min-fresh=1"), at: at(0)) == .validate(.requestAge))
        policy.defaultLifetimes = StatusLifetimes(other: .milliseconds(2500))
        let longer = facts("Date: {0}", policy: policy)
        #expect(longer.lifetime == 3 && longer.isFresh(at: at(2499)) && !longer.isFresh(at: at(2500)))
        #expect(longer.reuse(for: request("Cache-Control: min-fresh=2"), at: at(0)) == .fresh(age: 0, ttl: 3))
        #expect(longer.reuse(for: request("Cache-Control: min-fresh=3"), at: at(0)) == .validate(.requestAge))
    }

    @Test func `a response is fresh while younger than its lifetime, to the nanosecond`() {
        // §4.2: freshness_lifetime > current_age
        let response = facts("Cache-Control: max-age=1")
        #expect(response.isFresh(at: arrival))
        #expect(response.isFresh(at: Moment(monotonic: arrival.monotonic + 999_999_999, wall: arrival.wall)))
        #expect(!response.isFresh(at: arrival.after(1)))
    }
}
