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
}
