import HTTPSemantics
import Testing

/// `ttl`, `min-ttl` and `max-ttl`: lifetimes that the operator gives, against what responses say.
@Suite struct OperatorLifetimeTests {
    /// 60 s for every status that may be stored without being told; 500 and 403 are named.
    private static var policy: CachingPolicy {
        var policy = CachingPolicy()
        policy.fixedLifetimes = StatusLifetimes(
            [(404, 5), (500, 7), (403, 8), (302, 9), (400, 10)].map {
                StatusLifetimes.Lifetime(Status($0.0), .seconds($0.1))
            }, other: .seconds(60))
        return policy
    }

    private static func bounds(_ least: UInt32, _ most: UInt32) -> CachingPolicy {
        var policy = CachingPolicy()
        (policy.minLifetime, policy.maxLifetime) = (least, most)
        return policy
    }

    private func verdict(
        _ fields: String, status: UInt16 = 200, method: HTTPSemantics.Method = .get, hasAuthorization: Bool = false,
        policy: CachingPolicy
    ) -> Storability {
        facts(fields, status: status, policy: policy).storability(
            answering: RequestFacts(
                method: method, directives: .none, hasAuthorization: hasAuthorization, hasPassCookie: false,
                isBound: false), answersTarget: true, policy: policy)
    }

    private func sharing(
        _ fields: String, status: UInt16 = 200, hasAuthorization: Bool = false, policy: CachingPolicy
    ) -> Sharing {
        facts(fields, status: status, policy: policy).sharing(
            answering: RequestFacts(
                method: .get, directives: .none, hasAuthorization: hasAuthorization, hasPassCookie: false,
                isBound: false), policy: policy)
    }

    /// Whether it is fresh for exactly so long after it arrived.
    private func lasts(_ response: ResponseFacts, _ seconds: Double) -> Bool {
        (seconds == 0 || response.isFresh(at: arrival.after(seconds - 0.001)))
            && !response.isFresh(at: arrival.after(seconds))
    }

    // MARK: ttl

    static let replaced: [Row<Double>] = [
        Row("nothing said", "", 60), Row("a shorter lifetime", "Cache-Control: max-age=1", 60),
        Row("a longer lifetime", "Cache-Control: max-age=900, s-maxage=900", 60),
        Row("none at all", "Cache-Control: max-age=0", 60), Row("Expires", "Date: {0}\nExpires: {5}", 60),
        Row("an invalid Expires", "Expires: 0", 60), Row("a guess", "Last-Modified: {-9000}", 60),
        Row("no-cache", "Cache-Control: no-cache", 60),
        Row("no-cache, max-age", "Cache-Control: no-cache, max-age=5", 60),
        Row("must-revalidate", "Cache-Control: max-age=0, must-revalidate", 60),
        Row("s-maxage", "Cache-Control: s-maxage=0", 60), Row("public", "Cache-Control: public, no-cache", 60),
        Row("a targeted field", "CDN-Cache-Control: max-age=5, no-cache", 60),
        Row("Age, which says nothing of this cache", "Cache-Control: max-age=60\nAge: 900", 60),
        Row("Date of an hour ago", "Date: {-3600}", 60), Row("Pragma", "Pragma: no-cache", 60),
    ]

    @Test(arguments: replaced)
    func `ttl counts from the arrival, whatever the response says`(row: Row<Double>) {
        let response = facts(row.fields, delay: 2.5, policy: Self.policy)
        #expect(lasts(response, row.expected))
        #expect(!response.contains(.noCache) && !response.contains(.mustRevalidate))
        #expect(!response.contains(.separatesRequests))
        #expect(verdict(row.fields, policy: Self.policy) == .store)
        #expect(sharing(row.fields, policy: Self.policy) == .everyone)
    }

    @Test func `ttl leaves the age as it is, and is announced in whole seconds`() {
        let response = facts("Age: 900", delay: 0.25, policy: Self.policy)
        #expect(response.reuse(for: .none, at: arrival) == .fresh(age: 900, ttl: 60))
        #expect(response.reuse(for: .none, at: arrival.after(59)) == .fresh(age: 959, ttl: 1))
        #expect(response.reuse(for: request("Cache-Control: max-age=899"), at: arrival) == .validate(.requestAge))
        #expect(response.reuse(for: request("Cache-Control: min-fresh=59"), at: arrival) == .fresh(age: 900, ttl: 60))
        #expect(response.reuse(for: request("Cache-Control: min-fresh=61"), at: arrival) == .validate(.requestAge))
        #expect(facts("", delay: 0.25, policy: Self.policy).reuse(for: .none, at: arrival) == .fresh(age: 0, ttl: 60))
    }

    static let statuses: [(status: UInt16, fields: String, lasts: Double, isStored: Bool)] = [
        (200, "", 60, true), (203, "", 60, true), (404, "", 5, true), (410, "", 60, true), (301, "", 60, true),
        (302, "", 9, true), (500, "", 7, true), (403, "", 8, true), (400, "", 10, true),
        (404, "Cache-Control: max-age=900", 5, true), (500, "Cache-Control: no-cache", 7, true),
        // Not named.
        (503, "", 0, false), (307, "", 0, false), (503, "Cache-Control: max-age=3", 3, true),
        // About one request, whatever is said.
        (414, "", 60, false), (401, "Cache-Control: max-age=3", 3, false),
    ]

    @Test(arguments: statuses)
    func `ttl is for the statuses that it names, and those that may be stored without being told`(
        status: UInt16, fields: String, lasts seconds: Double, isStored: Bool
    ) {
        #expect(lasts(facts(fields, status: status, policy: Self.policy), seconds))
        #expect((verdict(fields, status: status, policy: Self.policy) == .store) == isStored)
        #expect((sharing(fields, status: status, policy: Self.policy) == .everyone) == isStored)
    }

    static let forbidden: [Row<Prohibition>] = [
        Row("private", "Cache-Control: private", .private), Row("no-store", "Cache-Control: no-store", .noStore),
        Row("no-store beside a lifetime", "Cache-Control: no-store, max-age=9", .noStore),
        Row("Set-Cookie", "Set-Cookie: a=b", .setCookie), Row("Vary: *", "Vary: *", .varyStar),
        Row("a targeted private", "CDN-Cache-Control: private\nCache-Control: max-age=9", .private),
    ]

    @Test(arguments: forbidden)
    func `neither ttl nor min-ttl makes anything storable that is not for all clients`(row: Row<Prohibition>) {
        for policy in [Self.policy, Self.bounds(60, 90)] {
            #expect(verdict(row.fields, policy: policy) == .doNotStore(.prohibited(row.expected)))
            #expect(sharing(row.fields, policy: policy) == .nobody(.prohibited(row.expected)))
        }
    }

    static let authorized: [(fields: String, withTTL: Bool, withMinTTL: Bool)] = [
        ("", false, false), ("Cache-Control: max-age=9", false, false), ("Cache-Control: public", true, true),
        ("Cache-Control: public, no-cache", false, true), ("Cache-Control: s-maxage=9", true, true),
        // These let a cache store it and validate it each time; for longer they allow nothing.
        ("Cache-Control: no-cache, must-revalidate", false, true),
        ("Cache-Control: max-age=0, must-revalidate", false, false), ("Cache-Control: s-maxage=0", false, false),
    ]

    @Test(arguments: authorized)
    func `a response to a request with Authorization is shared only if its own directives allow the use`(
        fields: String, withTTL: Bool, withMinTTL: Bool
    ) {
        for (policy, isShared) in [(Self.policy, withTTL), (Self.bounds(60, 90), withMinTTL)] {
            let storability = verdict(fields, hasAuthorization: true, policy: policy)
            #expect((storability != .doNotStore(.prohibited(.authorization))) == isShared, "\(storability)")
            let scope = sharing(fields, hasAuthorization: true, policy: policy)
            #expect((scope != .nobody(.prohibited(.authorization))) == isShared, "\(scope)")
        }
    }

    @Test func `without ttl must-revalidate allows the sharing of an authorized response as ever`() {
        let fields = "Cache-Control: max-age=9, must-revalidate"
        for policy in [CachingPolicy(), Self.bounds(0, 5), Self.bounds(5, 90)] {
            #expect(verdict(fields, hasAuthorization: true, policy: policy) == .store)
        }
        #expect(
            verdict(fields, hasAuthorization: true, policy: Self.policy) == .doNotStore(.prohibited(.authorization)))
    }

    @Test func `a ttl of zero makes a response stale from the start, and never kept without a validator`() {
        var policy = CachingPolicy()
        policy.fixedLifetimes = StatusLifetimes(other: .zero)
        for fields in ["Cache-Control: max-age=9", "", "Last-Modified: {-9000}\nAge: 9"] {
            let response = facts(fields, policy: policy)
            #expect(lasts(response, 0) && response.lifetime == 0)
            #expect(sharing(fields, policy: policy) == .waitersOnly)
        }
        #expect(verdict("Cache-Control: max-age=9", policy: policy) == .doNotStore(.noFreshness))
        #expect(verdict("Cache-Control: max-age=9\nETag: \"a\"", policy: policy) == .store)
    }

    @Test func `a stale response with ttl is used by the operator's rules, whatever it says of validation`() {
        var policy = Self.policy
        policy.staleWhileRevalidate = 10
        let stale = arrival.after(65)
        for fields in [
            "Cache-Control: max-age=0, must-revalidate", "Cache-Control: s-maxage=1", "Cache-Control: no-cache",
        ] {
            let response = facts(fields, policy: policy)
            #expect(response.reuse(for: .none, at: stale) == .staleWhileRevalidate(age: 65), "\(fields)")
            #expect(response.mayServeStale(on: .unreachable, for: .none, at: stale, policy: policy), "\(fields)")
        }
    }

    @Test func `an event stream is not stored because of ttl or min-ttl`() {
        for fields in ["Content-Type: text/event-stream", "Content-Type: text/event-stream\nCache-Control: max-age=0"] {
            for policy in [Self.policy, Self.bounds(60, 90)] {
                #expect(verdict(fields, policy: policy) == .doNotStore(.incremental))
            }
        }
    }

    @Test func `an answer to POST needs a lifetime of its own`() {
        var policy = Self.policy
        policy.storesPostAnswers = true
        #expect(verdict("", method: .post, policy: policy) == .doNotStore(.method))
        #expect(verdict("Cache-Control: max-age=0", method: .post, policy: policy) == .doNotStore(.method))
        #expect(verdict("Cache-Control: max-age=9", method: .post, policy: policy) == .store)
    }

    @Test func `a 304 begins the ttl anew`() {
        let first = facts("ETag: \"a\"", policy: Self.policy)
        let update = head("ETag: \"a\"\nCache-Control: no-cache"), later = arrival.after(100)
        let freshened = ResponseFacts(
            freshened: first, head: update.view, by: update.view, requestTime: later, responseTime: later,
            policy: Self.policy)
        #expect(freshened.isFresh(at: arrival.after(159.9)) && !freshened.isFresh(at: arrival.after(160)))
    }

    // MARK: min-ttl and max-ttl

    /// How long a response is fresh with 10 s as the least and 90 s as the most.
    static let bounded: [Row<Double>] = [
        Row("between", "Cache-Control: max-age=30", 30), Row("less", "Cache-Control: max-age=3", 10),
        Row("more", "Cache-Control: max-age=300", 90), Row("zero", "Cache-Control: max-age=0", 10),
        Row("s-maxage=0", "Cache-Control: s-maxage=0", 10), Row("an invalid max-age", "Cache-Control: max-age=x", 10),
        Row("Expires", "Date: {0}\nExpires: {5}", 10), Row("Expires in a year", "Date: {0}\nExpires: {31536000}", 90),
        Row("Expires: 0", "Expires: 0", 10), Row("a short guess", "Date: {0}\nLast-Modified: {-60}", 10),
        Row("a long guess", "Date: {0}\nLast-Modified: {-60000}", 90),
        // They count from the arrival; the lifetime of the response counts from its birth.
        Row("what is left of it", "Cache-Control: max-age=300\nAge: 250", 50),
        Row("too little of it", "Cache-Control: max-age=300\nAge: 299", 10),
        Row("nothing of it", "Cache-Control: max-age=300\nAge: 900", 10),
        // Nothing is said of a lifetime.
        Row("nothing said", "", 0), Row("a date alone", "Date: {0}", 0),
        // RFC 9111 §5.2.2.4
        Row("no-cache", "Cache-Control: no-cache", 0),
        Row("no-cache beside a lifetime", "Cache-Control: no-cache, max-age=30", 0),
    ]

    @Test(arguments: bounded)
    func `min-ttl and max-ttl are the bounds of what the response says`(row: Row<Double>) {
        let response = facts(row.fields, policy: Self.bounds(10, 90))
        #expect(lasts(response, row.expected))
    }

    @Test func `the operator's default is bounded too, ttl is not`() {
        var policy = Self.bounds(10, 90)
        policy.defaultLifetimes = StatusLifetimes(other: .seconds(300))
        #expect(lasts(facts("", policy: policy), 90))
        policy.defaultLifetimes = StatusLifetimes(other: .milliseconds(500))
        #expect(lasts(facts("", policy: policy), 10))
        policy.fixedLifetimes = StatusLifetimes(other: .seconds(600))
        #expect(lasts(facts("Cache-Control: max-age=1", policy: policy), 600))
        policy.fixedLifetimes = StatusLifetimes(other: .seconds(1))
        #expect(lasts(facts("Cache-Control: max-age=50", policy: policy), 1))
    }

    @Test func `min-ttl keeps no error, and must-revalidate holds after it`() {
        let policy = Self.bounds(10, 90)
        for status: UInt16 in [500, 503, 403, 302] {
            #expect(lasts(facts("Cache-Control: max-age=0", status: status, policy: policy), 0))
        }
        #expect(lasts(facts("Cache-Control: max-age=0", status: 404, policy: policy), 10))
        let response = facts("Cache-Control: max-age=0, must-revalidate", policy: policy)
        #expect(lasts(response, 10) && response.contains(.mustRevalidate))
    }

    @Test func `without these settings a response keeps its lifetime to the nanosecond`() {
        #expect(lasts(facts("Cache-Control: max-age=300", policy: Self.bounds(0, 300)), 300))
        #expect(
            facts("Cache-Control: max-age=300\nAge: 900", policy: Self.bounds(0, 300)).freshUntil
                == arrival.monotonic - 600_000_000_000)
    }
}

extension OperatorLifetimeTests {
    /// A response that says that each use needs a validation permits nothing for a lifetime that it does not state.
    @Test(arguments: [
        ("public, no-cache", false), ("public, max-age=0", false), ("public, max-age=0, must-revalidate", false),
        ("public, s-maxage=10, no-cache", false), ("s-maxage=10, no-cache", false),
        ("public", true), ("public, max-age=10", true), ("s-maxage=10", true),
    ]) func `public permits sharing with ttl only where the response may be used without a validation`(
        _ cacheControl: String, _ permits: Bool
    ) {
        let facts = facts("Cache-Control: \(cacheControl)", policy: Self.policy)
        #expect(facts.contains(.allowsAuthorized) == permits)
        #expect(facts.contains(.public) == (permits && cacheControl.hasPrefix("public")))
    }
}
