import Bytes
import HTTPSemantics
import Libevent
import Repeatable
import RouteTesting
import Testing
import Upstream

@testable import Routing

/// What is found by an index is what a walk over the list finds, in a time that does not depend on its length.
@Suite(.timeLimit(.minutes(10))) struct RouteTableTests {
    private static let hosts: [HostPattern?] = [
        nil, "a.example", "b.example", "x.a.example", "*.a.example", "*.x.a.example", "*.example", "[::1]", "127.0.0.1",
        "example", "*.b.example",
    ]
    private static let paths = [
        "", "/a", "/a/", "/a//", "/a//b", "/a/b", "/a/b/", "/ab", "//", "//a", "/b/c/d/e", "/b",
    ]
    private static let requestedHosts = [
        "a.example", "A.EXAMPLE", "x.a.example", "X.a.Example", "y.x.a.example", "z.y.x.A.example", ".a.example",
        "..a.example", "ba.example", "example", ".example", "b.example", "c.b.example", "[::1]", "[::2]", "127.0.0.1",
        "a", "", ".", "a.example.", "*.a.example",
    ]
    private static let requestedPaths = [
        "", "/", "*", "/a", "/a/", "/a//", "/a//b", "/a/b", "/a/b/", "/a/b/c", "/ab", "/abc", "/a/bc", "//", "//a",
        "//ab", "/b/c/d", "/b/c/d/e", "/b/c/d/e/f", "/b/c/d/ef", "/B", "/c", "/a/b//", "/a///b",
    ]

    private static func route(_ host: HostPattern?, _ path: String, to origin: Origin) -> Route {
        var settings = RouteSettings(upstream: "one")
        (settings.host, settings.path) = (host, path.isEmpty ? "/" : path)
        return Route(settings, origin: origin, ProxySettings())
    }

    @Test(arguments: 0..<40)
    func `the first matching route is the one that a linear search finds`(seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        let origin = Origin(.named("one"))
        let routes = (0..<Int.random(in: 1...60, using: &random)).map { _ in
            Self.route(
                Self.hosts.randomElement(using: &random)!, Self.paths.randomElement(using: &random)!, to: origin)
        }
        let table = RouteTable(routes.map { ($0.host, $0.path) })
        for host in Self.requestedHosts {
            for path in Self.requestedPaths {
                let (host, path) = (ByteSlice(host), ByteSlice(path))
                let walked = routes.firstIndex { $0.matches(host: host.span, path: path.span) }
                let found = table.first(host: host.span, path: path.span)
                #expect(found == walked, "\(String(host)) \(String(path))")
            }
        }
    }

    @Test(arguments: 0..<20)
    func `a host is served as by a linear search`(seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        let patterns = Array(Self.hosts.compactMap { $0 }.shuffled(using: &random).prefix(Int(seed % 11)))
        let index = HostIndex(patterns)
        for host in Self.requestedHosts {
            let bytes = ByteSlice(host)
            let walked = patterns.contains { $0.matches(bytes.span) }
            let found = index.contains(bytes.span)
            #expect(found == walked, "\(host) of \(patterns.map(\.text))")
        }
    }

    /// Both ways, through all that a request goes through.
    @Test func `many routes and hosts give the same decisions as few`() throws {
        var few = ProxySettings()
        few.hosts = ["*.example", "h7.test"]
        let routes: [(HostPattern?, String)] = [("h7.test", "/p7"), ("*.example", "/"), (nil, "/p8/")]
        few.routes = routes.map { host, path in
            var route = RouteSettings(upstream: "second")
            (route.host, route.path) = (host, path)
            return route
        }
        var many = few
        many.hosts += (0..<10_000).map { HostPattern("other\($0).test") }
        many.routes += (0..<2_000).map { number in
            var route = RouteSettings(upstream: "third")
            (route.host, route.path) = (HostPattern("other\(number).test"), "/p\(number)")
            return route
        }
        let (walked, indexed) = (
            LoopSettings(few, upstreams: "first", "second", "third"),
            LoopSettings(many, upstreams: "first", "second", "third")
        )
        for (host, path, upstream) in [
            ("H7.test:80", "/p7/a", "second"), ("h7.test", "/p77", "first"), ("a.Example", "/", "second"),
            ("h7.test", "/p8/x", "second"), ("h7.test", "/p8", "first"),
        ] {
            let parsed = try ParsedHead("GET \(path)\nHost: \(host)")
            let fields = parsed.fields
            for settings in [walked, indexed] {
                #expect(
                    settings.route(parsed.head, fields.view, .http).origin.settings.name == upstream, "\(host)\(path)")
            }
            let authority = ByteSlice(host)
            let (isServed, isServedOfMany) = (walked.serves(authority.span), indexed.serves(authority.span))
            #expect(isServed && isServedOfMany)
        }
        let parsed = try ParsedHead("GET /p1234/x\nHost: other1234.test")
        let fields = parsed.fields
        #expect(indexed.route(parsed.head, fields.view, .http).origin.settings.name == "third")
    }

    /// What is looked at is a few places of a table, where a walk would look at thousands.
    @Test func `ten thousand hosts and routes take as few probes as one`() {
        let hosts = (0..<10_000).map { HostPattern("h\($0).example.com") }
        #expect(HostIndex(hosts).longestLook <= 64)
        let kinds: [(Int) -> (HostPattern?, ByteSlice)] = [
            { (HostPattern("h\($0).example.com"), .empty) }, { (HostPattern("*.h\($0).example.com"), .empty) },
            { (nil, ByteSlice("/p\($0)/")) },
        ]
        for kind in kinds { #expect(RouteTable((0..<10_000).map(kind)).longestLook <= 64) }
    }

    @Test(arguments: 0..<20)
    func `a trusted proxy is found as by a linear search`(seed: UInt64) throws {
        var random = SeededGenerator(seed: seed)
        let blocks = try (0..<Int.random(in: 0...40, using: &random)).map { _ in
            let length = Int.random(in: 0...32, using: &random)
            let bits = UInt32(truncatingIfNeeded: UInt64(random.next()) & 0x0303_0303)
            let mask = length == 0 ? 0 : UInt32.max << UInt32(32 - length)
            return try AddressBlock(parsing: "\(IPv4Address(bits: bits & mask))/\(length)")
        }
        let ipv6 = try ["fd00::/8", "fd01::/16", "::/127", "2001:db8::1"].map { try AddressBlock(parsing: $0) }
        let all = (seed % 2 == 0 ? blocks : blocks.filter { $0.description.hasSuffix("/0") == false }) + ipv6
        let proxies = TrustedProxies(all.map(AddressPattern.addresses))
        for _ in 0..<500 {
            let address = IPv4Address(bits: UInt32(truncatingIfNeeded: random.next() & 0x0303_0303))
            let isOne = proxies.include(.ipv4(address, port: 1))
            #expect(isOne == all.contains { $0.contains(IPAddress(address)) }, "\(address)")
        }
        for (high, low) in [(0, 0), (0, 1), (0, 2), (0xfcff << 48, 0), (0xfd02 << 48, 7), (0x2001_0db8 << 32, 1)]
            as [(UInt64, UInt64)]
        {
            let address = IPv6Address(high: high, low: low)
            let isOne = proxies.include(.ipv6(address, port: 1, scope: 0))
            #expect(isOne == all.contains { $0.contains(IPAddress(address)) }, "\(address)")
        }
    }
}
