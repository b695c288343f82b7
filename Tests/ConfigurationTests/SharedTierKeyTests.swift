import Bytes
import Libevent
import Routing
import Testing
import Upstream

@testable import Configuration

/// The keys of the tier that several machines share.
@Suite struct `The shared tier` {
    private func load(_ text: String, _ variables: [String: String] = [:]) throws -> SharedTierSettings? {
        try Configuration.load(text: text + "\n", path: "f", variables: Variables(variables)).get().proxy.sharedTier
    }

    private static func location(
        _ host: String, _ port: UInt16 = 6379, _ user: String = "default", _ password: String? = nil,
        _ database: Int = 0, isSecure: Bool = false
    ) -> RedisLocation {
        var location = RedisLocation(.tcp(host: host, port: port))
        location.login = password.map { RedisLocation.Login(user: user, password: $0) }
        location.database = database
        location.isSecure = isSecure
        return location
    }

    private static func socket(_ path: String, _ user: String = "default", _ password: String? = nil) -> RedisLocation {
        var location = RedisLocation(.unix(path: path))
        location.login = password.map { RedisLocation.Login(user: user, password: $0) }
        return location
    }

    @Test func `is off without an engine`() throws {
        for text in ["workers: 1", "shared: {engine: none}", "shared: {prefix: x}", "shared:"] {
            #expect(try load(text) == nil)
        }
        #expect(try load("shared: {engine: 'redis://a'}", ["COALESCED_SHARED_ENGINE": "none"]) == nil)
    }

    @Test func `has the defaults of the contract`() throws {
        let tier = try #require(try load("shared: {engine: 'redis://a'}"))
        #expect(tier.prefix == "co" && tier.timeout == .milliseconds(20) && tier.lease == .seconds(3))
        #expect(tier.maxObjectSize == 8 << 20 && tier.advertised == nil && tier.secretFile == nil && tier.secret == nil)
    }

    @Test(arguments: [
        ("redis://127.0.0.1:6379", location("127.0.0.1")), ("redis://A.example", location("a.example")),
        ("REDIS://a/", location("a")), ("redis://[::1]", location("::1")),
        ("redis://[::1]:1/2", location("::1", 1, "", nil, 2)),
        ("redis://a:65535/65535", location("a", 65_535, "", nil, 65_535)), ("redis://a/0", location("a")),
        ("redis://:p@a", location("a", 6379, "default", "p")), ("redis://u:p@a:7", location("a", 7, "u", "p")),
        ("redis://u:p:q@r@a", location("a", 6379, "u", "p:q@r")),
        ("redis://u%3a:%2F%25%20%c3%a9@a/3", location("a", 6379, "u:", "/% é", 3)),
        ("redis://default:p@a", location("a", 6379, "default", "p")),
        ("rediss://a", location("a", isSecure: true)), ("VALKEYS://[::1]:7", location("::1", 7, isSecure: true)),
        ("rediss://u:p@a/3", location("a", 6379, "u", "p", 3, isSecure: true)), ("valkey://a", location("a")),
        ("unix:/run/r.sock", socket("/run/r.sock")), ("unix:///run/r.sock", socket("/run/r.sock")),
        ("unix:/run/a@b", socket("/run/a@b")), ("unix:///run/a@b", socket("/run/a@b")),
        ("unix://u:p%40@/run/r.sock", socket("/run/r.sock", "u", "p@")),
        ("unix://:p@/run/r.sock", socket("/run/r.sock", "default", "p")),
        ("unix:/\(String(repeating: "x", count: 106))", socket("/\(String(repeating: "x", count: 106))")),
    ])
    func `takes an engine's URL, and writes it so that it reads the same`(_ url: String, _ expected: RedisLocation)
        throws
    {
        #expect(try load("shared: {engine: '\(url)'}")?.engines == [expected])
        let written = ScalarSyntax.engine.text(of: expected)
        #expect(try ScalarSyntax.engine.value(of: written) == expected)
        #expect(try load("shared:\n  engine: \(quoted(written))")?.engines == [expected])
        #expect(try load("workers: 1", ["COALESCED_SHARED_ENGINE": url])?.engines == [expected])
    }

    @Test func `a location shows no password in a message`() {
        let shown = [Self.location("::1", 7, "u", "p", 1), Self.socket("/run/r", "u", "p")].map { "\($0)" }
        #expect(shown == ["redis://[::1]:7/1", "unix:/run/r"])
        #expect("\(RedisLocation.Login(user: "u", password: "p"))" == "u")
    }

    @Test func `takes several nodes of one cluster`() throws {
        let nodes = [Self.location("a", 1, "u", "p"), Self.location("b", 2, "u", "p")]
        #expect(try load("shared: {engine: ['redis://u:p@a:1', 'redis://u:p@b:2']}")?.engines == nodes)
        #expect(
            try load("workers: 1", ["COALESCED_SHARED_ENGINE": "redis://u:p@a:1, redis://u:p@b:2"])?.engines == nodes)
        #expect(try load("shared: {engine: [redis://a]}")?.engines == [Self.location("a")])
    }

    @Test func `takes the ends of the ranges`() throws {
        let least = try load(
            "shared: {engine: 'redis://a', prefix: x, timeout: 1ms, lease: 500ms, max-object: 0B, advertise: 'http://a'}"
        )
        #expect(least?.prefix == "x" && least?.timeout == .milliseconds(1) && least?.lease == .milliseconds(500))
        #expect(least?.maxObjectSize == 0 && least?.advertised == UpstreamServer(host: "a", port: 80))
        let longest = String(repeating: "x-._:Z09", count: 4)
        let most = try load(
            "shared: {engine: 'redis://a', prefix: '\(longest)', timeout: 1s, lease: 60s, max-object: 1GiB, advertise: 'http://[fd00::1]:8082/'}"
        )
        #expect(most?.prefix == longest && most?.timeout == .seconds(1) && most?.lease == .seconds(60))
        #expect(most?.maxObjectSize == 1 << 30 && most?.advertised == UpstreamServer(host: "fd00::1", port: 8082))
        #expect(try load("shared: {engine: 'redis://a', timeout: 200ms, lease: 600ms}") != nil)
    }

    // MARK: Mistakes

    private static let form = "a URL such as `redis://127.0.0.1:6379`, or `unix:/run/redis/redis.sock`"
    private static let login = "write `redis://USER:PASSWORD@HOST`, or `redis://:PASSWORD@HOST` for the default user"
    private static let encoding =
        "`/`, `?` and `#` in a user or password are written `%2F`, `%3F` and `%23`; write them so"
    private static let host = "the host is neither a name nor an address (IPv6 stands in brackets); give \(form)"
    private static let port = "the port is out of range; give one from 1 to 65535, or none for 6379"
    private static let database =
        "what follows the host is the number of a database, from 0 to 65535; give one such as `/1`, or nothing"
    private static let path =
        "the path of a Unix socket begins with `/`, has at most 107 bytes, no control characters, and is UTF-8; give one such as `unix:/run/redis/redis.sock`"
    private static let scheme =
        "the scheme must be `redis://`, or `rediss://` for TLS, also for Valkey; give \(form)"

    @Test(
        arguments: [
            ("redis.example:6379", nil, "not understood; give \(form)"),
            ("nonne", nil, "not understood; did you mean `none`?"),
            ("tcp://a", nil, scheme), ("redisss://a", nil, scheme), ("http://u:secret@a", "http://***@a", scheme),
            ("rediss://", nil, "the host is missing; give \(form)"), ("REDISS://u:secret@-a", "REDISS://***@-a", host),
            ("redis://", nil, "the host is missing; give \(form)"),
            ("redis://:6379", nil, "the host is missing; give \(form)"),
            ("redis://u:secret@/1", "redis://***@/1", "the host is missing; give \(form)"),
            ("redis://-a", nil, host), ("redis://a b", nil, host), ("redis://256.1.1.1", nil, host),
            ("redis://::1", nil, "the host is missing; give \(form)"),
            ("redis://fe80::1", nil, port), ("redis://[::1", nil, host), ("redis://[::1]6379", nil, host),
            ("redis://a%62", nil, host),
            ("redis://a:0", nil, port), ("redis://a:65536", nil, port), ("redis://a:", nil, port),
            ("redis://a:+1", nil, port),
            ("redis://a:redis", nil, port), ("redis://a:1:2", nil, port),
            ("redis://a/one", nil, database), ("redis://a/-1", nil, database), ("redis://a/65536", nil, database),
            ("redis://a/1/", nil, database), ("redis://a/1?x=y", nil, database), ("redis://a?db=1", nil, database),
            ("redis://a#1", nil, database), ("redis://a/99999999999999999999", nil, database),
            ("redis://u:@a", "redis://***@a", "the password is empty; \(login)"),
            ("redis://:@a", "redis://***@a", "the password is empty; \(login)"),
            ("redis://secret@a", "redis://***@a", "a user or a password stands alone; \(login)"),
            ("redis://@a", "redis://***@a", "a user or a password stands alone; \(login)"),
            ("redis://u:se/cret@a", "redis://***@a", encoding), ("redis://u:se#cret@a", "redis://***@a", encoding),
            ("redis://se?cret@a", "redis://***@a", encoding),
            (
                "redis://u:50%secret@a", "redis://***@a",
                "a `%` in a user or password begins `%25` or the like; write it so"
            ),
            (
                "redis://u:%+1secret@a", "redis://***@a",
                "a `%` in a user or password begins `%25` or the like; write it so"
            ),
            (
                "redis://u:secret%4@a", "redis://***@a",
                "a `%` in a user or password begins `%25` or the like; write it so"
            ),
            (
                "redis://u:%ffsecret@a", "redis://***@a",
                "the user or the password is not UTF-8, or has a NUL; give the engine another one"
            ),
            (
                "redis://u:%00secret@a", "redis://***@a",
                "the user or the password is not UTF-8, or has a NUL; give the engine another one"
            ),
            ("unix:run/r.sock", nil, path), ("unix:", nil, path), ("unix:/", nil, path), ("unix:///", nil, path),
            ("unix:@r", nil, path),
            ("unix://u:secret@run/r.sock", "unix://***@run/r.sock", path),
            ("unix:/\(String(repeating: "x", count: 107))", "unix:/\(String(repeating: "x", count: 94))…", path),
            ("unix://secret@/run/r.sock", "unix://***@/run/r.sock", "a user or a password stands alone; \(login)"),
            ("unix://u:@/run/r.sock", "unix://***@/run/r.sock", "the password is empty; \(login)"),
            ("unix://u:se/cret@/run/r.sock", "unix://***@/run/r.sock", encoding),
        ] as [(String, String?, String)])
    func `a mistake in an engine's URL is one line with its place and the remedy`(
        _ url: String, _ shown: String?, _ reason: String
    ) {
        let line = "`engine: \(shown ?? url)`: \(reason)"
        #expect(Faulty("shared:\n  engine: '\(url)'\n").found == ["f:2:11: \(line)"])
        #expect(Faulty("shared: {engine: [redis://b, '\(url)']}\n").found == ["f:1:30: \(line)"])
        let variables = Variables(["COALESCED_SHARED_ENGINE": "redis://b,\(url)"])
        let result = Configuration.load(text: "workers: 1", path: "f", variables: variables)
        guard case .failure(let mistakes) = result else {
            Issue.record("taken")
            return
        }
        #expect(mistakes.all.count == 1 && mistakes.all.allSatisfy { $0.description.hasSuffix("`: \(reason)") })
        #expect(!"\(mistakes)".contains("cret"))
    }

    @Test(arguments: [
        (
            "['redis://a', 'unix:/run/r.sock']",
            "`engine`: several URLs are nodes of one cluster, and a node has no Unix socket; give one server, or `redis://` for all"
        ),
        (
            "['redis://a', 'rediss://b']",
            "`engine`: the nodes of a cluster that are not named speak TLS if those that are named do; give `rediss://` for all, or for none"
        ),
        ("['redis://a', 'redis://b/1']", "`engine`: a cluster has database 0 only; remove the number after the `/`"),
        (
            "['redis://u:p@a', 'redis://b']",
            "`engine`: the nodes of a cluster that are not named get the user and password of those that are; give all the same"
        ),
        (
            "['redis://u:p@a', 'redis://u:q@b']",
            "`engine`: the nodes of a cluster that are not named get the user and password of those that are; give all the same"
        ),
        ("[]", "`engine` is empty; give at least 1"),
        ("{url: 'redis://a'}", "`engine` is \(form), not keys and values"),
    ])
    func `a mistake in a list of engines is one line with its place and the remedy`(_ list: String, _ line: String) {
        #expect(Faulty("shared: {engine: \(list)}\n").found == ["f:1:18: \(line)"])
    }

    @Test(arguments: [
        ("engine: [redis://a, 'redis://A:6379/']", 30, "`engine` has `redis://a:6379` twice; remove one of them"),
        (
            "engine: ['redis://u:secret@a', 'redis://u:secret@a']", 41,
            "`engine` has `redis://***@a:6379` twice; remove one of them"
        ),
        ("engine: [redis://a, none]", 30, "`engine: none`: `none` stands alone; remove it from the list"),
        ("engine: ", 18, "`engine` is \(form), not nothing"),
        ("engin: redis://a", 10, "`engin` is not known; did you mean `engine`?"),
        (
            "prefix: '{co}'", 18,
            "`prefix: {co}`: braces in a key choose its node of a cluster; give letters, digits and `-._:`"
        ),
        ("prefix: a b", 18, "`prefix: a b`: not understood; give \(prefix)"),
        ("prefix: ''", 18, "`prefix: `: not understood; give \(prefix)"),
        ("prefix: é", 18, "`prefix: é`: not understood; give \(prefix)"),
        ("prefix: 'co*'", 18, "`prefix: co*`: not understood; give \(prefix)"),
        ("prefix: \(long)", 18, "`prefix: \(long)`: out of range; give \(prefix)"),
        ("timeout: 0s", 19, "`timeout: 0s`: out of range; give a duration such as `500ms` (1ms to 1s)"),
        ("timeout: 1001ms", 19, "`timeout: 1001ms`: out of range; give a duration such as `500ms` (1ms to 1s)"),
        ("timeout: 20", 19, "`timeout: 20`: the unit is missing; give a duration such as `500ms` (1ms to 1s)"),
        ("timeout: none", 19, "`timeout: none`: not understood; give a duration such as `500ms` (1ms to 1s)"),
        ("lease: 499ms", 17, "`lease: 499ms`: out of range; give a duration such as `500ms` or `30s` (500ms to 1m)"),
        ("lease: 61s", 17, "`lease: 61s`: out of range; give a duration such as `500ms` or `30s` (500ms to 1m)"),
        (
            "timeout: 500ms, lease: 1s", 19,
            "`timeout` (500ms) is longer than a third of `lease` (1s), after which a lease is renewed; lower the one, or raise the other"
        ),
        (
            "max-object: 2GiB", 22,
            "`max-object: 2GiB`: out of range; give a size such as `64KiB` or `256MiB` (0B to 1GiB)"
        ),
        (
            "max-object: 8M", 22,
            "`max-object: 8M`: `M` is not a unit, `MiB` is; give a size such as `64KiB` or `256MiB` (0B to 1GiB)"
        ),
        (
            "max-object: none", 22,
            "`max-object: none`: not understood; give a size such as `64KiB` or `256MiB` (0B to 1GiB)"
        ),
        ("advertise: 10.0.0.3:8082", 21, "`advertise: 10.0.0.3:8082`: not understood; give \(peer)"),
        ("advertise: 'http://'", 21, "`advertise: http://`: not understood; give \(peer)"),
        ("advertise: 'http://a:0'", 21, "`advertise: http://a:0`: not understood; give \(peer)"),
        ("advertise: 'unix:/run/s'", 21, "`advertise: unix:/run/s`: not understood; give \(peer)"),
        (
            "advertise: 'https://a'", 21,
            "`advertise: https://a`: machines read from each other in plain HTTP; use `http://` in a network of their own"
        ),
        ("advertise: 'http://a/b'", 21, "`advertise: http://a/b`: \(hostOnly)"),
        ("advertise: 'http://a?b'", 21, "`advertise: http://a?b`: \(hostOnly)"),
        ("advertise: 'http://u:secret@a'", 21, "`advertise: http://***@a`: \(hostOnly)"),
        (
            "advertise: 'http://0.0.0.0:80'", 21,
            "`advertise: http://0.0.0.0:80`: other machines cannot reach this address; give one that this machine has"
        ),
        (
            "advertise: 'http://[::]:80'", 21,
            "`advertise: http://[::]:80`: other machines cannot reach this address; give one that this machine has"
        ),
        (
            "secret-file: secret", 23,
            "`secret-file: secret`: not understood; give a path such as `/etc/coalesced/shared-secret`, or `none`"
        ),
    ])
    func `a mistake in another key is one line with its place and the remedy`(
        _ key: String, _ column: Int, _ line: String
    ) {
        #expect(Faulty("shared: {\(key)}\n").found == ["f:1:\(column): \(line)"])
    }

    private static let prefix = "letters, digits and `-._:` such as `co` (1 to 32 characters)"
    private static let long = String(repeating: "x", count: 33)
    private static let peer = "a URL such as `http://10.0.0.3:8082`, or `none`"
    private static let hostOnly = "other machines add the path and have no password; give a host and a port only"

    @Test func `times that do not fit are told at the variable that gives one`() throws {
        let variables = Variables(["COALESCED_SHARED_TIMEOUT": "300ms"])
        let line =
            "COALESCED_SHARED_TIMEOUT: `timeout` (300ms) is longer than a third of `lease` (800ms), after which a lease is renewed; lower the one, or raise the other"
        let file = Configuration.load(text: "shared: {lease: 800ms}", path: "f", variables: variables)
        #expect(
            throws: Mistakes(all: [
                Mistake(path: "COALESCED_SHARED_TIMEOUT", position: nil, message: String(line.dropFirst(26)))
            ])
        ) {
            try file.get()
        }
        let none = Configuration.withoutFile(
            variables: Variables(["COALESCED_SHARED_TIMEOUT": "300ms", "COALESCED_SHARED_LEASE": "800ms"]),
            overriddenBy: Overrides())
        guard case .failure(let mistakes) = none else {
            Issue.record("taken")
            return
        }
        #expect(mistakes.all.map(\.description) == [line])
    }

    // MARK: The secret

    private static let file = "shared: {engine: 'redis://a', secret-file: /s}\n"

    private static func files(_ content: String, isOpen: Bool = false) -> Files {
        Files(isReadableByAll: { isOpen && $0 == "/s" }) { path in
            path == "/s"
                ? .success(Array(content.utf8)) : .failure(Files.Failure("Permission denied", remedy: "let us"))
        }
    }

    private static let secret = String(repeating: "s", count: 32)

    @Test(arguments: [secret, secret + "\n", secret + "\r\n", secret + "\n\n"])
    func `the secret is the file without the line end at its end`(_ content: String) throws {
        let settings = try Configuration.load(text: Self.file, path: "f", files: Self.files(content)).get()
        #expect(settings.proxy.sharedTier?.secret.map { String($0) } == Self.secret && settings.warnings.isEmpty)
    }

    @Test func `a secret that is short, or cannot be read, is one line with its place and the remedy`() {
        func found(_ text: String, _ content: String) -> [String] {
            switch Configuration.load(text: text, path: "f", files: Self.files(content)) {
            case .success: []
            case .failure(let mistakes): mistakes.all.map(\.description)
            }
        }
        #expect(
            found(Self.file, Self.secret.dropLast() + "\n") == [
                "f:1:44: `secret-file: /s`: the secret in it has 31 bytes; give it 32 or more, as `openssl rand -hex 32` does"
            ])
        #expect(
            found("shared: {secret-file: /t}\n", "") == [
                "f:1:23: `secret-file: /t` cannot be read: Permission denied; let us"
            ])
    }

    @Test func `a secret that everybody can read causes a warning`() throws {
        let files = Self.files(Self.secret, isOpen: true)
        let line =
            "warning: `secret-file: /s` can be read by every user of this machine; remove that right, as `chmod o-r` does"
        let inFile = try Configuration.load(text: Self.file, path: "f", files: files).get()
        #expect(inFile.warnings.map(\.warning) == ["f:1:44: \(line)"])
        let variables = Variables(["COALESCED_SHARED_SECRET_FILE": "/s"])
        for result in [
            Configuration.load(text: "workers: 1", path: "f", variables: variables, files: files),
            Configuration.withoutFile(variables: variables, overriddenBy: Overrides(), files: files),
        ] {
            #expect(try result.get().warnings.map(\.warning) == ["COALESCED_SHARED_SECRET_FILE: \(line)"])
        }
    }

    // MARK: Use

    @Test func `keys without an engine cause a warning`() throws {
        func warnings(_ text: String, _ flags: Overrides = Overrides()) throws -> [String] {
            try Configuration.load(text: text, path: "f", overriddenBy: flags).get().warnings.map(\.warning)
        }
        let text = "shared:\n  prefix: x\n  lease: 2s\n"
        #expect(
            try warnings(text) == [
                "f:2:3: warning: `shared` has no `engine`, so nothing is shared; add one such as `redis://127.0.0.1:6379`, or remove `shared`"
            ])
        for other in ["shared: {engine: none, prefix: x}", "shared: {engine: 'redis://a', prefix: x}", "shared:\n"] {
            #expect(try warnings(other) == [])
        }
        var flags = Overrides()
        flags.engines = [Self.location("a")]
        #expect(try warnings(text, flags) == [])
    }

    @Test func `a flag gives the engine in place of the file and the variable`() throws {
        var flags = Overrides()
        flags.engines = [try ScalarSyntax.engine.value(of: "redis://c")]
        let settings = try Configuration.load(
            text: "shared: {engine: 'redis://a', prefix: x}", path: "f",
            variables: Variables(["COALESCED_SHARED_ENGINE": "redis://b"]), overriddenBy: flags
        ).get()
        #expect(settings.proxy.sharedTier?.engines == [Self.location("c")] && settings.proxy.shared.prefix == "x")
    }

    @Test func `passwords are not printed`() throws {
        for text in [
            "shared: {engine: 'redis://u:s%2Fecret@a'}", "shared: {engine: 'unix://u:secret@/run/r'}",
            "shared: {engine: ['redis://u:secret@a', 'redis://u:secret@b:1']}",
            "shared: {engine: 'rediss://u:secret@a'}",
            "shared: {engine: ['redis://u:secret@[::1]', 'redis://u:secret@b:1']}",
        ] {
            let settings = try Configuration.load(text: text, path: "f").get()
            let sources = Sources(file: (path: "f", text: text), variables: Variables(), flags: Overrides())
            let lines = Configuration.printout(settings, from: sources).filter { $0.hasPrefix("  engine: ") }
            #expect(lines.count == 1 && lines[0].contains("***@") && !lines[0].contains("ecret"), "\(lines)")
            #expect(lines[0].hasSuffix(" # f:1:10") && !lines[0].contains("u:"), "\(lines)")
        }
    }

    @Test func `a reload leaves the tier as it is`() throws {
        let new = try Configuration.load(text: "shared: {engine: 'redis://a', timeout: 5ms}", path: "f").get()
        #expect(Settings().keysAtStart(changedBy: new) == ["shared"])
    }
}
