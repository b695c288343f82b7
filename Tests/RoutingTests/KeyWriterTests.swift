import Bytes
import HTTPSemantics
import Storage
import RouteTesting
import Testing
import Upstream

@testable import Routing

/// RFC 9111 §2: what makes two requests ask for the same.
@Suite struct KeyWriterTests {
    /// Requests of one line have one key, those of different lines different ones.
    struct Row: Sendable, CustomTestStringConvertible {
        let testDescription: String
        let key: KeyPolicy
        let keys: [[String]]

        init(_ what: String, _ keys: [[String]], _ change: (inout KeyPolicy) -> Void = { _ in }) {
            var key = KeyPolicy()
            change(&key)
            (testDescription, self.key, self.keys) = (what, key, keys)
        }
    }

    @Test(arguments: [
        Row(
            "host and port",
            [
                [
                    "GET /x", "GET /x\nHost: A.EXAMPLE", "GET /x\nHost: a.example:80",
                    "GET http://a.example/x\nHost: other", "GET http://a.example:80/x",
                ],
                ["GET /x\nHost: a.example:8080"], ["GET /x\nHost: b.example"], ["GET /x\nHost: a.example.b"],
            ]),
        Row(
            "path and query as they came",
            [
                ["GET /", "GET http://a.example", "HEAD /"], ["GET /?", "GET http://a.example?"], ["GET /x"],
                ["GET /X"], ["GET //x"], ["GET /x/"], ["GET /%78"],
                ["GET /x?a=1&b=2"], ["GET /x?b=2&a=1"], ["GET /x?a=1&b=2&"], ["GET /x?a=1?b=2"],
            ]),
        Row(
            "no field counts",
            [["GET /x", "GET /x\nCookie: a=1", "GET /x\nAccept-Language: de", "POST /x\nContent-Length: 0"]]),
        Row("no query", [["GET /x", "GET /x?", "GET /x?a=1"], ["GET /y?a=1"]]) { $0.query = .dropped },
        Row(
            "but these parameters",
            [
                ["GET /x?a=1", "GET /x?a=1&u=2", "GET /x?u=2&a=1&u=3", "GET /x?u&a=1"], ["GET /x", "GET /x?u=1"],
                ["GET /x?a=1&U=2"], ["GET /x?a=1&%75=2"],
            ]
        ) { $0.query = .dropping(["u"]) },
        Row(
            "these parameters",
            [
                ["GET /x?p=1", "GET /x?p=1&a=2", "GET /x?b&p=1"], ["GET /x", "GET /x?a"], ["GET /x?p=2"], ["GET /x?p"],
                ["GET /x?p=1&p=2"],
            ]
        ) {
            $0.query = .keeping(["p"])
        },
        Row(
            "parameters in any order, but values of one in theirs",
            [
                ["GET /x?a=1&b=2", "GET /x?b=2&a=1"],
                ["GET /x?a=1&a=2&b=0", "GET /x?b=0&a=1&a=2", "GET /x?a=1&b=0&a=2"], ["GET /x?a=2&a=1&b=0"],
            ]
        ) { $0.sortsQuery = true },
        Row(
            "fields",
            [
                ["GET /x\nX-T: 1", "GET /x\nx-t: 1", "GET /x\nX-T:  1 "], ["GET /x\nX-T: 2"], ["GET /x"],
                ["GET /x\nX-T:"], ["GET /x\nX-T: 1\nX-T: 2"], ["GET /x\nX-T: 1,2"],
                ["GET /y\nX-T: 1", "GET /y\nX-T: 1\nX-Other: 3"], ["GET /z", "GET /z\nConnection: x-t\nX-T: 1"],
            ]
        ) { $0.fields = [ByteSlice("x-t")] },
        Row("a value is in its own field", [["GET /x\nA: 1"], ["GET /x\nB: 1"], ["GET /x\nA: 1\nB: 1"], ["GET /x"]]) {
            $0.fields = [ByteSlice("a"), ByteSlice("b")]
        },
        Row(
            "cookies",
            [
                ["GET /x\nCookie: t=1", "GET /x\nCookie: s=2; t=1", "GET /x\nCookie: s=2\nCookie: t=1"],
                ["GET /x\nCookie: t=2"], ["GET /x", "GET /x\nCookie: s=2"],
                ["GET /x\nCookie: t="], ["GET /x\nCookie: t=1; t=2"],
            ]
        ) { $0.cookies = [ByteSlice("t")] },
    ])
    func `requests have the same key if the policy says that they are for the same resource`(_ row: Row) throws {
        let route = Self.route(row.key)
        let writer = KeyWriter(hash: hash)
        var seen: [String: Int] = [:]
        for (line, requests) in row.keys.enumerated() {
            for request in requests {
                let key = try Self.key(request, route, writer)
                let text = String(key.bytes)
                let former = seen[text]
                #expect(former == nil || former == line, "\(request) has the key of \(row.keys[former ?? 0][0])")
                seen[text] = line
            }
        }
        #expect(seen.count == row.keys.count, "\(seen.keys)")
    }

    @Test func `a key begins with scheme and host, whatever the route adds`() throws {
        let writer = KeyWriter(hash: hash)
        let plain = try Self.key("GET /x?y\nHost: A.example:8080", Self.route(KeyPolicy()), writer)
        #expect(plain.bytes == ByteSlice("http a.example:8080 /x?y"))
        let authority = plain.authority
        #expect(String(authority) == "a.example:8080")
        #expect(plain.hash == hash.hash(plain.bytes.span))
        var policy = KeyPolicy()
        policy.cookies = [ByteSlice("t")]
        let special = try Self.key("GET /x\nCookie: t=1", Self.route(policy), writer)
        #expect(String(special.bytes).hasPrefix("http a.example /x\0"))
    }

    /// What it keeps of the one before spares work, and must not be seen.
    @Test func `a key does not depend on the key written before`() throws {
        let requests = [
            "GET /a", "GET /b", "GET /c\nHost: b.example", "GET /c\nHost: B.example", "GET /c\nHost: b.example:80",
            "GET /c\nHost: b.example:81", "GET /a", "GET http://a.example",
            "GET /a?b\nHost: [::1]:80", "OPTIONS *", "GET /a",
        ]
        let writer = KeyWriter(hash: hash)
        let route = Self.route(KeyPolicy())
        let variation = try #require(Self.variation())
        for first in requests {
            for second in requests {
                let alone = try Self.key(second, route, KeyWriter(hash: hash))
                _ = try Self.key(first, route, writer)
                let after = try Self.key(second, route, writer)
                #expect(after == alone, "\(second) after \(first)")
                writer.rewrite(under: variation)
                let rewritten = writer.key()
                #expect(
                    rewritten != alone && rewritten == writer.key(alone, under: variation),
                    "\(second) under a variation")
                let again = try Self.key(second, route, writer)
                #expect(again == alone, "\(second) after a variation")
            }
        }
    }

    @Test func `under a variation, equivalent queries have one key`() throws {
        let writer = KeyWriter(hash: hash)
        let route = Self.route(KeyPolicy())
        let variation = try #require(Self.variation())
        let keys = try ["/x?a=1&utm=2", "/x?utm=3&a=1", "/x?a=1", "/x?a=2", "/y?a=1"].map { target in
            writer.key(try Self.key("GET \(target)", route, writer), under: variation)
        }
        #expect(keys[0] == keys[1] && keys[1] == keys[2])
        #expect(Set(keys).count == 3)
    }

    @Test func `the key of a URL is that of its requests, with the fields that the policy wants`()
        throws
    {
        let writer = KeyWriter(hash: hash)
        var policy = KeyPolicy()
        let url = try #require(ParsedURL("http://A.example:80/x?y"))
        url.write(to: writer, policy)
        #expect(writer.key() == (try Self.key("GET /x?y", Self.route(policy), writer)))
        policy.fields = [ByteSlice("x-t")]
        let asking = try ParsedHead("POST /other\nX-T: 1")
        url.write(to: writer, policy, as: asking.fields.view)
        #expect(writer.key() == (try Self.key("GET /x?y\nX-T: 1", Self.route(policy), writer)))
    }

    @Test(arguments: [
        ("https://a.example/x?y", "a.example /x?y"), ("HTTPS://A.example:443/x", "a.example /x"),
        ("https://a.example:443", "a.example /"), ("https://a.example:8443/x", "a.example:8443 /x"),
        ("https://a.example?:443", "a.example /?:443"), ("https://[::1]:443/", "[::1] /"),
        ("http://a.example/x?y", "a.example /x?y"), ("http://a.example:80/x", "a.example /x"),
    ])
    func `an operator's URL has a key for each scheme, without a default port`(url: String, rest: String) throws {
        let writer = KeyWriter(hash: hash)
        let keys = try #require(ParsedURL.ofEachScheme(url)).map {
            $0.write(to: writer, KeyPolicy())
            return String(writer.key().bytes.span)
        }
        #expect(keys == ["http \(rest)", "https \(rest)"])
    }

    @Test(arguments: [
        ("X-Forwarded-Proto: https", "https"), ("X-Forwarded-Proto: HTTPS", "https"),
        ("X-Forwarded-Proto: wss", "https"),
        ("X-Forwarded-Proto: http", "http"), ("X-Forwarded-Proto: ftp", "http"), ("X-Forwarded-Proto:", "http"),
        ("X-Forwarded-Proto: http, https", "https"), ("X-Forwarded-Proto: https\r\nX-Forwarded-Proto: http", "http"),
        ("X-Other: https", "http"),
    ])
    func `the scheme is the last one that a trusted proxy named`(line: String, said: String) throws {
        let parsed = try ParsedHead("GET /x\n\(line)")
        for (isTrusted, name) in [(true, said), (false, "http")] {
            let scheme = ClientScheme(of: parsed.fields.view, isFromTrustedProxy: isTrusted, isSecure: false)
            #expect("\(scheme.name)" == name)
            let writer = KeyWriter(hash: hash)
            writer.write(parsed.head, parsed.fields.view, scheme, KeyPolicy())
            let key = writer.key()
            #expect(String(key.bytes.span).hasPrefix("\(name) "))
        }
    }

    @Test func `one host has a different key for each scheme, in any order`() throws {
        let writer = KeyWriter(hash: hash)
        let parsed = try ParsedHead("GET /x\nHost: a.example:443")
        let keys = [ClientScheme.http, .https, .https, .http].map { scheme in
            writer.write(parsed.head, parsed.fields.view, scheme, KeyPolicy())
            return String(writer.key().bytes.span)
        }
        #expect(keys == ["http a.example:443 /x", "https a.example /x", "https a.example /x", "http a.example:443 /x"])
    }

    @Test(arguments: ["https://", "https:///x", "https://:443/", "https://me@a.example/", "ftp://a.example/", "/x"])
    func `a URL that clients cannot request has no key`(url: String) {
        #expect(ParsedURL.ofEachScheme(url) == nil)
    }

    @Test(arguments: [
        "ftp://a.example/", "/x", "a.example", "http://", "http:// a", "http://a.example/\u{7f}",
        "http://a.example/x y",
    ])
    func `an invalid URL has no key`(url: String) {
        #expect(ParsedURL(url) == nil)
    }

    private static func route(_ key: KeyPolicy) -> Route {
        var settings = RouteSettings(upstream: "one")
        settings.key = key
        return Route(settings, origin: Origin(.named("one")), ProxySettings())
    }

    private static func key(_ request: String, _ route: Route, _ writer: KeyWriter) throws -> CacheKey {
        let parsed = try ParsedHead(request)
        writer.write(parsed.head, parsed.fields.view, .http, route)
        return writer.key()
    }

    /// By which `utm` does not matter, nor the order.
    private static func variation() -> SearchVariation? {
        let variations = SearchVariations(hash: hash)
        let key = ByteSlice("http a.example /x?a")
        let fields = block("No-Vary-Search: key-order, params=(\"utm\")")
        return variations.learn(NoVarySearch(fields.view), for: key.span)
    }
}
