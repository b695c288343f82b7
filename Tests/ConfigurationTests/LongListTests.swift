import Routing
import Testing

@testable import Configuration

/// A reload reads the file on the loop that answers health checks: what is in it ten thousand times takes no hundred
/// million steps, with which these tests would take minutes.
@Suite(.timeLimit(.minutes(10))) struct LongListTests {
    private static let count = 20_000

    private func found(_ text: String) -> [String] { Faulty(text).found }

    @Test func `a long list of values is read quickly, and a duplicate is reported`() {
        let hosts = (0..<100_000).map { "a\($0)" }.joined(separator: ",")
        #expect(found("hosts: [\(hosts)]\n").isEmpty)
        #expect(found("hosts: [\(hosts),\n a7]\n") == ["f:2:2: `hosts` has `a7` twice; remove one of them"])
    }

    @Test func `a list that every message is compared with has a limit, and an excess is reported`() {
        func names(_ count: Int) -> String { (0..<count).map { "x-\($0)" }.joined(separator: ",") }
        #expect(found("caching:\n  targeted-fields: [\(names(64))]\n").isEmpty)
        #expect(
            found("caching:\n  targeted-fields: [\(names(65))]\n") == [
                "f:2:20: `targeted-fields` has 65 entries; give at most 64"
            ])
        for key in ["headers", "cookies"] {
            #expect(found("routes:\n- {upstream: origin, key: {\(key): [\(names(64))]}}\n").isEmpty)
            let told = found("routes:\n- {upstream: origin, key: {\(key): [\(names(65))]}}\n")
            #expect(told.count == 1 && told[0].contains("`\(key)` has 65 entries; give at most 64"), "\(told)")
        }
    }

    @Test func `many routes are read quickly, and a covered one is reported`() {
        let served = (0..<Self.count).map { "h\($0)" }.joined(separator: ",")
        let routes = (0..<Self.count).map { "- {host: h\($0), path: /p\($0)/, upstream: origin}\n" }.joined()
        #expect(found("hosts: [\(served)]\nroutes:\n\(routes)").isEmpty)
        let last = "- {host: h7, path: /p7/a, upstream: origin}\n"
        #expect(
            found("routes:\n\(routes)\(last)") == [
                "f:\(Self.count + 2):3: the route on line 9 already matches all requests of this one; move this one before it"
            ])
    }

    @Test func `many upstreams are read quickly, and a duplicate name is reported`() {
        let upstreams = (0..<Self.count).map { "- {name: u\($0), servers: unix:/\($0)}\n" }.joined()
        let routes = (0..<Self.count / 4).map { "- {path: /\($0), upstream: u\($0)}\n" }.joined()
        #expect(
            found("upstreams:\n\(upstreams)- {name: u7, servers: unix:/a}\nroutes:\n\(routes)") == [
                "f:\(Self.count + 2):3: an upstream named `u7` already exists above; use another name"
            ])
    }

    @Test func `the first route that covers another is the one that a linear search finds`() {
        let hosts: [HostPattern?] = [
            nil, "a.example", "b.example", "x.a.example", "*.a.example", "*.x.a.example", "*.example",
        ]
        let paths = ["/", "/a", "/a/", "/a//", "/a//b", "/a/b", "/a/b/", "/ab", "//", "//a"]
        let all = [nil, ClientScheme.http, .https].flatMap { scheme in
            hosts.flatMap { host in
                paths.map { path in
                    var route = RouteSettings(upstream: "one")
                    (route.scheme, route.host, route.path) = (scheme, host, path)
                    return route
                }
            }
        }
        // In several orders: which is the first depends on it.
        for stride in [1, 3, 11, 37] {
            let routes = all.indices.map { all[$0 * stride % all.count] }
            var index = RouteIndex()
            for (number, route) in routes.enumerated() {
                let first = routes[..<number].firstIndex { $0.covers(route) }
                #expect(index.first(covering: route) == first, "\(route.host?.text ?? "any") \(route.path)")
                index.add(route, number: number)
            }
        }
    }
}
