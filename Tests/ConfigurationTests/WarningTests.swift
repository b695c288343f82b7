import Configuration
import Testing

@Suite struct `A warning` {
    private func warnings(_ text: String, _ flags: Overrides = Overrides()) throws -> [String] {
        try Configuration.load(text: text, path: "f", overriddenBy: flags).get().warnings.map(\.warning)
    }

    private static let upstreams = """
        upstreams:
          - {name: a, servers: 'http://a'}
          - {name: b, servers: 'http://b'}

        """

    private static func unused(_ line: Int, _ name: String) -> String {
        "f:\(line):12: warning: no route uses upstream `\(name)`, so it gets no requests; add a route, or remove it"
    }

    @Test func `a route for a host that is not served causes a warning`() throws {
        #expect(
            try warnings(
                "hosts: ['*.example']\nroutes:\n  - {host: example, upstream: origin}\n  - {host: '*.a.example', upstream: origin}\n"
            ) == [
                "f:3:12: warning: requests for `example` get 421 because it is not in `hosts`; add it there, or remove this route"
            ])
        #expect(
            try warnings("hosts: [a.example]\nroutes:\n  - {host: b.example, upstream: origin}\n") == [
                "f:3:12: warning: requests for `b.example` get 421 because it is not in `hosts`; add it there, or remove this route"
            ])
    }

    @Test func `an upstream that no route uses causes a warning`() throws {
        #expect(try warnings(Self.upstreams) == [Self.unused(3, "b")])
        #expect(try warnings(Self.upstreams + "routes: [{path: /b, upstream: b}]\n") == [])
    }

    @Test func `the first upstream causes a warning only if a route takes all other requests`() throws {
        #expect(try warnings(Self.upstreams + "routes: [{upstream: b}]\n") == [Self.unused(2, "a")])
        #expect(try warnings(Self.upstreams + "routes: [{host: x, upstream: b}]\n") == [])
        #expect(try warnings(Self.upstreams + "routes: [{path: /a, upstream: a}, {upstream: b}]\n") == [])
    }

    @Test func `a file without routes and with one upstream causes no warning`() throws {
        #expect(try warnings("workers: 1\n") == [])
        #expect(try warnings("upstreams: [{name: a, servers: 'http://a'}]\n") == [])
    }

    @Test(arguments: [
        ("request-headers: {set: {x-a: 'a', x-h: 'a${host}'}}\n", ["1:40: `hosts`"]),
        (
            "response-headers:\n  add: {link: '<https://${host}/>'}\n  set: {X-H: '${host}'}\n",
            ["2:15: `hosts`", "3:14: `hosts`"]
        ),
        ("request-headers: {set: {x-h: '${host}'}}\nhosts: a.example\n", []),
        (
            "routes: [{upstream: origin, request-headers: {set: {x-h: '${host}'}}}]\n",
            ["1:58: `hosts`, or the route's `host`,"]
        ),
        (
            "routes: [{upstream: origin, response-headers: {add: {x-h: '${host}'}}}]\n",
            ["1:59: `hosts`, or the route's `host`,"]
        ),
        ("routes: [{host: '*.a', upstream: origin, request-headers: {set: {x-h: '${host}'}}}]\n", []),
        ("hosts: a\nroutes: [{upstream: origin, response-headers: {set: {x-h: '${host}'}}}]\n", []),
        ("routes: [{upstream: origin, request-headers: {set: {x-h: '${path}'}}}]\n", []),
    ])
    func `a field with a host that nothing bounds causes a warning`(_ text: String, _ places: [String]) throws {
        let expected = places.map { place in
            let parts = place.split(separator: ": ")
            return "f:\(parts[0]): warning: `${host}` may be any host that a client names; set \(parts[1]) to bound it"
        }
        #expect(try warnings(text) == expected)
    }

    @Test func `a field with such a host in a variable of the environment causes one, too`() throws {
        let variables = Variables(["COALESCED_REQUEST_HEADERS": "{set: {x-h: \"${host}\"}}"])
        let warning =
            "COALESCED_REQUEST_HEADERS: warning: `${host}` may be any host that a client names; set `hosts` to bound it"
        let file = Configuration.load(text: "workers: 1", path: "f", variables: variables)
        #expect(try file.get().warnings.map(\.warning) == [warning])
        let none = Configuration.withoutFile(variables: variables, overriddenBy: Overrides())
        #expect(try none.get().warnings.map(\.warning) == [warning])
        let bound = Configuration.load(text: "hosts: a", path: "f", variables: variables)
        #expect(try bound.get().warnings.isEmpty)
    }

    @Test(arguments: [
        ("{path: /a, redirect: {to: /a}}", "36: change `to`"),
        ("{path: /a, redirect: {to: '/a?b=c'}}", "36: change `to`"),
        ("{path: /a, redirect: {to: '/a${target}'}}", "36: change `to`"),
        ("{path: /a, redirect: {to: /a/b}}", "36: change `to`, or put a route for `/a/b` before this one"),
        ("{redirect: {to: '/new${target}'}}", "26: change `to`, or put a route for `/new` before this one"),
        ("{redirect: {to: '/new?${query}'}}", "26: change `to`, or put a route for `/new` before this one"),
        ("{host: a.example, redirect: {to: 'http://a.example'}, scheme: http}", "43: change `to`"),
        (
            "{host: '*.a.example', redirect: {to: 'https://www.a.example${target}'}}",
            "47: change `to`, or put a route for `www.a.example/` before this one"
        ),
        ("{redirect: {to: '${scheme}://${host}${path}'}}", "26: change `to`"),
        // A prefix whose end is not known.
        ("{path: /a, redirect: {to: '/a${query}'}}", ""),
        ("{path: /a/, redirect: {to: '/a/${query}'}}", "37: change `to`"),
        // Elsewhere.
        ("{path: /a, redirect: {to: /b}}", ""), ("{path: /a, redirect: {to: /ab}}", ""),
        ("{path: /a/, redirect: {to: /a}}", ""), ("{redirect: {to: 'https://b.example${target}'}}", ""),
        ("{host: a.example, redirect: {to: 'https://b.example${target}'}}", ""),
        ("{host: a.example, redirect: {to: 'https://a.example:8443${target}'}}", ""),
        ("{scheme: http, redirect: {to: 'https://${host}/x${target}'}}", ""),
        ("{path: /own, upstream: origin}, {redirect: {to: '/own${target}'}}", ""),
        (
            "{host: www.a.example, upstream: origin}, {host: '*.a.example', redirect: {to: 'https://www.a.example${target}'}}",
            ""
        ),
    ])
    func `a redirect that leads to its own route causes a warning`(_ routes: String, _ found: String) throws {
        let parts = found.split(separator: ": ", maxSplits: 1)
        let expected =
            parts.isEmpty ? [] : ["f:1:\(parts[0]): warning: this leads to the same route, without end; \(parts[1])"]
        #expect(
            try warnings("hosts: ['*.example']\n" + "routes: [\(routes)]\n")
                == expected.map { $0.replacing("f:1:", with: "f:2:") })
    }

    @Test func `each key without effect on a route that answers itself causes a warning`() throws {
        let text = """
            routes:
              - path: /a
                redirect: {to: /b}
                ttl: 5m
                key: {query: none}
              - {path: /c, respond: {status: 200}, cache: false, request-headers: {set: {x-a: b}}}
              - path: /d
                scheme: http
                host: a.example
                respond: {status: 503}
                allow: 10.0.0.0/8
                deny: 10.1.0.0/16
                rate-limit: {rate: 1/s}
                response-headers: {set: {x-a: b}}
                error-pages: {}
            """
        func line(_ place: String, _ key: String, _ answer: String) -> String {
            "f:\(place): warning: `\(key)` has no effect on a route with `\(answer)`, which asks no upstream and stores nothing; remove it"
        }
        #expect(
            try warnings(text) == [
                line("4:5", "ttl", "redirect"), line("5:5", "key", "redirect"), line("6:40", "cache", "respond"),
                line("6:54", "request-headers", "respond"),
            ])
    }

    @Test func `a field that is both set and removed causes a warning`() throws {
        func line(_ place: String) -> String {
            "f:\(place): warning: `remove: X-A` has no effect, since `set` writes this field; take it out of one of the two"
        }
        #expect(try warnings("response-headers: {set: {x-a: b}, remove: [x-b, X-A]}\n") == [line("1:49")])
        #expect(
            try warnings("routes: [{upstream: origin, request-headers: {remove: X-A, set: {x-a: b}}}]\n") == [
                line("1:55")
            ])
        #expect(try warnings("response-headers: {add: {x-a: b}, remove: [X-A]}\n") == [])
        #expect(
            try warnings(
                "response-headers: {set: {x-a: b}}\nroutes: [{upstream: origin, response-headers: {remove: [x-a]}}]\n")
                == [])
    }
}
