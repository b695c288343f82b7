import Bytes
import Coalescing
import Glibc
import Libevent
import LoopTesting
import NameServing
import Telemetry
import Testing

@testable import Upstream

/// The checks of the places of an origin, over real connections on the test's own loop.
@Suite(.timeLimit(.minutes(10))) struct HealthChecksTests {
    private static let ok = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
    private static let broken = "HTTP/1.1 500 No\r\nContent-Length: 0\r\n\r\n"

    /// The checks of an origin whose queue is full all the time. The test looks on at each news, and at each step of a
    /// server.
    private final class Checked {
        let loop: EventLoop
        let group: ServerGroup
        let names = NameResolution()
        let resolver: Resolver
        let queue = OperationQueueManager<Int>(maxConcurrent: 1, maxQueued: 0)
        private(set) var news: [String] = []
        private var checks: HealthChecks?
        var look: (Checked) -> Void = { _ in }

        init(
            _ servers: [UpstreamServer], on loop: EventLoop, hosts: String? = nil,
            _ change: (inout HealthSettings) -> Void = { _ in }
        ) {
            self.loop = loop
            var files = Resolver.Settings()
            if let hosts { (files.hosts, files.resolvConf) = (hosts, hosts + "-servers") }
            resolver = Resolver(on: loop, settings: files)
            var settings = UpstreamSettings(name: "origin", servers: servers)
            settings.resolveTTL = .seconds(1)
            var health = HealthSettings(path: "/up?full=1")
            health.interval = .milliseconds(20)
            (health.failures, health.successes) = (2, 2)
            change(&health)
            settings.health = health
            group = ServerGroup(settings)
            _ = queue.enqueue(plain: PlainOperation())
            checks = HealthChecks(
                health, of: group, on: loop, resolver: resolver, names: names,
                enqueue: { [queue] in _ = queue.enqueue(plain: $0, priority: .immediate) }
            ) { [unowned self] news, failure in
                let address = news.address.map { "\($0) " } ?? ""
                switch news.event {
                case .isDown: self.news.append("\(address)down: \(failure.map { "\($0)" } ?? "")")
                case .isBack: self.news.append("\(address)back")
                case .isEjected: Issue.record("a check ejects nobody")
                }
                look(self)
            }
        }

        /// Begins, and looks on until `stop`.
        func run(_ look: @escaping (Checked) -> Void) {
            self.look = look
            checks?.start()
        }

        /// Ends the checks, and the test.
        func stop() {
            guard let checks else { return }
            checks.stop()
            #expect(queue.operations.count == 1, "only what fills the queue is left")
            self.checks = nil
            loop.stop()
        }

        var isInUse: [Bool] { group.entries.map(\.place.isInUse) }
    }

    private static func script(_ answer: String) -> [ScriptedServer.Step] { [.request(), .send(answer), .close] }

    @Test func `a server is down after failed checks in a row, and back after successful ones`() throws {
        var (checked, server): (Checked?, ScriptedServer?)
        var requests: [Int] = []
        try onLoop { loop in
            let answers = [Self.broken, Self.ok, Self.broken, Self.broken, Self.ok, Self.broken, Self.ok, Self.ok]
            let scripted = try ScriptedServer(on: loop, answers.map(Self.script))
            server = scripted
            checked = Checked([UpstreamServer(host: "127.0.0.1", port: scripted.port)], on: loop)
            checked?.run { checked in
                requests.append(scripted.requests.count)
                if requests.count == 2 { checked.stop() }
            }
        }
        #expect(requests == [4, 8])
        #expect(checked?.news == ["down: status 500", "back"] && checked?.isInUse == [true])
        let lines = [
            "GET /up?full=1 HTTP/1.1", "Host: 127.0.0.1:\(server?.port ?? 0)", "User-Agent: coalesced-check",
            "Accept: */*", "Connection: close", "", "",
        ]
        #expect(server?.requests.first == lines.joined(separator: "\r\n"))
        #expect(server?.connections.allSatisfy { $0.requests.count == 1 } == true)
    }

    struct Outcome: Sendable {
        let steps: [ScriptedServer.Step]
        let news: String
        var text = ""
    }

    @Test(arguments: [
        Outcome(steps: script(broken), news: "status 500"),
        Outcome(steps: script(ok), news: "its content lacks \"okay\"", text: "okay"),
        Outcome(
            steps: script("nonsense\r\n\r\n"),
            news: "The status line is not a version, a three-digit code and a phrase."),
        Outcome(steps: [.close], news: "the connection was closed before the response was complete"),
        Outcome(
            steps: script(String(ok.dropLast())), news: "the connection was closed before the response was complete"),
        Outcome(steps: [.request(), .send("HTTP/1.1 200 OK\r\n"), .pause], news: "took longer than 0.02 seconds"),
    ])
    func `each failure has its reason`(outcome: Outcome) throws {
        var (checked, server): (Checked?, ScriptedServer?)
        try onLoop { loop in
            let scripted = try ScriptedServer(on: loop, [outcome.steps])
            server = scripted
            checked = Checked([UpstreamServer(host: "127.0.0.1", port: scripted.port)], on: loop) {
                ($0.failures, $0.body, $0.timeout) = (
                    1, outcome.text, outcome.news.hasPrefix("took") ? .milliseconds(20) : .seconds(5)
                )
            }
            checked?.run { $0.stop() }
        }
        #expect(checked?.news == ["down: \(outcome.news)"] && checked?.isInUse == [false])
        _ = server
    }

    @Test func `a server that takes no connection fails`() throws {
        var checked: Checked?
        try onLoop { loop in
            let server = try ScriptedServer(on: loop, [])
            let port = server.port
            server.close()
            checked = Checked([UpstreamServer(host: "127.0.0.1", port: port), .unix(path: "/nowhere")], on: loop)
            checked?.run { if $0.news.count == 2 { $0.stop() } }
        }
        #expect(
            checked?.news.sorted() == [
                "down: no connection: Connection refused", "down: no connection: No such file or directory",
            ])
    }

    @Test func `the next address of a place is asked if the first takes no connection`() throws {
        var (check, server): (Check?, ScriptedServer?)
        var end: CheckEnd?
        try onLoop { loop in
            let (good, bad) = (try ScriptedServer(on: loop, [Self.script(Self.ok)]), try ScriptedServer(on: loop, []))
            let addresses = [bad.port, good.port].map { SocketAddress.ipv4(.loopback, port: $0) }
            bad.close()
            server = good
            let settings = UpstreamSettings.local
            check = Check(
                of: settings.servers[0], at: addresses, HealthSettings(path: "/"), settings, nil, on: loop
            ) {
                end = $0
                loop.stop()
            }
            check?.start()
        }
        #expect(end == .success && server?.requests.count == 1)
    }

    @Test(
        arguments: [
            ("", nil, UpstreamServer(host: "app.test", port: 80), "app.test"),
            ("", nil, UpstreamServer(host: "app.test", isSecure: true), "app.test"),
            ("", nil, UpstreamServer(host: "app.test", port: 80, isSecure: true), "app.test:80"),
            ("", nil, UpstreamServer(host: "::1", port: 8080), "[::1]:8080"),
            ("", nil, UpstreamServer.unix(path: "/run/app"), "localhost"),
            ("", "www.test:81", UpstreamServer(host: "app.test"), "www.test:81"),
            ("check.test", "www.test:81", UpstreamServer(host: "app.test"), "check.test"),
        ] as [(String, String?, UpstreamServer, String)])
    func `the request names the host of the check, else the upstream's, else the server`(
        ofCheck: String, ofUpstream: String?, server: UpstreamServer, host: String
    ) {
        var (health, settings) = (HealthSettings(path: "/"), UpstreamSettings.local)
        (health.host, settings.host) = (ofCheck, ofUpstream)
        #expect(String(Check.request(to: server, health, settings)).contains("\r\nHost: \(host)\r\n"))
    }

    @Test func `successful checks end an ejection, and drained servers and backups are checked as well`() throws {
        var (checked, servers): (Checked?, [ScriptedServer]) = (nil, [])
        try onLoop { loop in
            servers = try (0..<3).map { _ in
                try ScriptedServer(on: loop, Array(repeating: Self.script(Self.ok), count: 10))
            }
            var settings = servers.map { UpstreamServer(host: "127.0.0.1", port: $0.port) }
            settings[2].isBackup = true
            let one = Checked(settings, on: loop)
            checked = one
            let refused = FailureCause.error(UpstreamError(.connect))
            let news = one.group.failed(
                one.group.entries[0].place, refused, isOnly: false, isCertain: true, at: loop.now)
            let now = loop.now
            let isDrained = one.group.entries[1].place.change(at: now) { $0.setDrained(true, at: now) }
            #expect(news != nil && isDrained && one.isInUse == [false, false, true])
            one.run { checked in
                func stopOnceAllAreChecked() {
                    guard servers.allSatisfy({ $0.requests.count >= 2 }) else {
                        loop.schedule(after: millisecond, stopOnceAllAreChecked)
                        return
                    }
                    checked.stop()
                }
                stopOnceAllAreChecked()
            }
        }
        #expect(checked?.news == ["back"] && checked?.isInUse == [true, false, true])
        #expect(checked?.group.states(at: 0).allSatisfy { $0.lastCheck?.outcome == .success } == true)
    }

    @Test func `stopping ends the check under way, and none follows`() throws {
        var (checked, server): (Checked?, ScriptedServer?)
        try onLoop { loop in
            let scripted = try ScriptedServer(on: loop, [[.request(), .pause, .pause]])
            server = scripted
            checked = Checked([UpstreamServer(host: "127.0.0.1", port: scripted.port)], on: loop) {
                $0.timeout = .seconds(60)
            }
            scripted.onEvent = { connection in
                if connection.hasEnded { return loop.stop() }
                #expect(checked?.queue.operations.count == 2)
                loop.schedule(after: millisecond) {
                    checked?.stop()
                    // `stop` ends the test's loop as well, before the server sees the end.
                    loop.schedule(after: 0) { loop.run() }
                }
            }
            checked?.run { _ in }
        }
        #expect(checked?.news == [] && server?.connections.count == 1)
    }

    // MARK: Names

    /// Beside the hosts file, a name server knows no name.
    private func withHosts(_ text: String, _ body: (_ path: String) throws -> Void) throws {
        let path = "/tmp/upstream-tests-\(getpid())-\(UInt64.random(in: 0 ... .max))"
        let nameServer = try NameServer { _ in .code(3) }
        Self.write(text, at: path)
        Self.write("nameserver 127.0.0.1:\(nameServer.port)\n", at: path + "-servers")
        defer { for name in [path, path + "-servers"] { _ = unsafe unlink(name) } }
        try body(path)
    }

    private static func write(_ text: String, at path: String) {
        let file = unsafe open(path, O_WRONLY | O_CREAT | O_TRUNC, 0o600)
        let bytes = Array(text.utf8)
        let written = unsafe Glibc.write(file, bytes, bytes.count)
        #expect(written == bytes.count)
        close(file)
    }

    @Test func `a name that nobody asked for is looked up, and its addresses are checked as they come and go`() throws {
        var (checked, servers): (Checked?, [ScriptedServer]) = (nil, [])
        var port: UInt16 = 0
        try withHosts("127.0.0.1 app.test\n127.0.0.2 app.test\n") { hosts in
            try onLoop { loop in
                let first = try ScriptedServer(on: loop, Array(repeating: Self.script(Self.ok), count: 500))
                port = first.port
                let others = try (UInt8(2)...3).map { last in
                    try ScriptedServer(
                        on: loop, Array(repeating: Self.script(last == 2 ? Self.broken : Self.ok), count: 500),
                        at: .ipv4(IPv4Address(127, 0, 0, last), port: port))
                }
                servers = [first] + others
                checked = Checked([UpstreamServer(host: "app.test", port: port)], on: loop, hosts: hosts)
                checked?.run { checked in
                    Self.write("127.0.0.1 app.test\n127.0.0.3 app.test\n", at: hosts)
                    checked.resolver.readFilesAgain()
                    checked.names.forget(at: loop.now)
                    func stopOnceFollowed() {
                        guard servers[2].requests.count >= 3 else {
                            loop.schedule(after: millisecond, stopOnceFollowed)
                            return
                        }
                        #expect(servers[0].requests.count > 3)
                        checked.stop()
                    }
                    stopOnceFollowed()
                }
            }
        }
        #expect(checked?.news == ["127.0.0.2:\(port) down: status 500"])
        #expect(servers[1].requests.count <= 3, "not once it has left")
        let addresses = [UInt8(1), 3].map { SocketAddress.ipv4(IPv4Address(127, 0, 0, $0), port: port) }
        #expect(checked?.group.entries.map(\.place.addresses) == addresses.map { [$0] })
        #expect(servers[0].requests.first?.contains("\r\nHost: app.test:\(port)\r\n") == true)
    }

    @Test func `a name without an address is down until it has one`() throws {
        var (checked, server): (Checked?, ScriptedServer?)
        try withHosts("") { hosts in
            try onLoop { loop in
                let scripted = try ScriptedServer(on: loop, Array(repeating: Self.script(Self.ok), count: 500))
                server = scripted
                checked = Checked([UpstreamServer(host: "app.test", port: scripted.port)], on: loop, hosts: hosts)
                checked?.run { checked in
                    #expect(checked.isInUse == [false])
                    Self.write("127.0.0.1 app.test\n", at: hosts)
                    checked.resolver.readFilesAgain()
                    func stopOnceChecked() {
                        guard scripted.requests.count >= 2 else {
                            loop.schedule(after: millisecond, stopOnceChecked)
                            return
                        }
                        checked.stop()
                    }
                    stopOnceChecked()
                }
            }
        }
        #expect(checked?.news.count == 1 && checked?.news.first?.hasPrefix("down: no address: app.test: ") == true)
        #expect(checked?.isInUse == [true])
        _ = server
    }
}
