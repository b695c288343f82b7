import Bytes
import HTTPSemantics
import Repeatable
import RouteTesting
import Telemetry
import Testing
import Upstream

@testable import Routing

/// Which request goes where, and by which rules.
@Suite struct RouteTests {
    /// A route, as the file has it, and the requests that go there; all others go elsewhere.
    struct Row: Sendable, CustomTestStringConvertible {
        var host: HostPattern?
        var path = "/"
        let taken: [String]
        let others: [String]

        var testDescription: String { "\(host?.text ?? "any host") \(path)" }
    }

    @Test(arguments: [
        Row(
            path: "/static",
            taken: [
                "GET /static", "GET /static/", "GET /static/a", "GET /static?a=b", "GET /static/../x",
                "GET http://b/static/a",
            ],
            others: [
                "GET /", "GET /statics", "GET /stati", "GET /Static", "GET /x/../static", "GET /%73tatic",
                "GET //static", "GET /?/static", "GET http://static",
            ]),
        Row(
            path: "/static/", taken: ["GET /static/", "GET /static/a", "GET /static//"],
            others: ["GET /static", "GET /static?a", "GET /static.html"]),
        Row(
            path: "/a/b", taken: ["GET /a/b", "GET /a/b/c"], others: ["GET /a", "GET /a/", "GET /a/bc", "GET /a/c/b"]),
        Row(
            host: "a.example",
            taken: [
                "GET /", "GET /\nHost: A.Example", "GET /\nHost: a.example:8080",
                "GET http://a.example\nHost: b.example",
            ],
            others: [
                "GET /\nHost: b.example", "GET /\nHost: b.a.example", "GET /\nHost: a.example.b",
                "GET http://b.example/\nHost: a.example",
            ]),
        Row(
            host: "[::1]", taken: ["GET /\nHost: [::1]", "GET /\nHost: [::1]:80"],
            others: ["GET /\nHost: [::2]", "GET /\nHost: 127.0.0.1"]),
        Row(
            host: "*.a.example",
            taken: ["GET /\nHost: b.a.example", "GET /\nHost: C.B.A.Example:81", "GET /\nHost: -.a.example"],
            others: [
                "GET /\nHost: a.example", "GET /\nHost: .a.example", "GET /\nHost: ba.example",
                "GET /\nHost: b.a.example.", "GET /\nHost: b.a.example.b",
            ]),
        Row(
            host: "b.example", path: "/b", taken: ["GET /b/c\nHost: b.example"],
            others: ["GET /b/c", "GET /c\nHost: b.example"]),
    ])
    func `a route takes the requests that match, and leaves the others to the first upstream`(_ row: Row) throws {
        var settings = ProxySettings()
        var route = RouteSettings(upstream: "second")
        (route.host, route.path) = (row.host, row.path)
        settings.routes = [route]
        let loopSettings = LoopSettings(settings, upstreams: "first", "second")
        for request in row.taken { #expect(try Self.upstream(of: request, loopSettings) == "second", "\(request)") }
        for request in row.others { #expect(try Self.upstream(of: request, loopSettings) == "first", "\(request)") }
    }

    @Test func `a route covers another if it matches all requests that match the other`() {
        let hosts: [HostPattern?] = [
            nil, "a.example", "b.example", "x.a.example", "*.a.example", "*.x.a.example", "*.example",
        ]
        let paths = ["/", "/a", "/a/", "/a/b", "/ab", "/b"]
        let all = [nil, ClientScheme.http, .https].flatMap { scheme in
            hosts.flatMap { host in
                paths.map { path in
                    var route = RouteSettings(upstream: "one")
                    (route.scheme, route.host, route.path) = (scheme, host, path)
                    return route
                }
            }
        }
        let names = ["a.example", "b.example", "c.example", "x.a.example", "y.a.example", "y.x.a.example", "a"]
        let requests = names.flatMap { host in
            ["/", "/a", "/a/", "/a/b", "/a/b/", "/a//", "/ab", "/ab/", "/b", "/b/a"].map { (host, $0) }
        }
        let taken = all.map { settings in
            let route = Route(settings, origin: Origin(.named("one")), ProxySettings())
            return ClientScheme.allCases.flatMap { scheme in
                requests.map {
                    (settings.scheme ?? scheme) == scheme
                        && route.matches(host: ByteSlice($0.0).span, path: ByteSlice($0.1).span)
                }
            }
        }
        for (one, its) in zip(all, taken) {
            for (other, others) in zip(all, taken) {
                #expect(
                    one.covers(other) == zip(its, others).allSatisfy { $0 || !$1 },
                    "\(one.host?.text ?? "any") \(one.path), \(other.host?.text ?? "any") \(other.path)")
            }
        }
    }

    @Test func `the patterns that cover a host are the host itself and the wildcards above`() {
        let hosts: [HostPattern] = [
            "a", "example", "a.example", "b.a.example", "ba.example", "*.example", "*.a.example", "*.b.a.example",
            "[::1]", "127.0.0.1",
        ]
        for host in hosts {
            #expect(host.covering.allSatisfy { $0.covers(host) }, "\(host.text)")
            for other in hosts {
                #expect(host.covering.contains(other) == other.covers(host), "\(host.text), \(other.text)")
            }
        }
    }

    @Test func `the first matching route decides, and one without host and path takes all other requests`() throws {
        var settings = ProxySettings()
        settings.routes = [("/a/b", "one"), ("/a", "two"), ("/a/b/c", "three"), ("/", "four"), ("/d", "one")].map {
            path, upstream in
            var route = RouteSettings(upstream: upstream)
            route.path = path
            return route
        }
        let loopSettings = LoopSettings(settings, upstreams: "zero", "one", "two", "three", "four")
        let upstreams = try ["/a/b", "/a/b/c", "/a/c", "/d", "/"].map {
            try Self.upstream(of: "GET \($0)", loopSettings)
        }
        #expect(upstreams == ["one", "one", "two", "four", "four"])
        #expect(loopSettings.onlyRoute == nil)
    }

    @Test(arguments: 0..<20)
    func `the first route of the request's scheme that matches is found, among few routes and many`(seed: UInt64) throws
    {
        var random = SeededGenerator(seed: seed)
        let schemes: [ClientScheme?] = [nil, .http, .https]
        let hosts: [HostPattern?] = [nil, "a.example", "*.example", "b.example"]
        var settings = ProxySettings()
        let count = Int.random(in: 1...30, using: &random)
        settings.routes = (0..<count).map { number in
            var route = RouteSettings(upstream: "u\(number)")
            route.scheme = schemes.randomElement(using: &random) ?? nil
            route.host = hosts.randomElement(using: &random) ?? nil
            route.path = ["/", "/a", "/a/b", "/c/"].randomElement(using: &random) ?? "/"
            return route
        }
        let loopSettings = LoopSettings(
            settings, upstreams: [.named("last")] + (0..<count).map { .named("u\($0)") })
        for scheme in ClientScheme.allCases {
            for host in ["a.example", "b.example", "c"] {
                for path in ["/", "/a", "/a/b", "/c", "/c/d"] {
                    let parsed = try ParsedHead("GET \(path)\nHost: \(host)")
                    let (fields, url) = (parsed.fields, try #require(ParsedURL("\(scheme.name)://\(host)\(path)")))
                    let expected = settings.routes.first { route in
                        let matching = Route(route, origin: Origin(.named("one")), settings)
                        return (route.scheme ?? scheme) == scheme
                            && matching.matches(host: ByteSlice(host).span, path: ByteSlice(path).span)
                    }
                    let name = expected?.upstream ?? "last"
                    #expect(loopSettings.route(parsed.head, fields.view, scheme).origin.settings.name == name)
                    #expect(loopSettings.route(of: url).origin.settings.name == name)
                }
            }
        }
    }

    @Test func `a route with an answer of its own needs no upstream, and is counted for none`() throws {
        var settings = ProxySettings()
        var route = RouteSettings(upstream: "")
        route.respond = RespondSettings()
        settings.routes = [route]
        let metrics = LoopMetrics()
        let loopSettings = LoopSettings(settings, upstreams: [.named("one")], metrics: metrics)
        let only = try #require(loopSettings.onlyRoute)
        #expect(only.rules?.ownAnswer?.status == .ok && !only.hasPlainHits)
        #expect(only.upstreamMetrics === metrics.unrouted)
        settings.routes[0].scheme = .http
        #expect(LoopSettings(settings, upstreams: "one").onlyRoute == nil)
    }

    @Test func `a single possible route needs no look-up`() throws {
        #expect(LoopSettings(upstreams: "one", "two").onlyRoute?.origin.settings.name == "one")
        var settings = ProxySettings()
        settings.routes = [RouteSettings(upstream: "two")]
        #expect(LoopSettings(settings, upstreams: "one", "two").onlyRoute?.origin.settings.name == "two")
        settings.hosts = ["a.example"]
        #expect(LoopSettings(settings, upstreams: "one", "two").onlyRoute == nil)
    }

    @Test(arguments: [
        ("a.example", true), ("A.EXAMPLE:81", true), ("b.example", false), ("a.example.b", false), ("[::1]:80", true),
        ("", false), ("b.c.example", true), ("c.example", false), ("B.B.C.Example:80", true),
    ])
    func `only listed hosts are served`(host: String, isServed: Bool) {
        var settings = ProxySettings()
        settings.hosts = ["a.example", "[::1]", "*.c.example"]
        let loopSettings = LoopSettings(settings, upstreams: "one")
        let authority = ByteSlice(host)
        let serves = loopSettings.serves(authority.span),
            servesAll = LoopSettings(upstreams: "one").serves(authority.span)
        #expect(serves == isServed && servesAll)
    }

    @Test func `a setting that a route does not have is the general one`() {
        var settings = ProxySettings()
        settings.caching.isEnabled = false
        settings.coalescing.isEnabled = false
        settings.caching.rangeMisses = .part
        settings.caching.policy.ignoredRequestDirectives = .protectsOrigin
        settings.caching.policy.setCookie = .always
        settings.caching.policy.staleWhileRevalidate = 1
        settings.caching.policy.staleIfError = 2
        settings.caching.policy.staleIfUnreachable = 3
        settings.caching.policy.sharesAcrossCookies = true
        settings.forwarding.viaName = nil
        let origin = Origin(.named("one"))
        let silent = Route(RouteSettings(upstream: "one"), origin: origin, settings)
        #expect(!silent.isCached && silent.asksForParts && silent.policy.ignoredRequestDirectives == .protectsOrigin)
        #expect(!silent.isCoalesced && silent.policy.setCookie == .always && silent.policy.sharesAcrossCookies)
        #expect(Self.staleTimes(silent) == [1, 2, 3])
        #expect(
            !silent.policy.writesVia && silent.policy.writesForwarded && !silent.policy.storesPostAnswers
                && silent.hasPlainKey)

        var loud = RouteSettings(upstream: "one")
        loud.isCached = true
        loud.isCoalesced = true
        loud.rangeMisses = .whole
        loud.ignoredRequestDirectives = .honoursAll
        loud.setCookie = .never
        loud.staleWhileRevalidate = 0
        loud.staleIfError = 20
        loud.staleIfUnreachable = 30
        loud.sharesAcrossCookies = false
        loud.storesPostAnswers = true
        loud.key.sortsQuery = true
        let other = Route(loud, origin: origin, settings)
        #expect(other.isCached && !other.asksForParts && other.policy.ignoredRequestDirectives == .honoursAll)
        #expect(other.isCoalesced && other.policy.storesPostAnswers && !other.hasPlainKey)
        #expect(other.policy.setCookie == .never && !other.policy.sharesAcrossCookies)
        #expect(Self.staleTimes(other) == [0, 20, 30])
    }

    private static func staleTimes(_ route: Route) -> [UInt32] {
        [route.policy.staleWhileRevalidate, route.policy.staleIfError, route.policy.staleIfUnreachable]
    }

    private static func upstream(of request: String, _ loopSettings: LoopSettings) throws -> String {
        let parsed = try ParsedHead(request)
        return loopSettings.route(parsed.head, parsed.fields.view, .http).origin.settings.name
    }
}
