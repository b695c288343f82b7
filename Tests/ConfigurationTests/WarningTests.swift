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

    @Test func `tells of a route for a host that is not served`() throws {
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

    @Test func `tells of an upstream that no route uses`() throws {
        #expect(try warnings(Self.upstreams) == [Self.unused(3, "b")])
        #expect(try warnings(Self.upstreams + "routes: [{path: /b, upstream: b}]\n") == [])
    }

    @Test func `tells of the first upstream only where a route takes what has no route`() throws {
        #expect(try warnings(Self.upstreams + "routes: [{upstream: b}]\n") == [Self.unused(2, "a")])
        #expect(try warnings(Self.upstreams + "routes: [{host: x, upstream: b}]\n") == [])
        #expect(try warnings(Self.upstreams + "routes: [{path: /a, upstream: a}, {upstream: b}]\n") == [])
    }

    @Test func `does not tell of anything in a file without routes and with one upstream`() throws {
        #expect(try warnings("workers: 1\n") == [])
        #expect(try warnings("upstreams: [{name: a, servers: 'http://a'}]\n") == [])
    }
}
