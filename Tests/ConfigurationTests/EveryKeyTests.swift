import Admin
import Bytes
import HTTPSemantics
import Libevent
import Routing
import Storage
import TLS
import Telemetry
import Testing
import Upstream

@testable import Configuration

/// A key that is read into another's place, or into none, is a setting that does not work; most are numbers and
/// durations that look alike.
@Suite struct `Every key` {
    private static let file = """
        log-level: debug
        listen: [{address: 127.0.0.1:1, tls: true, client-certificates: offered, http2: false}, 127.0.0.1:2]
        socket-mode: 0666
        backlog: 2
        workers: 3
        hosts: [a.example, b.example]
        drain-delay: 3500ms
        drain-timeout: 4s
        upgrade-timeout: 5s
        tls:
          certificates: [{certificate: /site.pem, key: /site.key}]
          minimum-version: 1.3
          unknown-name: refuse
          ticket-keys: /tickets
          acme-challenges: /acme
          client-ca: /clients.pem
          client-subject-field: x-subject
        clients:
          max-connections: 5
          max-connections-per-client: 51
          max-head-size: 6KiB
          max-field-lines: 7
          max-target-length: 80B
          max-body-size: 9B
          max-requests-per-connection: 10
          max-streams: 7
          stream-window: 32KiB
          ping-interval: 31s
          ping-timeout: 16s
          head-timeout: 11s
          idle-timeout: 12s
          body-timeout: 13s
          body-buffer: 49KiB
          min-body-rate: 50B
          send-timeout: 14s
          tunnel-timeout: 15s
          trusted-proxies: [192.0.2.1, 10.0.0.0/8, unix]
        forwarding:
          via: me
          x-forwarded: false
          odd-field-names: true
          request-id: make
          cache-status: false
          proxy-status: false
        request-headers: {set: {X-From: "a ${host}"}, add: {x-b: c}, remove: [x-d]}
        response-headers: {set: {x-e: "${cache}"}, remove: [x-f, x-g]}
        coalescing:
          enabled: false
          max-waiters: 16
          wait-timeout: 17s
          overtake-after: 18s
          min-shared-rate: 49KiB
          when-exceeded: stale
          when-last-leaves: cancel
          unshareable-ttl: 19s
          share-errors: false
          share-across-cookies: true
        caching:
          enabled: false
          heuristic-share: 20%
          heuristic-limit: 21s
          default-ttl: {200: 29s, 404: 47s, other: 48s}
          ttl: {200: 51s, 500: 52s}
          min-ttl: 53s
          max-ttl: 54s
          strip-cookies: [_ga, utm_*]
          pass-cookies: [sessionid, logged_in_*]
          set-cookie: never
          targeted-fields: [edge-cache-control]
          stale-while-revalidate: 22s
          stale-if-error: 23s
          stale-if-unreachable: 24s
          s-maxage-forbids-stale: false
          trust-date: false
          normalise-accept-encoding: true
          max-ranges: 25
          range-misses: part
          request-directives: ignore
        purge:
          methods-from: [10.0.0.0/8, unix]
          soft-grace: 26s
        storage:
          memory: 26MiB
          in-flight-share: 27%
          max-object-size: 28B
          max-variants: 281
          streaming-window: 290KiB
          shards: 32
          small-queue-share: 31%
        shared:
          engine: [rediss://u:p@r.example:60, rediss://u:p@s.example:61]
          tls: {server-name: engine, ca: /engine.pem, verify: on, client-certificate: {certificate: /engine.pem, key: /engine.key}}
          prefix: mine
          timeout: 62ms
          lease: 59s
          max-object: 64B
          advertise: http://10.0.0.3:65
          secret-file: /run/secret
        upstreams:
          - name: shop
            servers: [https://a.example:443, {url: http://b.example:80, weight: 44}, {url: unix:/run/a.sock, backup: true}]
            tls: {server-name: app, ca: /ca.pem, verify: on, client-certificate: {certificate: /own.pem, key: /own.key}}
            balance: hash
            health: {path: /up?a=b, interval: 46s, timeout: 45s, expect: 204, body: "it, \\"works\\"", host: b.example, failures: 47, successes: 48}
            retry: {on: [timeout, 503, 429], attempts: 9, budget: 49%}
            slow-start: 50s
            resume: 51
            host: www.a.example:81
            connect-timeout: 33s
            first-byte-timeout: 34s
            no-progress-timeout: 35s
            idle-timeout: 36s
            max-idle-connections: 37
            max-concurrent-fetches: 38
            max-queued-fetches: 39
            retry-dead-connection: false
            resolve-ttl: 40s
            max-failures: 41
            failure-cooldown: 42s
            max-head-size: 43KiB
        routes:
          - host: b.example
            path: /c
            scheme: https
            upstream: shop
            cache: true
            coalesce: false
            default-ttl: 30s
            ttl: 55s
            min-ttl: 56s
            max-ttl: 57s
            set-cookie: never
            stale-while-revalidate: 47s
            stale-if-error: 48s
            stale-if-unreachable: 49s
            share-across-cookies: true
            strip-cookies: [_gid]
            pass-cookies: [admin]
            range-misses: whole
            request-directives: honour
            store-post-answers: true
            allow: [10.0.0.0/8, unix]
            deny: [10.1.0.0/16]
            rate-limit: {rate: 20/m, burst: 40, key: {header: x-api-key}}
            request-headers: {remove: [x-h]}
            response-headers: {add: {x-i: "${target}"}}
            tags: [x-my-tags]
            error-pages: {502: /e/502.html, 404: /e/404.html}
            rewrite-location: on
            key:
              query: none
              sort-query: true
              headers: [accept-language]
              cookies: [theme]
              language: [en, pt-BR]
        admin:
          address: https://127.0.0.1:44
          socket-mode: 0640
          hosts: [admin.example]
          token-file: /run/token
          purge: false
        access-log:
          target: /d
          format: json
          flush-wait: 45s
          buffer: 46KiB

        """

    private static func expected() -> Settings {
        var all = Settings()
        all.logLevel = .debug
        all.proxy.listeners = [.ipv4(.loopback, port: 1), .ipv4(.loopback, port: 2)]
        all.proxy.secureListeners = [.ipv4(.loopback, port: 1): .offered]
        all.proxy.listenersOfHTTP1 = [.ipv4(.loopback, port: 1)]
        all.proxy.tls.identities = [identity("site")]
        all.proxy.tls.minimumVersion = .tls13
        all.proxy.tls.refusesUnknownNames = true
        all.proxy.tls.ticketKeys = NamedFile(path: "/tickets")
        all.proxy.tls.acmeChallenges = "/acme"
        all.proxy.tls.clientAuthorities = NamedFile(path: "/clients.pem")
        all.proxy.tls.clientSubjectField = "x-subject"
        all.proxy.socketMode = 0o666
        all.proxy.backlog = 2
        all.proxy.workers = 3
        all.proxy.hosts = ["a.example", "b.example"]
        all.proxy.drainDelay = .milliseconds(3500)
        all.proxy.drainTimeout = .seconds(4)
        all.upgradeTimeout = .seconds(5)
        all.proxy.clients.maxConnections = 5
        all.statesMaxConnections = true
        all.proxy.clients.maxConnectionsPerClient = 51
        all.proxy.clients.maxHeadSize = 6 << 10
        all.proxy.clients.maxFieldLines = 7
        all.proxy.clients.maxTargetLength = 80
        all.proxy.clients.maxBodySize = 9
        all.proxy.clients.maxRequestsPerConnection = 10
        all.proxy.clients.maxStreams = 7
        all.proxy.clients.streamWindow = 32 << 10
        all.proxy.clients.pingInterval = .seconds(31)
        all.proxy.clients.pingTimeout = .seconds(16)
        all.proxy.clients.headTimeout = .seconds(11)
        all.proxy.clients.idleTimeout = .seconds(12)
        all.proxy.clients.bodyTimeout = .seconds(13)
        all.proxy.clients.bodyBuffer = 49 << 10
        all.proxy.clients.minBodyRate = 50
        all.proxy.clients.sendTimeout = .seconds(14)
        all.proxy.clients.tunnelTimeout = .seconds(15)
        all.proxy.clients.trustedProxies =
            addresses(["192.0.2.1", "10.0.0.0/8"]) + [.unix]
        all.proxy.forwarding.viaName = "me"
        all.proxy.forwarding.sendsXForwarded = false
        all.proxy.forwarding.sendsOddNames = true
        all.proxy.forwarding.requestID = .make
        all.proxy.requestFields.set = [line("X-From", "a ${host}")]
        all.proxy.requestFields.add = [line("x-b", "c")]
        all.proxy.requestFields.remove = ["x-d"]
        all.proxy.responseFields.set = [line("x-e", "${cache}")]
        all.proxy.responseFields.remove = ["x-f", "x-g"]
        all.proxy.forwarding.sendsCacheStatus = false
        all.proxy.forwarding.sendsProxyStatus = false
        all.proxy.coalescing.isEnabled = false
        all.proxy.coalescing.maxWaiters = 16
        all.proxy.coalescing.waitTimeout = .seconds(17)
        all.proxy.coalescing.overtakeAfter = .seconds(18)
        all.proxy.coalescing.minSharedRate = 49 << 10
        all.proxy.coalescing.whenExceeded = .stale
        all.proxy.coalescing.whenLastLeaves = .cancel
        all.proxy.coalescing.unshareableTTL = .seconds(19)
        all.proxy.caching.policy.sharesErrors = false
        all.proxy.caching.policy.sharesAcrossCookies = true
        all.proxy.caching.isEnabled = false
        all.proxy.caching.policy.heuristicPercent = 20
        all.proxy.caching.policy.heuristicLimit = 21
        all.proxy.caching.policy.defaultLifetimes = StatusLifetimes(
            [StatusLifetimes.Lifetime(.ok, .seconds(29)), StatusLifetimes.Lifetime(.notFound, .seconds(47))],
            other: .seconds(48))
        all.proxy.caching.policy.fixedLifetimes = StatusLifetimes([
            StatusLifetimes.Lifetime(.ok, .seconds(51)), StatusLifetimes.Lifetime(Status(500), .seconds(52)),
        ])
        all.proxy.caching.policy.minLifetime = 53
        all.proxy.caching.policy.maxLifetime = 54
        all.proxy.caching.strippedCookies = [
            CookiePattern(ByteSlice("_ga"), isPrefix: false), CookiePattern(ByteSlice("utm_"), isPrefix: true),
        ]
        all.proxy.caching.passCookies = [
            CookiePattern(ByteSlice("sessionid"), isPrefix: false),
            CookiePattern(ByteSlice("logged_in_"), isPrefix: true),
        ]
        all.proxy.caching.policy.setCookie = .never
        all.proxy.caching.policy.targetedFields = [ByteSlice("edge-cache-control")]
        all.proxy.caching.policy.staleWhileRevalidate = 22
        all.proxy.caching.policy.staleIfError = 23
        all.proxy.caching.policy.staleIfUnreachable = 24
        all.proxy.caching.policy.sharedMaxAgeForbidsStale = false
        all.proxy.caching.policy.trustsDate = false
        all.proxy.caching.policy.normalisesAcceptEncoding = true
        all.proxy.caching.maxRanges = 25
        all.proxy.caching.rangeMisses = .part
        all.proxy.caching.policy.ignoredRequestDirectives = .protectsOrigin
        all.proxy.purge.methodsFrom = addresses(["10.0.0.0/8"]) + [.unix]
        all.proxy.purge.softGrace = 26
        all.storage.memory = 26 << 20
        all.storage.inUsePercent = 27
        all.storage.maxObjectSize = 28
        all.storage.maxVariants = 281
        all.storage.streamingWindow = 290 << 10
        all.storage.shards = 32
        all.storage.smallQueuePercent = 31
        all.proxy.shared.engines = [("r.example", UInt16(60)), ("s.example", 61)].map { host, port in
            var engine = RedisLocation(.tcp(host: host, port: port))
            engine.isSecure = true
            engine.login = RedisLocation.Login(user: "u", password: "p")
            return engine
        }
        all.proxy.shared.tls.serverName = "engine"
        all.proxy.shared.tls.authorities = NamedFile(path: "/engine.pem")
        all.proxy.shared.tls.identity = identity("engine")
        all.proxy.shared.prefix = "mine"
        all.proxy.shared.timeout = .milliseconds(62)
        all.proxy.shared.lease = .seconds(59)
        all.proxy.shared.maxObjectSize = 64
        all.proxy.shared.advertised = UpstreamServer(host: "10.0.0.3", port: 65)
        all.proxy.shared.secretFile = NamedFile(path: "/run/secret")
        all.upstreams = [shop]
        all.proxy.routes = [route]
        all.admin.address = .ipv4(.loopback, port: 44)
        all.admin.isSecure = true
        all.admin.socketMode = 0o640
        all.admin.hosts = ["admin.example"]
        all.admin.tokenFile = NamedFile(path: "/run/token")
        all.admin.allowsPurging = false
        all.accessLog.target = .file(path: "/d")
        all.accessLog.format = .json
        all.accessLog.flushWait = .seconds(45)
        all.accessLog.batchCapacity = 46 << 10
        return all
    }

    private static func line(_ name: String, _ value: String) -> FieldChanges.Line {
        guard let value = try? Template(value) else { preconditionFailure("a template of this test") }
        return FieldChanges.Line(name, value)
    }

    private static var shop: UpstreamSettings {
        var shop = UpstreamSettings(
            name: "shop",
            servers: [
                UpstreamServer(host: "a.example", port: 443), UpstreamServer(host: "b.example"),
                .unix(path: "/run/a.sock"),
            ])
        shop.servers[0].isSecure = true
        shop.servers[1].weight = 44
        shop.servers[2].isBackup = true
        shop.tls.serverName = "app"
        shop.tls.authorities = NamedFile(path: "/ca.pem")
        shop.tls.identity = identity("own")
        shop.balance = .hash
        var health = HealthSettings(path: "/up?a=b")
        health.interval = .seconds(46)
        health.timeout = .seconds(45)
        health.expected = 204...204
        health.body = "it, \"works\""
        health.host = "b.example"
        health.failures = 47
        health.successes = 48
        shop.health = health
        shop.retry.causes = .timeout
        shop.retry.statuses = [503, 429]
        shop.retry.attempts = 9
        shop.retry.budget = 49
        shop.slowStart = .seconds(50)
        shop.resume = 51
        shop.host = "www.a.example:81"
        shop.connectTimeout = .seconds(33)
        shop.firstByteTimeout = .seconds(34)
        shop.noProgressTimeout = .seconds(35)
        shop.idleTimeout = .seconds(36)
        shop.maxIdleConnections = 37
        shop.maxConcurrentFetches = 38
        shop.maxQueuedFetches = 39
        shop.retriesDeadConnection = false
        shop.resolveTTL = .seconds(40)
        shop.maxFailures = 41
        shop.failureCooldown = .seconds(42)
        shop.maxHeadSize = 43 << 10
        return shop
    }

    private static func identity(_ name: String) -> TLSIdentity {
        TLSIdentity(certificate: NamedFile(path: "/\(name).pem"), key: NamedFile(path: "/\(name).key"))
    }

    private static func addresses(_ texts: [String]) -> [AddressPattern] {
        texts.map { (try? AddressBlock(parsing: $0)).map(AddressPattern.addresses) ?? .unix }
    }

    private static var route: RouteSettings {
        var route = RouteSettings(upstream: "shop")
        route.host = "b.example"
        route.path = "/c"
        route.scheme = .https
        route.isCached = true
        route.isCoalesced = false
        route.defaultLifetimes = StatusLifetimes(other: .seconds(30))
        route.setCookie = .never
        route.staleWhileRevalidate = 47
        route.staleIfError = 48
        route.staleIfUnreachable = 49
        route.sharesAcrossCookies = true
        route.fixedLifetimes = StatusLifetimes(other: .seconds(55))
        route.minLifetime = 56
        route.maxLifetime = 57
        route.strippedCookies = [CookiePattern(ByteSlice("_gid"), isPrefix: false)]
        route.passCookies = [CookiePattern(ByteSlice("admin"), isPrefix: false)]
        route.rangeMisses = .whole
        route.ignoredRequestDirectives = .honoursAll
        route.storesPostAnswers = true
        route.allow = addresses(["10.0.0.0/8"]) + [.unix]
        route.deny = addresses(["10.1.0.0/16"])
        var limit = RateLimitSettings()
        limit.rate = RequestRate(20, per: .minute)
        limit.burst = 40
        limit.field = "x-api-key"
        route.rateLimit = limit
        route.requestFields.remove = ["x-h"]
        route.responseFields.add = [line("x-i", "${target}")]
        route.tagFields = [ByteSlice("x-my-tags")]
        route.errorPages = [502, 404].map { ErrorPageSettings(Status($0), NamedFile(path: "/e/\($0).html")) }
        route.rewritesLocation = true
        route.key.query = .dropped
        route.key.sortsQuery = true
        route.key.fields = [ByteSlice("accept-language")]
        route.key.cookies = [ByteSlice("theme")]
        route.languages = [ByteSlice("en"), ByteSlice("pt-BR")]
        return route
    }

    @Test func `the file above has every key of the table, with a value other than the default`() {
        // A route is not among the defaults.
        var defaults = Settings()
        defaults.proxy.routes = [RouteSettings(upstream: "origin")]
        let ordinary = Self.values(in: DefaultFile.lines(of: KeyTable.all, in: defaults))
        let changed = Self.values(in: Self.file.split(separator: "\n").map(String.init))
        #expect(ordinary.count > 70)
        #expect(Set(ordinary.keys) == Set(changed.keys))
        for (key, value) in changed { #expect(value != ordinary[key], "\(key)") }
    }

    @Test func `every key is read into its own setting`() throws {
        let settings = try Configuration.load(text: Self.file, path: "f").get()
        let expected = Self.expected()
        #expect(settings.upstreams == expected.upstreams)
        #expect(settings.proxy == expected.proxy)
        #expect(settings == expected)
    }

    @Test func `every key is written from the setting that it is read into`() throws {
        let written = DefaultFile.lines(of: KeyTable.all, in: Self.expected())
        #expect(Self.values(in: written) == Self.values(in: Self.file.split(separator: "\n").map(String.init)))
    }

    /// What stands behind each key, by the keys that it stands below: `clients max-head-size` is `32KiB`.
    private static func values(in lines: [String]) -> [String: String] {
        var values: [String: String] = [:]
        var groups: [(indent: Int, name: Substring)] = []
        for line in lines {
            // The dash of a list's item stands where its keys' indentation is.
            let indent = line.prefix { " -".contains($0) }.count
            let rest = line.dropFirst(indent)
            guard !rest.isEmpty, !rest.hasPrefix("#"), let colon = rest.firstIndex(of: ":") else { continue }
            groups.removeAll { $0.indent >= indent }
            let name = rest[..<colon], value = rest[rest.index(after: colon)...].drop { $0 == " " }
            if value.isEmpty {
                groups.append((indent, name))
            } else {
                values[(groups.map(\.name) + [name]).joined(separator: " ")] = String(value)
            }
        }
        return values
    }
}
