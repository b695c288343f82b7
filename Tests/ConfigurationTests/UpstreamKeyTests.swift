import Testing
import Upstream

@testable import Configuration

/// The keys for several servers, and for servers that fail.
@Suite struct `An upstream` {
    private static func file(_ keys: String, servers: String = "['http://a', 'http://b']") -> String {
        "upstreams:\n- {name: app, servers: \(servers), \(keys)}\n"
    }

    private func load(_ text: String) throws -> UpstreamSettings {
        try Configuration.load(text: text, path: "f").get().upstreams[0]
    }

    @Test func `a server is a URL or a map, and a single one needs no list`() throws {
        let servers = try load(
            """
            upstreams:
              - name: app
                servers:
                  - http://a
                  - {url: http://b, weight: 1000}
                  - url: unix:/run/c
                    backup: true
                  - {url: http://d:81, weight: 1, backup: false}
            """
        ).servers
        var heavy = UpstreamServer(host: "b")
        heavy.weight = 1_000
        var backup = UpstreamServer.unix(path: "/run/c")
        backup.isBackup = true
        #expect(servers == [UpstreamServer(host: "a"), heavy, backup, UpstreamServer(host: "d", port: 81)])
        #expect(try load("upstreams: [{name: app, servers: {url: http://b, weight: 1000}}]\n").servers == [heavy])
    }

    @Test func `without these keys, each has the default that the contract names`() throws {
        let upstream = try load(Self.file("max-failures: 3"))
        #expect(upstream.balance == .roundRobin && upstream.health == nil && upstream.retry == RetrySettings())
        #expect(upstream.slowStart == .zero && upstream.resume == 5)
        #expect(upstream.retry.causes == [.error, .timeout] && upstream.retry.statuses == [502, 503, 504])
        #expect(upstream.retry.attempts == 1 && upstream.retry.budget == 10)
        #expect(try load(Self.file("health: {path: /up}")).health == HealthSettings(path: "/up"))
        #expect(try load(Self.file("health: off, retry: {}")) == upstream)
    }

    @Test func `balance has three values`() throws {
        for (word, balance) in [
            ("round-robin", Balance.roundRobin), ("least-requests", .leastRequests), ("hash", .hash),
        ] {
            #expect(try load(Self.file("balance: \(word)")).balance == balance)
        }
    }

    @Test(
        arguments: [
            ("{on: [error]}", [.error], [], 1), ("{on: timeout, attempts: 10}", [.timeout], [], 10),
            ("{on: [599, error, 500, 429]}", [.error], [599, 500, 429], 1), ("{on: []}", [], [], 1),
            ("off", [.error, .timeout], [502, 503, 504], 0),
            ("{attempts: 0}", [.error, .timeout], [502, 503, 504], 0),
        ] as [(String, RetrySettings.Causes, [UInt16], Int)])
    func `retry names what causes a retry, and how often; off keeps the causes`(
        text: String, causes: RetrySettings.Causes, statuses: [UInt16], attempts: Int
    ) throws {
        let retry = try load(Self.file("retry: \(text)")).retry
        #expect(retry.causes == causes && retry.statuses == statuses && retry.attempts == attempts)
    }

    @Test(
        arguments: [("200", 200...200), ("200-399", 200...399), ("599", 599...599), ("200-200", 200...200)]
            as [(String, ClosedRange<UInt16>)])
    func `expect is a status or a range`(text: String, range: ClosedRange<UInt16>) throws {
        #expect(try load(Self.file("health: {path: /, expect: \(text)}")).health?.expected == range)
    }

    @Test func `a check of a short interval has no longer timeout, unless the file gives one`() throws {
        let short = try load(Self.file("health: {path: /, interval: 500ms}")).health
        #expect(short?.timeout == .milliseconds(500))
        let long = try load(Self.file("health: {path: /, interval: 10s}")).health
        #expect(long?.timeout == .seconds(2))
        #expect(try load(Self.file("health: {path: /, interval: 10s, timeout: 10s}")).health?.timeout == .seconds(10))
    }

    @Test func `the ends of the ranges are allowed`() throws {
        let least = try load(
            Self.file("slow-start: 0s, resume: 0, retry: {budget: 0%}, health: {path: /, failures: 1, successes: 1}"))
        #expect(least.slowStart == .zero && least.resume == 0 && least.retry.budget == 0)
        let most = try load(Self.file("slow-start: 1h, resume: 100, retry: {budget: 100%}"))
        #expect(most.slowStart == .seconds(3600) && most.resume == 100 && most.retry.budget == 100)
    }

    @Test func `what is written is read as the same`() throws {
        for keys in [
            "retry: off", "retry: {on: []}", "retry: {on: [504], attempts: 0}",
            "health: {path: '/a{b}?c,d', body: 'x: y # z'}",
            "health: off, balance: least-requests, slow-start: 90s",
        ] {
            let settings = try Configuration.load(
                text: Self.file(keys, servers: "[{url: http://a, weight: 2}, {url: 'unix:/a, b}', backup: true}]"),
                path: "f"
            ).get()
            let written = DefaultFile.lines(of: KeyTable.all, in: settings).joined(separator: "\n")
            #expect(try Configuration.load(text: written + "\n", path: "f").get().upstreams == settings.upstreams)
        }
    }

    @Test(arguments: [
        ("[]", "f:2:24: `servers` is empty; give at least 1"),
        (
            "[http://a, http://b, 'http://A:80']",
            "f:2:45: `servers` has `http://a:80` twice; remove one of them, "
                + "or write `{url: http://a:80, weight: 2}` once for a share twice as large"
        ),
        (
            "[http://a, {url: http://a, backup: true}]",
            "f:2:35: `servers` has `http://a:80` twice; remove one of them, "
                + "or write `{url: http://a:80, weight: 2}` once for a share twice as large"
        ),
        (
            "[{url: http://a, backup: true}, {url: http://b, backup: yes}]",
            "f:2:24: `servers` has only backups; remove `backup` from those that are to be asked first"
        ),
        ("[{url: http://a, weight: 0}]", "f:2:49: `weight: 0`: out of range; give a whole number (1 to 1000)"),
        ("[{url: http://a, weight: 1001}]", "f:2:49: `weight: 1001`: out of range; give a whole number (1 to 1000)"),
        ("[{url: http://a, weight: 50%}]", "f:2:49: `weight: 50%`: not understood; give a whole number (1 to 1000)"),
        ("[{url: http://a, backup: maybe}]", "f:2:49: `backup: maybe`: not understood; give `true` or `false`"),
        ("[{weight: 2}]", "f:2:25: a server needs `url`; add it"),
        ("[{url: http://a, wieght: 2}]", "f:2:41: `wieght` is not known; did you mean `weight`?"),
        (
            "[http://a weight=2]",
            "f:2:25: `servers: http://a weight=2`: not understood; give a URL such as `http://127.0.0.1:9000`, or `unix:/path`"
        ),
        (
            "[{url: https://a/b}]",
            "f:2:31: `url: https://a/b`: a server takes no path, since requests keep theirs; remove everything after the port"
        ),
        (
            "[{url: http://me:secret@a}]",
            "f:2:31: `url: http://***@a`: a server takes no user name or password; remove them"
        ),
        ("[[http://a]]", "f:2:25: `servers` is a URL such as `http://127.0.0.1:9000`, or `unix:/path`, not a list"),
        (
            "[\((0...1_000).map { "unix:/\($0)" }.joined(separator: ", "))]",
            "f:2:24: `servers` has 1001 entries; give at most 1000"
        ),
    ])
    func `a mistake in servers is one line with its place and the remedy`(servers: String, mistake: String) {
        #expect(Faulty(Self.file("balance: hash", servers: servers)).found == [mistake])
    }

    @Test(arguments: [
        (
            "balance: random",
            "`balance: random`: not understood; give one of these words (round-robin, least-requests, hash)"
        ),
        ("balance: least-request", "`balance: least-request`: not understood; did you mean `least-requests`?"),
        (
            "health: /up",
            "`health` is `{path: …, interval: …, timeout: …, expect: …, body: …, host: …, failures: …, successes: …}` or `off`, not a single value"
        ),
        ("health: {interval: 1s}", "`health` needs `path`; add it"),
        (
            "slow-start: 2h",
            "`slow-start: 2h`: out of range; give a duration such as `500ms`, `30s` or `5m` (0s to 1h)"
        ),
        (
            "slow-start: off",
            "`slow-start: off`: not understood; give a duration such as `500ms`, `30s` or `5m` (0s to 1h)"
        ),
        ("resume: 101", "`resume: 101`: out of range; give a whole number (0 to 100)"),
        ("resume: -1", "`resume: -1`: not understood; give a whole number (0 to 100)"),
        ("retry: 3", "`retry` is `{on: …, attempts: …, budget: …}` or `off`, not a single value"),
    ])
    func `a mistake in a key for several servers is one line with its place and the remedy`(
        key: String, mistake: String
    ) {
        let value = key.prefix { $0 != ":" }.count + 2
        #expect(
            Faulty("upstreams:\n- name: a\n  servers: [http://a, http://b]\n  \(key)\n").found == [
                "f:4:\(value + 3): \(mistake)"
            ])
    }

    @Test(arguments: [
        (
            "path: up",
            "`path: up`: not understood; give a path such as `/up` or `/up?full=1`, percent-encoded"
        ),
        (
            "path: /ü", "`path: /ü`: not understood; give a path such as `/up` or `/up?full=1`, percent-encoded"
        ),
        (
            "path: '/a#b'", "`path: /a#b`: not understood; give a path such as `/up` or `/up?full=1`, percent-encoded"
        ),
        (
            "interval: 50ms",
            "`interval: 50ms`: out of range; give a duration such as `500ms`, `30s` or `5m` (100ms to 1d)"
        ),
        ("timeout: 6s", "`timeout` (6s) is longer than `interval` (5s); lower the one, or raise the other"),
        (
            "expect: 2xx",
            "`expect: 2xx`: not understood; give a status such as `200`, or the first and the last of several such as `200-399` (200 to 599)"
        ),
        (
            "expect: 100-200",
            "`expect: 100-200`: out of range; give a status such as `200`, or the first and the last of several such as `200-399` (200 to 599)"
        ),
        ("expect: 399-200", "`expect: 399-200`: the lower status comes first; write `200-399`"),
        (
            "expect: [200, 204]",
            "`expect` is a status such as `200`, or the first and the last of several such as `200-399`, not a list"
        ),
        (
            "body: \(String(repeating: "a", count: 1_025))",
            "`body: \(String(repeating: "a", count: 100))…`: out of range; give a text of at most 1024 bytes"
        ),
        (
            "host: http://a",
            "`host: http://a`: not understood; give a host such as `www.example.com` or `www.example.com:8080`"
        ),
        ("failures: 0", "`failures: 0`: out of range; give a whole number (1 to 1000)"),
        ("successes: 1001", "`successes: 1001`: out of range; give a whole number (1 to 1000)"),
    ])
    func `a mistake in a check is one line with its place and the remedy`(key: String, mistake: String) {
        let value = key.prefix { $0 != ":" }.count + 2
        let path = key.hasPrefix("path:") ? "" : "    path: /\n"
        #expect(
            Faulty("upstreams:\n- name: a\n  servers: http://a\n  health:\n    \(key)\n\(path)").found == [
                "f:5:\(value + 5): \(mistake)"
            ])
    }

    @Test(arguments: [
        (
            "on: [error, 404]",
            "f:5:17: `on: 404`: out of range; give `error`, `timeout` or a status (429, 500 to 599)"
        ),
        ("on: 5xx", "f:5:9: `on: 5xx`: not understood; give `error`, `timeout` or a status (429, 500 to 599)"),
        ("on: [timeuot]", "f:5:10: `on: timeuot`: not understood; did you mean `timeout`?"),
        ("on: [503, '503']", "f:5:15: `on` has `503` twice; remove one of them"),
        ("attempts: 11", "f:5:15: `attempts: 11`: out of range; give a whole number (0 to 10)"),
        ("budget: 10", "f:5:13: `budget: 10`: not understood; give a share such as `10%` (0% to 100%)"),
        ("budget: 101%", "f:5:13: `budget: 101%`: out of range; give a share such as `10%` (0% to 100%)"),
        ("tries: 2", "f:5:5: `tries` is unknown; remove it. Keys allowed here: `on`, `attempts`, `budget`"),
    ])
    func `a mistake in a retry is one line with its place and the remedy`(key: String, mistake: String) {
        #expect(Faulty("upstreams:\n- name: a\n  servers: http://a\n  retry:\n    \(key)\n").found == [mistake])
    }

    private func warnings(_ keys: String, servers: String) throws -> [String] {
        try Configuration.load(text: "upstreams:\n- name: app\n  servers: \(servers)\n\(keys)", path: "f").get()
            .warnings
            .map(\.warning)
    }

    @Test func `a key for several servers causes a warning where there is one address`() throws {
        let keys = "  balance: hash\n  retry: {attempts: 3}\n  slow-start: 1m\n"
        func told(_ place: String, _ key: String) -> String {
            "f:\(place): warning: `\(key)` is about several servers, and `app` has one; add another, or remove `\(key)`"
        }
        #expect(
            try warnings(keys, servers: "http://10.0.0.1") == [
                told("4:12", "balance"), told("5:10", "retry"), told("6:15", "slow-start"),
            ])
        // A name may have several addresses.
        #expect(try warnings(keys, servers: "http://a.example") == [])
        #expect(try warnings(keys, servers: "[http://10.0.0.1, http://10.0.0.2]") == [])
        let usual = "  balance: round-robin\n  retry: off\n  slow-start: 0s\n  health: {path: /}\n"
        #expect(try warnings(usual, servers: "http://10.0.0.1") == [])
        #expect(try warnings("  retry: {attempts: 1}\n", servers: "http://10.0.0.1") == [])
    }

    @Test func `weights without effect cause a warning`() throws {
        let equal =
            "f:3:12: warning: servers of the same weight (5) share as if they had none; "
            + "remove `weight`, or give another server a different one"
        #expect(try warnings("", servers: "[{url: http://a, weight: 5}, {url: http://b, weight: 5}]") == [equal])
        #expect(try warnings("", servers: "[{url: http://a, weight: 5}, {url: http://b, weight: 4}, http://c]") == [])
        #expect(try warnings("", servers: "[{url: http://a, weight: 5}, http://b]") == [])
        #expect(
            try warnings("", servers: "[http://a, http://b, {url: http://c, weight: 5, backup: true}]") == [
                "f:3:12: warning: the weight of http://c:80 has no effect, since no other server shares its requests; "
                    + "remove `weight`, or give another server a different one"
            ])
    }
}
