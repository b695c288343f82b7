import Bytes
import HTTPSemantics
import Libevent
import Repeatable
import Testing

@testable import Routing

@Suite struct `A rate limit` {
    /// A token bucket in the words of its definition, with fractions of tokens.
    private struct Model {
        var tokens: Double
        var time: Int64 = 0

        mutating func take(_ rate: RequestRate, burst: Int, at now: Int64) -> Bool {
            let gained = Double(now - time) * Double(rate.requests) / Double(rate.period.rawValue) / 1e9
            tokens = min(Double(burst), tokens + gained)
            time = now
            // The limiter counts whole nanoseconds.
            guard tokens > 1 - 1e-6 else { return false }
            tokens -= 1
            return true
        }
    }

    @Test func `a client may send a burst at once, and then one request after another`() {
        let (limiter, bucket) = (RateLimiter(), TokenBucket(RequestRate(20, per: .second), burst: 40))
        for _ in 0..<40 { #expect(limiter.take(from: 7, bucket, at: 1_000) == 0) }
        #expect(limiter.take(from: 7, bucket, at: 1_000) == 50_000_000)
        // A refused request takes no token.
        #expect(limiter.take(from: 7, bucket, at: 50_000_999) == 1)
        #expect(limiter.take(from: 7, bucket, at: 50_001_000) == 0)
        #expect(limiter.take(from: 7, bucket, at: 50_001_000) == 50_000_000)
        // Other clients have buckets of their own.
        #expect(limiter.take(from: 8, bucket, at: 50_001_000) == 0)
    }

    @Test(arguments: [(1, RequestRate.Period.second, 1), (7, .second, 3), (100, .minute, 100), (3, .hour, 10)])
    func `a client gets what a token bucket gives it`(_ requests: Int, _ period: RequestRate.Period, _ burst: Int) {
        var random = SeededGenerator(ofTest: UInt64(requests))
        let rate = RequestRate(requests, per: period)
        let (limiter, bucket) = (RateLimiter(), TokenBucket(rate, burst: burst))
        var models = [Model](repeating: Model(tokens: Double(burst)), count: 300)
        var now: Int64 = 0
        for _ in 0..<30_000 {
            now += Int64.random(in: 0...bucket.interval / 100, using: &random)
            let client = Int.random(in: 0..<models.count, using: &random)
            let isAdmitted = limiter.take(from: UInt64(client) << 20, bucket, at: now) == 0
            #expect(isAdmitted == models[client].take(rate, burst: burst, at: now))
        }
    }

    /// A million with `COALESCED_TEST_ROUNDS=5`.
    @Test(.timeLimit(.minutes(10)))
    func `many clients are limited exactly, in 32 MiB`() {
        let (limiter, hash) = (RateLimiter(), KeyedHash(k0: 1, k1: 2))
        let bucket = TokenBucket(RequestRate(2, per: .hour), burst: 2)
        let clients = UInt64(min(1_000_000, 200_000 * Rounds.count))
        var admitted = 0
        // Ten thousand requests a second.
        for round in 0..<3 as Range<UInt64> {
            for client in 0..<clients {
                let now = Int64(round * clients + client) * 100_000
                if limiter.take(from: hash.hash(client, 0, 0), bucket, at: now) == 0 { admitted += 1 }
            }
        }
        #expect(admitted == 2 * Int(clients))
        #expect(limiter.slots.used == Int(clients))
        #expect(limiter.slots.all * 16 <= 32 << 20)
    }

    @Test func `the table is as small as its busy clients allow, and idle ones are forgotten`() {
        let (limiter, hash) = (RateLimiter(), KeyedHash(k0: 1, k1: 2))
        let bucket = TokenBucket(RequestRate(1, per: .second), burst: 1)
        // A thousand clients a second, and none comes again.
        for client in 0..<50_000 as Range<UInt64> {
            #expect(limiter.take(from: hash.hash(client, 0, 0), bucket, at: Int64(client) * 1_000_000) == 0)
        }
        #expect(limiter.slots.all <= 8_192)
    }

    @Test func `beyond the largest table, the clients that are nearest to a full bucket are forgotten`() {
        let (mostSlots, hash) = (1 << 14, KeyedHash(k0: 1, k1: 2))
        let (limiter, bucket) = (RateLimiter(mostSlots: mostSlots), TokenBucket(RequestRate(1, per: .hour), burst: 1))
        let clients: UInt64 = 20_000
        for client in 0..<clients {
            #expect(limiter.take(from: hash.hash(client, 0, 0), bucket, at: Int64(client)) == 0)
        }
        #expect(limiter.slots.all == mostSlots)
        let isLimited = { limiter.take(from: hash.hash($0, 0, 0), bucket, at: Int64(clients)) > 0 }
        #expect((clients - 4_000..<clients).allSatisfy(isLimited), "those that came last")
    }
}

@Suite struct `The rules of who may use a route` {
    @Test(
        arguments: [
            ([], [], "192.0.2.1", true),
            (["192.0.2.0/24"], [], "192.0.2.1", true), (["192.0.2.0/24"], [], "192.0.3.1", false),
            (["192.0.2.0/24"], ["192.0.2.7"], "192.0.2.7", false), ([], ["192.0.2.7"], "192.0.2.8", true),
            (["2001:db8::/32"], [], "2001:db8::1", true), (["2001:db8::/32"], [], "192.0.2.1", false),
            (["192.0.2.0/24"], [], "::ffff:192.0.2.1", true), (["unix"], [], "", true), (["192.0.2.1"], [], "", false),
            ([], ["unix"], "", false),
        ] as [([String], [String], String, Bool)])
    func `a client is served if it is allowed and not denied`(
        _ allow: [String], _ deny: [String], _ client: String, _ isServed: Bool
    ) throws {
        var settings = RouteSettings(upstream: "a")
        settings.allow = try allow.map(Self.pattern)
        settings.deny = try deny.map(Self.pattern)
        let refusal = try AccessRules(settings)?.refusal(
            of: Self.address(client), Self.noFields.view, RateLimiter(), hash: Self.hash, at: 0)
        #expect(refusal == (isServed ? nil : .denied))
    }

    @Test func `the addresses of an IPv6 subnet count as one client`() throws {
        let rules = try #require(AccessRules(Self.limited))
        let limiter = RateLimiter()
        func isServed(_ client: String) throws -> Bool {
            try rules.refusal(of: Self.address(client), Self.noFields.view, limiter, hash: Self.hash, at: 0) == nil
        }
        #expect(try isServed("2001:db8::1") && !isServed("2001:db8::2") && isServed("2001:db8:0:1::1"))
        #expect(try isServed("192.0.2.1") && isServed("192.0.2.2") && !isServed("::ffff:192.0.2.1"))
        #expect(try isServed("") && !isServed(""), "clients of Unix sockets share a bucket")
    }

    @Test func `a field's values are counted apart, and requests without it are not limited`() throws {
        var settings = Self.limited
        settings.rateLimit?.field = "x-api-key"
        let rules = try #require(AccessRules(settings))
        let limiter = RateLimiter()
        func isServed(_ fields: String) -> Bool {
            let fields = HeadBlock(lines: ByteSlice(fields))
            return rules.refusal(of: nil, fields.view, limiter, hash: Self.hash, at: 0) == nil
        }
        #expect(isServed("X-Api-Key: a\r\n") && !isServed("x-api-key: a\r\n") && isServed("X-Api-Key: b\r\n"))
        #expect(isServed("") && isServed(""))
    }

    @Test func `a refusal says when the client may come again`() throws {
        var settings = Self.limited
        settings.rateLimit?.burst = 30
        let rules = try #require(AccessRules(settings))
        #expect(
            String(rules.lines(ofRefusalFor: 1_000_000_001))
                == "Retry-After: 2\r\nRateLimit-Policy: \"requests\";q=30;w=1800\r\nRateLimit: \"requests\";r=0;t=2\r\n"
        )
    }

    @Test(arguments: [
        (RequestRate(20, per: .second), 20, "q=20;w=1"), (RequestRate(20, per: .second), 40, "q=40;w=2"),
        // Five in a second would be less than the rate.
        (RequestRate(20, per: .second), 5, "q=20;w=1"), (RequestRate(20, per: .second), 30, "q=20;w=1"),
        (RequestRate(100, per: .minute), 1, "q=100;w=60"), (RequestRate(100, per: .minute), 10, "q=10;w=6"),
        (RequestRate(3, per: .second), 3, "q=3;w=1"), (RequestRate(1, per: .hour), 1, "q=1;w=3600"),
    ])
    func `the policy in a refusal promises the rate`(_ rate: RequestRate, _ burst: Int, _ policy: String) throws {
        var settings = Self.limited
        settings.rateLimit?.rate = rate
        settings.rateLimit?.burst = burst
        let rules = try #require(AccessRules(settings))
        let lines = String(rules.lines(ofRefusalFor: 1))
        #expect(lines.contains("RateLimit-Policy: \"requests\";\(policy)\r\n"), "\(lines)")
    }

    private static let hash = KeyedHash(k0: 3, k1: 4)
    private static let noFields = HeadBlock(lines: ByteSlice(""))
    private static var limited: RouteSettings {
        var (settings, limit) = (RouteSettings(upstream: "a"), RateLimitSettings())
        limit.rate = RequestRate(1, per: .minute)
        settings.rateLimit = limit
        return settings
    }

    private static func pattern(_ text: String) throws -> AddressPattern {
        text == "unix" ? .unix : .addresses(try AddressBlock(parsing: text))
    }

    private static func address(_ text: String) throws -> IPAddress? {
        guard !text.isEmpty else { return nil }
        let bytes = Array(text.utf8)
        let address: IPAddress? = IPAddress(bytes.span)
        let parsed: IPAddress = try #require(address)
        return parsed
    }
}
