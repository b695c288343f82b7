import Libevent
import Testing

@testable import Redis

/// Which texts are addresses of engines.
struct RedisAddressTests {
    struct Row: Sendable, CustomTestStringConvertible {
        let text: String
        let address: RedisAddress

        init(
            _ text: String, _ location: RedisAddress.Location, _ user: String? = nil, _ password: String? = nil,
            _ database: Int = 0, isSecure: Bool = false
        ) {
            self.text = text
            address = RedisAddress(location, user: user, password: password, database: database, isSecure: isSecure)
        }
        var testDescription: String { text }
    }

    @Test(arguments: [
        Row("redis://127.0.0.1:6379", .tcp(host: "127.0.0.1", port: 6379)),
        Row("rediss://:p@h/2", .tcp(host: "h", port: 6379), nil, "p", 2, isSecure: true),
        Row("redis://cache.internal", .tcp(host: "cache.internal", port: 6379)),
        Row("REDIS://redis_1:7000/", .tcp(host: "redis_1", port: 7000)),
        Row("redis://[::1]", .tcp(host: "::1", port: 6379)),
        Row("redis://[::1]:6380/3", .tcp(host: "::1", port: 6380), nil, nil, 3),
        Row("redis://h/15", .tcp(host: "h", port: 6379), nil, nil, 15),
        Row("redis://:secret@h", .tcp(host: "h", port: 6379), nil, "secret"),
        Row("redis://proxy:secret@h:1", .tcp(host: "h", port: 1), "proxy", "secret"),
        Row("redis://proxy:@h", .tcp(host: "h", port: 6379), "proxy", ""),
        Row("redis://a%3ab:p%40%2F%25:x@h/0", .tcp(host: "h", port: 6379), "a:b", "p@/%:x"),
        Row("redis://:p@ss/w?rd#1@h/2", .tcp(host: "h", port: 6379), nil, "p@ss/w?rd#1", 2),
        Row("redis://:%c3%a9@h", .tcp(host: "h", port: 6379), nil, "é"),
        Row("unix:/run/redis.sock", .unix(path: "/run/redis.sock")),
        Row("unix:/run/100%.sock", .unix(path: "/run/100%.sock")),
        Row("unix:/run/redis.sock?db=4", .unix(path: "/run/redis.sock"), nil, nil, 4),
        Row("unix:///run/redis%20one.sock", .unix(path: "/run/redis one.sock")),
        Row("unix://proxy:secret@/run/redis.sock?db=1", .unix(path: "/run/redis.sock"), "proxy", "secret", 1),
    ]) func `an address is read into its parts`(row: Row) throws {
        #expect(try RedisAddress(parsing: row.text) == row.address)
    }

    @Test(
        arguments: [
            ("", .empty), ("127.0.0.1", .unknownScheme("127.0.0.1")), ("localhost:6379", .unknownScheme("localhost")),
            ("secret@h", .unknownScheme("")), ("http://h", .unknownScheme("http")),
            ("redis:h", .unknownScheme("redis:")), ("rediss:h", .unknownScheme("rediss:")),
            ("redis:u:p@h", .unknownScheme("redis:")),
            ("redis://", .missingHost), ("redis:///1", .missingHost), ("redis://:6379", .missingHost),
            ("redis://:p@", .missingHost), ("redis://a b", .badHost("a b")), ("redis://ü", .badHost("ü")),
            ("redis://::1", .missingBracket), ("redis://[::1", .missingBracket), ("redis://[x]", .badHost("x")),
            ("redis://[127.0.0.1]", .badHost("127.0.0.1")), ("redis://h:", .badPort("")),
            ("redis://h:0", .badPort("0")),
            ("redis://h:65536", .badPort("65536")), ("redis://h:+1", .badPort("+1")), ("redis://[::1]x", .badPort("")),
            ("redis://h/x", .badDatabase("x")), ("redis://h/-1", .badDatabase("-1")),
            ("redis://h/2147483648", .badDatabase("2147483648")), ("redis://h/1/2", .badDatabase("1/2")),
            ("redis://h?db=1", .unknownEnd("?db=1")), ("redis://h/1#x", .unknownEnd("/1#x")),
            ("redis://secret@h", .loneUser), ("redis://u%4:p@h", .badEscape(.user)),
            ("redis://u:p%@h", .badEscape(.password)), ("redis://u:p%+1@h", .badEscape(.password)),
            ("redis://u:%ff@h", .badEscape(.password)), ("unix:", .badPath), ("unix:run/redis", .badPath),
            ("unix:/" + String(repeating: "x", count: 107), .badPath), ("unix://host/run/redis", .badPath),
            ("unix:///run/%zz", .badEscape(.path)), ("unix:///run/%00", .badPath), ("unix:/r?x=1", .unknownEnd("?x=1")),
            ("unix:/r?db=", .badDatabase("")), ("unix://secret@/r", .loneUser),
        ] as [(String, RedisAddressError)])
    func `any other text is refused, with the reason`(text: String, reason: RedisAddressError) {
        let error = #expect(throws: RedisAddressError.self) { try RedisAddress(parsing: text) }
        #expect(error == reason)
    }

    @Test(arguments: [
        ("redis://h", "redis://h:6379"), ("redis://u:secret@[::1]:1/2", "redis://u:***@[::1]:1/2"),
        ("redis://:secret@h", "redis://:***@h:6379"), ("rediss://u:secret@h/2", "rediss://u:***@h:6379/2"),
        ("unix:/r", "unix:/r"),
        ("unix://u:secret@/r?db=2", "unix://u:***@/r?db=2"),
    ]) func `a log shows no password`(text: String, shown: String) throws {
        #expect(try "\(RedisAddress(parsing: text))" == shown)
    }

    @Test func `an IP address and a path need no look-up`() throws {
        #expect(try RedisAddress(parsing: "redis://127.0.0.1:1").literal == .ipv4(.loopback, port: 1))
        #expect(try RedisAddress(parsing: "redis://[::1]").literal == .ipv6(.loopback, port: 6379))
        #expect(try RedisAddress(parsing: "unix:/r").literal == .unix(path: "/r"))
        #expect(try RedisAddress(parsing: "redis://localhost").literal == nil)
    }
}
