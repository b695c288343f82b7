import HTTPSemantics
import Testing

/// RFC 9111 §4, §4.2.4, §5.2.1; RFC 5861: what a stored response may be used for.
struct ReuseTests {
    struct Case: Sendable, CustomTestStringConvertible {
        let clause: String, stored: String, asked: String, after: Double, expected: Reuse

        init(_ clause: String, _ stored: String, _ asked: String, after: Double, _ expected: Reuse) {
            (self.clause, self.stored, self.asked, self.after, self.expected) = (clause, stored, asked, after, expected)
        }

        var testDescription: String { "\(clause): \(stored), asked \(asked) after \(after) s" }
    }

    static let cases: [Case] = [
        Case("§4 fresh", "max-age=60", "", after: 0, .fresh(age: 0, ttl: 60)),
        Case("§4 fresh until the last second", "max-age=60", "", after: 59, .fresh(age: 59, ttl: 1)),
        Case("§4.2 stale when as old as its lifetime", "max-age=60", "", after: 60, .validate(.stale)),
        Case("§4 stale", "max-age=60", "", after: 100, .validate(.stale)),
        Case("§4.2 stale at once", "max-age=0", "", after: 0, .validate(.stale)),
        Case("§5.2.2.4 no-cache", "no-cache, max-age=60", "", after: 0, .validate(.noCache)),
        Case(
            "§5.2.2.4 no-cache for some fields", "no-cache=\"foo\", max-age=60", "", after: 0, .fresh(age: 0, ttl: 60)),
        Case("§5.2.2.4 no-cache against max-stale", "no-cache, max-age=60", "max-stale", after: 0, .validate(.noCache)),
        Case(
            "§5.2.2.2 fresh with must-revalidate", "max-age=60, must-revalidate", "", after: 1, .fresh(age: 1, ttl: 59)),
        Case("RFC 8246 fresh and immutable", "max-age=60, immutable", "", after: 1, .fresh(age: 1, ttl: 59)),
        Case("RFC 8246 stale though immutable", "max-age=60, immutable", "", after: 61, .validate(.stale)),
        Case(
            "RFC 8246 §2.1 a signal of the client counts", "max-age=60, immutable", "no-cache", after: 1,
            .validate(.requestNoCache)),

        Case("§5.2.1.4 the client's no-cache", "max-age=60", "no-cache", after: 0, .validate(.requestNoCache)),
        Case(
            "§5.2.1.5 the client's no-store does not matter for what is stored", "max-age=60", "no-store", after: 1,
            .fresh(age: 1, ttl: 59)),
        Case(
            "§5.2.1.7 only-if-cached changes nothing here", "max-age=60", "only-if-cached", after: 1,
            .fresh(age: 1, ttl: 59)),
        Case("§5.2.1.1 younger than max-age", "max-age=60", "max-age=10", after: 9, .fresh(age: 9, ttl: 51)),
        Case("§5.2.1.1 as old as max-age", "max-age=60", "max-age=10", after: 10, .fresh(age: 10, ttl: 50)),
        Case("§5.2.1.1 older than max-age", "max-age=60", "max-age=10", after: 11, .validate(.requestAge)),
        Case("§5.2.1.1 max-age=0 in the same second", "max-age=60", "max-age=0", after: 0.5, .fresh(age: 0, ttl: 60)),
        Case("§5.2.1.1 max-age=0 a second later", "max-age=60", "max-age=0", after: 1, .validate(.requestAge)),
        Case("§5.2.1.1 stale and younger than max-age", "max-age=60", "max-age=100", after: 70, .validate(.stale)),
        Case("§5.2.1.3 fresh for long enough", "max-age=60", "min-fresh=20", after: 40, .fresh(age: 40, ttl: 20)),
        Case("§5.2.1.3 not for long enough", "max-age=60", "min-fresh=20", after: 41, .validate(.requestAge)),
        Case("§5.2.1.3 longer than any lifetime", "max-age=60", "min-fresh=61", after: 0, .validate(.requestAge)),
        Case("§5.2.1.2 any stale one", "max-age=60", "max-stale", after: 9_999, .staleAccepted(age: 9_999)),
        Case("§5.2.1.2 stale within the limit", "max-age=60", "max-stale=10", after: 70, .staleAccepted(age: 70)),
        Case("§5.2.1.2 stale beyond it", "max-age=60", "max-stale=10", after: 71, .validate(.stale)),
        Case("§5.2.1.2 fresh is sent as fresh", "max-age=60", "max-stale", after: 5, .fresh(age: 5, ttl: 55)),
        Case(
            "§5.2.1.1 max-age and max-stale", "max-age=60", "max-age=100, max-stale=20", after: 70,
            .staleAccepted(age: 70)),
        Case("§5.2.1.1 max-age limits max-stale", "max-age=60", "max-age=65, max-stale", after: 70, .validate(.stale)),
        Case(
            "§5.2.1.3 min-fresh excludes max-stale", "max-age=60", "min-fresh=1, max-stale", after: 70,
            .validate(.stale)),
        Case(
            "§5.2.2.2 must-revalidate against max-stale", "max-age=60, must-revalidate", "max-stale", after: 70,
            .validate(.stale)),
        Case(
            "§5.2.2.8 proxy-revalidate against max-stale", "max-age=60, proxy-revalidate", "max-stale", after: 70,
            .validate(.stale)),
        Case("§5.2.2.10 s-maxage against max-stale", "s-maxage=60", "max-stale", after: 70, .validate(.stale)),

        Case(
            "RFC 5861 §3 within the window", "max-age=60, stale-while-revalidate=30", "", after: 61,
            .staleWhileRevalidate(age: 61)),
        Case(
            "RFC 5861 §3 at its end", "max-age=60, stale-while-revalidate=30", "", after: 90,
            .staleWhileRevalidate(age: 90)),
        Case("RFC 5861 §3 behind it", "max-age=60, stale-while-revalidate=30", "", after: 91, .validate(.stale)),
        Case(
            "RFC 5861 §3 not needed yet", "max-age=60, stale-while-revalidate=30", "", after: 1, .fresh(age: 1, ttl: 59)
        ),
        Case(
            "RFC 5861 §3 from the start", "max-age=0, stale-while-revalidate=30", "", after: 0,
            .staleWhileRevalidate(age: 0)),
        Case(
            "RFC 5861 §3 zero permits nothing", "max-age=60, stale-while-revalidate=0", "", after: 60, .validate(.stale)
        ),
        Case(
            "§5.2.2.2 not past must-revalidate", "max-age=60, stale-while-revalidate=30, must-revalidate", "",
            after: 61, .validate(.stale)),
        Case(
            "§5.2.2.8 not past proxy-revalidate", "max-age=60, stale-while-revalidate=30, proxy-revalidate", "",
            after: 61, .validate(.stale)),
        Case("§5.2.2.10 not past s-maxage", "s-maxage=60, stale-while-revalidate=30", "", after: 61, .validate(.stale)),
        Case(
            "§5.2.2.4 not past no-cache", "no-cache, max-age=0, stale-while-revalidate=30", "", after: 1,
            .validate(.noCache)),
        Case(
            "§5.2.1.1 not for a client that limits the age", "max-age=60, stale-while-revalidate=30", "max-age=100",
            after: 61, .validate(.stale)),
        Case(
            "§5.2.1.3 nor for one that wants it fresh", "max-age=60, stale-while-revalidate=30", "min-fresh=1",
            after: 61, .validate(.stale)),
        Case(
            "§5.2.1.4 nor past its no-cache", "max-age=60, stale-while-revalidate=30", "no-cache", after: 61,
            .validate(.stale)),
        Case(
            "RFC 5861 §3 past a smaller max-stale", "max-age=60, stale-while-revalidate=30", "max-stale=1", after: 70,
            .staleWhileRevalidate(age: 70)),
        Case(
            "RFC 5861 §4 stale-if-error alone permits nothing yet", "max-age=60, stale-if-error=30", "", after: 61,
            .validate(.stale)),
    ]

    @Test(arguments: cases)
    func `a stored response is used as origin and client permit`(row: Case) {
        let stored = facts("Cache-Control: \(row.stored)")
        let asked = row.asked.isEmpty ? RequestDirectives.none : request("Cache-Control: \(row.asked)")
        #expect(stored.reuse(for: asked, at: arrival.after(row.after)) == row.expected)
    }

    @Test func `the default stale-while-revalidate applies unless the origin says zero`() {
        var policy = CachingPolicy()
        policy.staleWhileRevalidate = 10
        let silent = facts("Cache-Control: max-age=60", policy: policy)
        let zero = facts("Cache-Control: max-age=60, stale-while-revalidate=0", policy: policy)
        #expect(silent.reuse(for: .none, at: arrival.after(65)) == .staleWhileRevalidate(age: 65))
        #expect(zero.reuse(for: .none, at: arrival.after(65)) == .validate(.stale))
    }

    @Test func `the limits of staleness are exact to the moment`() {
        let stored = facts("Cache-Control: max-age=60, stale-while-revalidate=1, stale-if-error=1")
        let (last, next) = (arrival.after(61), arrival.after(61.001))
        #expect(stored.reuse(for: .none, at: last) == .staleWhileRevalidate(age: 61))
        #expect(stored.reuse(for: .none, at: next) == .validate(.stale))
        let patient = request("Cache-Control: max-stale=1")
        #expect(stored.reuse(for: patient, at: last) == .staleAccepted(age: 61))
        #expect(stored.reuse(for: patient, at: next) == .validate(.stale))
        for (now, expected) in [(last, true), (next, false)] {
            let mayStandIn = stored.mayServeStale(
                on: .status(.badGateway), for: .none, at: now, policy: CachingPolicy())
            #expect(mayStandIn == expected)
        }
    }

    @Test func `the operator may permit stale use of s-maxage if the origin asks for it`() {
        var policy = CachingPolicy()
        policy.sharedMaxAgeForbidsStale = false
        let stored = facts("Cache-Control: s-maxage=60, stale-while-revalidate=30", policy: policy)
        #expect(stored.reuse(for: .none, at: arrival.after(61)) == .staleWhileRevalidate(age: 61))
    }

    @Test func `an invalidated response is validated first, however fresh`() {
        // §4.4
        var stored = facts("Cache-Control: max-age=60, stale-while-revalidate=99, stale-if-error=99")
        stored.invalidate()
        #expect(stored.reuse(for: .none, at: arrival.after(1)) == .validate(.invalidated))
        #expect(
            stored.reuse(for: request("Cache-Control: max-stale"), at: arrival.after(70)) == .validate(.invalidated))
        #expect(!stored.isFresh(at: arrival))
        #expect(!stored.mayServeStale(on: .unreachable, for: .none, at: arrival.after(1), policy: CachingPolicy()))
    }

    /// Each loop reads its clock once an iteration: another one may be behind that of the loop which fetched it.
    @Test func `a response without lifetime is not fresh by a clock that is behind`() {
        let before = arrival.after(-0.1)
        let (zero, none) = (facts("Cache-Control: max-age=0\nETag: \"a\""), facts("ETag: \"a\""))
        #expect(zero.reuse(for: .none, at: before) == .validate(.stale))
        #expect(none.reuse(for: .none, at: before) == .validate(.stale))
        #expect(zero.reuse(for: request("Cache-Control: max-age=60"), at: before) == .validate(.stale))
        #expect(zero.timeToLive(at: before) == 0)
        let refreshed = facts("Cache-Control: max-age=0, stale-while-revalidate=30")
        #expect(refreshed.reuse(for: .none, at: before) == .staleWhileRevalidate(age: 0))
        #expect(facts("Cache-Control: max-age=60").reuse(for: .none, at: before) == .fresh(age: 0, ttl: 60))
    }

    @Test func `a response that HEAD showed to be changed is stale`() {
        // §4.3.5
        var stored = facts("Cache-Control: max-age=60")
        stored.expire(at: arrival.after(5))
        #expect(stored.reuse(for: .none, at: arrival.after(5)) == .validate(.stale))
        #expect(stored.timeToLive(at: arrival.after(7)) == -2)
    }

    @Test func `HEAD does not make a stale response younger`() {
        var stored = facts("Cache-Control: max-age=10")
        stored.expire(at: arrival.after(15))
        #expect(stored.timeToLive(at: arrival.after(17)) == -7)
    }

    static let failures: [(String, asked: String, OriginFailure, after: Double, Bool)] = [
        ("max-age=60, stale-if-error=30", "", .status(Status(500)), 61, true),
        ("max-age=60, stale-if-error=30", "", .status(Status(502)), 61, true),
        ("max-age=60, stale-if-error=30", "", .status(Status(503)), 61, true),
        ("max-age=60, stale-if-error=30", "", .status(Status(504)), 90, true),
        ("max-age=60, stale-if-error=30", "", .status(Status(504)), 91, false),
        ("max-age=60, stale-if-error=30", "", .status(Status(501)), 61, false),
        ("max-age=60, stale-if-error=30", "", .status(Status(404)), 61, false),
        ("max-age=60, stale-if-error=30", "", .status(Status(429)), 61, false),
        ("max-age=60", "", .status(Status(503)), 61, false),
        ("max-age=60", "stale-if-error=30", .status(Status(503)), 61, true),
        ("max-age=60", "stale-if-error=30", .status(Status(503)), 91, false),
        ("max-age=60, stale-if-error=30", "max-age=0", .status(Status(503)), 61, true),
        ("max-age=60, stale-if-error=30", "no-cache", .status(Status(503)), 61, false),
        ("max-age=60, stale-if-error=30, must-revalidate", "", .status(Status(503)), 61, false),
        ("max-age=60, stale-if-error=30, proxy-revalidate", "", .status(Status(503)), 61, false),
        ("s-maxage=60, stale-if-error=30", "", .status(Status(503)), 61, false),
        ("max-age=60, stale-if-error=30, no-cache", "", .status(Status(503)), 61, false),
        ("max-age=60", "", .unreachable, 61, true), ("max-age=60", "", .timeout, 61, true),
        ("max-age=60", "", .overloaded, 61, true), ("max-age=60", "", .malformed, 61, false),
        ("max-age=60, stale-if-error=30", "", .malformed, 90, true),
        ("max-age=60, stale-if-error=30", "", .malformed, 91, false),
        ("max-age=60", "stale-if-error=30", .malformed, 61, true),
        ("max-age=60", "", .unreachable, 3_660, true), ("max-age=60", "", .unreachable, 3_661, false),
        ("max-age=60, stale-if-error=9000", "", .unreachable, 8_000, true),
        ("max-age=60, must-revalidate", "", .unreachable, 61, false),
        ("max-age=60, proxy-revalidate", "", .timeout, 61, false),
        ("s-maxage=60", "", .unreachable, 61, false), ("no-cache, max-age=60", "", .unreachable, 1, false),
        ("max-age=60", "no-cache", .unreachable, 61, false),
    ]

    @Test(arguments: failures)
    func `a stale response is used for a failing origin as origin and client permit`(
        stored: String, asked: String, failure: OriginFailure, after: Double, expected: Bool
    ) {
        // §4.2.4, §5.2.2.2, §5.2.2.8, §5.2.2.10; RFC 5861 §4
        let mayServe = facts("Cache-Control: \(stored)").mayServeStale(
            on: failure, for: asked.isEmpty ? .none : request("Cache-Control: \(asked)"),
            at: arrival.after(after), policy: CachingPolicy()
        )
        #expect(mayServe == expected)
    }

    @Test func `the default stale-if-error applies to a silent origin`() {
        var policy = CachingPolicy()
        policy.staleIfError = 30
        policy.staleIfUnreachable = 0
        let silent = facts("Cache-Control: max-age=60", policy: policy)
        let zero = facts("Cache-Control: max-age=60, stale-if-error=0", policy: policy)
        let now = arrival.after(61)
        #expect(silent.mayServeStale(on: .status(.badGateway), for: .none, at: now, policy: policy))
        #expect(!zero.mayServeStale(on: .status(.badGateway), for: .none, at: now, policy: policy))
        #expect(!zero.mayServeStale(on: .unreachable, for: .none, at: now, policy: policy))
    }
}
