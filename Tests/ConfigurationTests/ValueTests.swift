import Admin
import Bytes
import Configuration
import HTTPSemantics
import Libevent
import Routing
import Storage
import Telemetry
import Testing
import Upstream

@Suite struct `A value` {
    private func load(_ text: String) throws -> Settings { try Configuration.load(text: text, path: "f").get() }

    @Test(arguments: [
        ("500ms", Duration.milliseconds(500)), ("30s", .seconds(30)), ("5m", .seconds(300)), ("1h", .seconds(3600)),
        ("0s", .zero), ("0001s", .seconds(1)),
    ])
    func `a duration is read in its unit`(text: String, duration: Duration) throws {
        #expect(try load("drain-timeout: \(text)").proxy.drainTimeout == duration)
    }

    @Test(arguments: [
        ("4194304B", 4 << 20), ("2048KiB", 2 << 20), ("256MiB", 256 << 20), ("1GB", 1_000_000_000), ("2gib", 2 << 30),
        ("5MB", 5_000_000), ("4194304", 4 << 20),
    ])
    func `a size is read in its unit`(text: String, bytes: Int) throws {
        #expect(try load("storage: {memory: \(text)}").storage.memory == bytes)
    }

    @Test func `a list of one value may be written without brackets`() throws {
        #expect(try load("listen: '[::1]:80'").proxy.listeners == [.ipv6(.loopback, port: 80)])
        #expect(try load("hosts: [WWW.Example.com, '[::1]']").proxy.hosts == ["www.example.com", "[::1]"])
        #expect(try load("hosts: ['*.Example.com', a.example]").proxy.hosts == ["*.example.com", "a.example"])
    }

    @Test(arguments: [
        ("http://a.Example", UpstreamServer(host: "a.example", port: 80)),
        ("http://a.example:8000/", UpstreamServer(host: "a.example", port: 8000)),
        ("http://127.0.0.1:1", UpstreamServer(host: "127.0.0.1", port: 1)),
        ("http://[::1]:9000", UpstreamServer(host: "::1", port: 9000)),
        ("http://[::1]", UpstreamServer(host: "::1", port: 80)),
        ("http://a_b.1x.", UpstreamServer(host: "a_b.1x.", port: 80)),
    ])
    func `a URL gives host and port`(url: String, server: UpstreamServer) throws {
        #expect(try ScalarSyntax.server.value(of: url) == server)
    }

    @Test(arguments: ["unix:/run/app.sock", "unix:/run/my app/é.sock", "unix:/\(String(repeating: "x", count: 106))"])
    func `the path of a server's socket is kept unchanged`(text: String) throws {
        let server = try ScalarSyntax.server.value(of: text)
        #expect(server == .unix(path: String(text.dropFirst(5))) && server.description == text)
        #expect(server.host == "localhost" && server.address == .unix(path: String(text.dropFirst(5))))
    }

    @Test func `an IPv6 address as the host of a server is written in brackets`() {
        let servers = ["a.example", "::1"].map { UpstreamServer(host: $0, port: 81) }
        #expect(servers.map(\.host) == ["a.example", "[::1]"])
        #expect(servers.map(\.address) == [nil, .ipv6(.loopback, port: 81)])
        #expect(servers.map(\.description) == ["http://a.example:81", "http://[::1]:81"])
    }

    @Test func `each optional value has a word that turns it off`() throws {
        let settings = try load(
            """
            admin: {address: off}
            forwarding: {via: off}
            clients: {max-body-size: 10MiB, max-requests-per-connection: 1000}
            """)
        #expect(settings.admin.address == nil)
        #expect(settings.proxy.forwarding.viaName == nil)
        #expect(settings.proxy.clients.maxBodySize == 10 << 20)
        #expect(settings.proxy.clients.maxRequestsPerConnection == 1000)
        #expect(try load("admin: {address: 'unix:/run/a.sock'}").admin.address == .unix(path: "/run/a.sock"))
    }

    @Test(arguments: [
        ("10m", StatusLifetimes(other: .seconds(600))),
        ("500ms", StatusLifetimes(other: .milliseconds(500))),
        ("{200: 10m}", StatusLifetimes([StatusLifetimes.Lifetime(.ok, .seconds(600))], other: .zero)),
        ("{302: 1500ms}", StatusLifetimes([StatusLifetimes.Lifetime(Status(302), .milliseconds(1500))], other: .zero)),
        ("{other: 1m}", StatusLifetimes(other: .seconds(60))),
        (
            "{404: 1m, 'other': 2m, \"200\": 0s}",
            StatusLifetimes(
                [StatusLifetimes.Lifetime(.notFound, .seconds(60)), StatusLifetimes.Lifetime(.ok, .zero)],
                other: .seconds(120))
        ),
    ])
    func `a lifetime may be given for all statuses or for each`(text: String, lifetimes: StatusLifetimes) throws {
        #expect(try load("caching: {default-ttl: \(text)}").proxy.caching.policy.defaultLifetimes == lifetimes)
        let routes = try load("routes: [{upstream: origin, default-ttl: \(text)}]").proxy.routes
        #expect(routes[0].defaultLifetimes == lifetimes)
    }

    @Test(arguments: [
        ("10m", StatusLifetimes(other: .seconds(600))), ("none", StatusLifetimes()),
        ("{200: 10m}", StatusLifetimes([StatusLifetimes.Lifetime(.ok, .seconds(600))])),
        (
            "{500: 1s, other: 0s}",
            StatusLifetimes([StatusLifetimes.Lifetime(Status(500), .seconds(1))], other: .zero)
        ),
    ])
    func `a lifetime may take the place of that of all responses, or of those with one status`(
        text: String, lifetimes: StatusLifetimes
    ) throws {
        #expect(try load("caching: {ttl: \(text)}").proxy.caching.policy.fixedLifetimes == lifetimes)
        let routes = try load(
            "routes: [{upstream: origin, path: /a, ttl: \(text)}, {upstream: origin, ttl: default}]"
        ).proxy.routes
        #expect(routes.map(\.fixedLifetimes) == [lifetimes, nil])
    }

    @Test func `a route may inherit the value of all routes, or have none`() throws {
        let routes = try load(
            """
            routes:
              - {upstream: origin, path: /a}
              - {upstream: origin, path: /b, pass-cookies: default, default-ttl: default}
              - {upstream: origin, path: /c, pass-cookies: [], default-ttl: 0s}
              - {upstream: origin, path: /d, pass-cookies: '*'}
            """
        ).proxy.routes
        #expect(routes.map(\.passCookies) == [nil, nil, [], [CookiePattern(.empty, isPrefix: true)]])
        #expect(routes.map(\.defaultLifetimes) == [nil, nil, StatusLifetimes(other: .zero), nil])
    }

    @Test func `a route has settings of its own, and may name an upstream defined below`() throws {
        let settings = try load(
            """
            routes:
              - host: Static.example.com
                path: /img/
                upstream: images
                cache: true
                coalesce: no
                range-misses: part
                request-directives: ignore
                store-post-answers: true
                key:
                  query: {drop: [gclid, utm_*]}
                  sort-query: true
                  headers: [Accept-Language]
                  cookies: [theme]
              - upstream: main
                key: {query: none}
            upstreams:
              - {name: main, servers: ['http://a.example', 'http://b.example']}
              - {name: images, servers: 'http://c.example', max-concurrent-fetches: 3}
            """)
        var images = RouteSettings(upstream: "images")
        images.host = "static.example.com"
        images.path = "/img/"
        images.isCached = true
        images.isCoalesced = false
        images.rangeMisses = .part
        images.ignoredRequestDirectives = .protectsOrigin
        images.storesPostAnswers = true
        images.key.query = .dropping(["gclid", "utm_*"])
        images.key.sortsQuery = true
        images.key.fields = [ByteSlice("accept-language")]
        images.key.cookies = [ByteSlice("theme")]
        var main = RouteSettings(upstream: "main")
        main.key.query = .dropped
        #expect(settings.proxy.routes == [images, main])
        #expect(settings.upstreams.map(\.name) == ["main", "images"])
        #expect(
            settings.upstreams[0].servers == [UpstreamServer(host: "a.example"), UpstreamServer(host: "b.example")])
        #expect(settings.upstreams[1].maxConcurrentFetches == 3)
    }

    @Test func `a small memory limits the largest response to the in-flight share`() throws {
        let storage = try load("storage: {memory: 10MiB}").storage
        #expect(storage.inUseLimit <= 5 << 20)
        #expect(storage.objectLimit == storage.inUseLimit)
        #expect(StorageSettings().objectLimit == StorageSettings().maxObjectSize)
    }
}

@Suite struct `A flag` {
    @Test func `a flag overrides the file, which keeps its other values`() throws {
        let file = try Configuration.load(
            text: """
                log-level: debug
                workers: 3
                listen: [127.0.0.1:1, 127.0.0.1:2]
                upstreams:
                  - {name: shop, servers: ['http://a.example'], max-concurrent-fetches: 5}
                  - {name: images, servers: ['http://b.example']}
                routes:
                  - {path: /img/, upstream: images}
                """, path: "f"
        ).get()
        var flags = Overrides()
        flags.listeners = [try ScalarSyntax.listener.value(of: "127.0.0.1:0")]
        flags.servers = [try ScalarSyntax.server.value(of: "http://c.example")]
        flags.admin = try ScalarSyntax.adminTarget.value(of: "unix:/run/a.sock")
        flags.memory = try ScalarSyntax.memory.value(of: "64MiB")
        flags.accessLog = try ScalarSyntax.accessLogTarget.value(of: "stdout")
        let settings = file.overridden(by: flags)

        #expect(settings.proxy.listeners == [.ipv4(.loopback, port: 0)])
        #expect(settings.upstreams[0].servers == [UpstreamServer(host: "c.example")])
        #expect(settings.upstreams[0].name == "shop")
        #expect(settings.upstreams[0].maxConcurrentFetches == 5)
        #expect(settings.upstreams[1] == file.upstreams[1])
        #expect(settings.admin.address == .unix(path: "/run/a.sock"))
        #expect(settings.storage.memory == 64 << 20)
        #expect(settings.accessLog.target == .standardOutput)
        #expect(settings.logLevel == .debug)
        #expect(settings.proxy.workers == 3)
    }

    @Test func `an absent flag changes nothing`() {
        #expect(Settings().overridden(by: Overrides()) == Settings())
    }

    @Test func `a flag has the same range as its key`() {
        #expect(throws: ValueMistake.self) { try ScalarSyntax.workers.value(of: "100000") }
        #expect(throws: ValueMistake.self) { try ScalarSyntax.memory.value(of: "1KiB") }
    }

    @Test func `a flag turns the admin listener off with the word that the file uses`() throws {
        var flags = Overrides()
        flags.admin = try ScalarSyntax.adminTarget.value(of: "off")
        #expect(Settings().admin.address != nil && Settings().overridden(by: flags).admin.address == nil)
        #expect(throws: ValueMistake.self) { try ScalarSyntax.adminTarget.value(of: "of") }
    }

    /// As in the file that is installed.
    @Test func `a flag gives the server of a file whose list of upstreams is empty`() throws {
        var flags = Overrides()
        flags.servers = [UpstreamServer(host: "a.example")]
        let settings = try Configuration.load(text: "upstreams: []\n", path: "f", overriddenBy: flags).get()
        #expect(settings.upstreams.map(\.servers) == [flags.servers])
        let routed = Configuration.load(
            text: "upstreams: []\nroutes: [{upstream: app}]\n", path: "f", overriddenBy: flags)
        guard case .failure(let mistakes) = routed else { throw Unexpected() }
        #expect(mistakes.all.map(\.message) == ["there is no upstream `app`; name one of: origin"])
    }

    private struct Unexpected: Error {}

    @Test func `without a file, only a flag turns the admin listener on`() throws {
        #expect(Settings.withoutFile.admin.address == nil)
        var flags = Overrides()
        flags.admin = .address(.ipv4(.loopback, port: 0))
        #expect(Settings.withoutFile.overridden(by: flags).admin.address == .ipv4(.loopback, port: 0))
    }
}

@Suite struct `A reload` {
    @Test(arguments: [
        (
            "listen: 127.0.0.1:1\nsocket-mode: 0666\nbacklog: 9\nworkers: 3",
            ["socket-mode", "backlog", "workers"]
        ),
        (
            "storage: {shards: 8}\nadmin: {address: off}\naccess-log: {format: json}",
            ["storage", "admin.address", "access-log"]
        ),
        ("log-level: debug\nclients: {head-timeout: 1s}\nupstreams: [{name: a, servers: 'http://a'}]", []),
    ])
    func `a reload lists exactly the keys that wait for the next start`(text: String, keys: [String]) throws {
        let new = try Configuration.load(text: text, path: "f").get()
        #expect(Settings().keysAtStart(changedBy: new) == keys)
    }
}
