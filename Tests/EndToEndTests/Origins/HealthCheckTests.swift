import Glibc
import Testing

/// Checks of an upstream's servers, once for all workers, whatever the requests do.
@Suite(.scenario) struct HealthCheckTests {
    private static let interval = Duration.milliseconds(100)

    /// `/up` once in `interval`.
    /// - Parameter more: other keys of `health`.
    private static func health(_ path: String = "/up", every interval: Duration = interval, _ more: String...)
        -> Setting
    {
        let milliseconds = "\(Int(interval.inMilliseconds))ms"
        let keys = ["path: \(path)", "interval: \(milliseconds)"] + more
        let timeout = more.contains { $0.hasPrefix("timeout:") } ? [] : ["timeout: \(milliseconds)"]
        return .other(section: "upstream", key: "health", value: "{\((keys + timeout).joined(separator: ", "))}")
    }

    /// What the log has of a server.
    private static func told(_ proxy: Program, of server: ScriptedOrigin) -> [String] {
        let subject = "upstream origin: server \(server.url) "
        return proxy.diagnostics.split(separator: "\n").compactMap { line in
            line.firstRange(of: subject).map { String(line[$0.upperBound...]) }
        }
    }

    private static func wait(for count: Int, of path: String = "/up", at origin: ScriptedOrigin) throws {
        let before = origin.count(path)
        try eventually("\(count) more checks") { origin.count(path) >= before + count }
    }

    // MARK: Outcomes

    struct Outcome: Sendable {
        let steps: [Step]
        let told: String
        var keys: [String] = []
    }

    @Test(arguments: [
        Outcome(steps: [.answer(500)], told: "status 500"),
        Outcome(steps: [.answer(200)], told: "status 200", keys: ["expect: 204"]),
        Outcome(steps: [.answer(200, body: "degraded")], told: #"its content lacks "fine""#, keys: ["body: fine"]),
        Outcome(steps: [.silence], told: "took longer than 0.1 seconds"),
        Outcome(steps: [.head(200, "Content-Length: 2"), .text("o"), .silence], told: "took longer than 0.1 seconds"),
        Outcome(
            steps: [.raw("HTTP/9 ok\r\n\r\n")],
            told: "The status line is not a version, a three-digit code and a phrase."),
        Outcome(steps: [.close], told: "the connection was closed before the response was complete"),
        Outcome(steps: [.reset], told: "the connection was closed before the response was complete"),
        Outcome(
            steps: [.head(200, "Content-Length: 2"), .text("o"), .close],
            told: "the connection was closed before the response was complete"),
    ])
    func `a server that fails its checks is reported once, with the reason`(outcome: Outcome) throws {
        let origin = try ScriptedOrigin()
        defer { origin.stop() }
        origin.on("/up") { _ in outcome.steps }
        let proxy = try Program.serve(
            upstream: origin.url,
            [
                .workers(2),
                .other(
                    section: "upstream", key: "health",
                    value:
                        "{path: /up, interval: 100ms, timeout: 100ms, failures: 2\(outcome.keys.map { ", " + $0 }.joined())}"
                ),
            ])
        defer { proxy.stop() }
        let down = "is down after 2 failed checks in a row, the last one: check of /up: \(outcome.told)"
        try eventually("it is reported; \(proxy.diagnostics)") { !Self.told(proxy, of: origin).isEmpty }
        try Self.wait(for: 3, at: origin)
        #expect(Self.told(proxy, of: origin) == [down])

        let good = outcome.keys == ["expect: 204"] ? 204 : 200
        origin.on("/up") { _ in [.answer(good, body: good == 204 ? "" : "all is fine")] }
        try eventually("it is back; \(proxy.diagnostics)") { Self.told(proxy, of: origin).count > 1 }
        try Self.wait(for: 3, at: origin)
        let all = Self.told(proxy, of: origin)
        #expect(all.count == 2 && all.last?.hasPrefix("is back after ") == true, "\(all)")
        #expect(all.last?.hasSuffix(" s: 2 successful checks of /up in a row") == true, "\(all)")
    }

    @Test func `a server that takes no connection is reported as such`() throws {
        try scenario(Self.health("/up", every: Self.interval, "failures: 1")) { origin, proxy in
            origin.on("/up") { _ in [.answer(200)] }
            // The first check may have come before that.
            try Self.wait(for: 2, at: origin)
            try eventually("it is up") { Self.told(proxy, of: origin).last?.hasPrefix("is down") != true }
            origin.goDown()
            let down =
                "is down after 1 failed check in a row, the last one: check of /up: no connection: Connection refused"
            try eventually("it is reported; \(proxy.diagnostics)") { Self.told(proxy, of: origin).last == down }
        }
    }

    @Test func `only failures in a row count`() throws {
        // On a busy machine a check may take longer than the usual interval.
        try scenario(Self.health("/up", every: .milliseconds(400), "failures: 3")) { origin, proxy in
            // Each third check succeeds.
            origin.on("/up") { [.answer($0.number % 3 == 0 ? 200 : 500)] }
            try Self.wait(for: 12, at: origin)
            #expect(Self.told(proxy, of: origin).isEmpty)
            origin.on("/up") { _ in [.answer(500)] }
            try eventually("it is reported; \(proxy.diagnostics)") { Self.told(proxy, of: origin).count == 1 }
        }
    }

    // MARK: Once for all, beside everything else

    @Test func `all workers and a full queue have one check in an interval, each on a connection of its own`() throws {
        try scenario(.workers(2), .maxConcurrentFetches(1), .maxQueuedFetches(1), Self.health()) { origin, proxy in
            let gate = Gate()
            origin.on("/up") { _ in [.answer(200)] }
            origin.on("*") { _ in [.gate(gate), .answer(200)] }
            let (running, waiting) = (proxy.crowd(1, get: "/running"), proxy.crowd(1, get: "/waiting"))
            try eventually("the queue is full") {
                try origin.count("/running") + origin.count("/waiting") == 1 && proxy.metric(.queued) == 1
            }
            let (refused, before) = try (proxy.get("/refused").status, origin.count("/up"))
            #expect(refused == 503)
            let time = try measured { try Self.wait(for: 8, at: origin) }
            // The first comes at once, the others 100 ms apart, give or take 10. Two workers would take half the time.
            #expect(time > .milliseconds(500), "\(time)")
            let checks = origin.requests("/up")
            #expect(Set(checks.map(\.connection)).count == checks.count && checks.count >= before + 8)
            #expect(checks.allSatisfy { $0["connection"] == "close" && $0["user-agent"] == "coalesced-check" })
            #expect(checks.allSatisfy { $0["host"] == "127.0.0.1:\(origin.port)" && $0["via"] == nil })
            let (fetches, inFlight) = try (proxy.metric(.fetches), proxy.metric(.inFlight))
            #expect(fetches == 1 && inFlight == 2, "no check is a fetch")
            gate.open()
            #expect((running.finished() + waiting.finished()).allSatisfy { $0.status == 200 })
        }
    }

    @Test func `a check that takes long is not joined by another`() throws {
        try scenario(Self.health()) { origin, proxy in
            origin.on("/up") { _ in [.silence] }
            try Self.wait(for: 5, at: origin)
            try stays("one is open at most", for: Self.interval * 4) { origin.openConnections <= 1 }
        }
    }

    // MARK: Ends

    @Test func `a program that drains checks no more`() throws {
        try scenario(.workers(2), Self.health()) { origin, proxy in
            let gate = Gate()
            origin.on("/up") { _ in [.answer(200)] }
            origin.on("/slow") { _ in [.gate(gate), .answer(200, body: "slow")] }
            let slow = proxy.crowd(1, get: "/slow")
            try eventually("it is asked") { origin.count("/slow") == 1 }
            try Self.wait(for: 2, at: origin)
            proxy.terminate()
            try eventually("it drains") { proxy.diagnostics.contains("SIGTERM: no new connections") }
            try eventually("the last check has ended") { origin.openConnections == 1 }
            let last = origin.count("/up")
            try stays("no check", for: Self.interval * 4) { origin.count("/up") == last }
            gate.open()
            #expect(slow.finished()[0].text == "slow")
            #expect(try proxy.exited() == .code(0))
        }
    }

    @Test func `after an upgrade the new program checks, and the old one no more`() throws {
        let origin = try ScriptedOrigin()
        defer { origin.stop() }
        let gate = Gate()
        origin.on("/up") { _ in [.answer(200)] }
        origin.on("/slow") { _ in [.gate(gate), .answer(200, body: "slow")] }
        let proxy = try Program.serve(
            file: Setting.file([.workers(2), Self.health()], upstream: origin.url), isLinked: true)
        defer { proxy.stop() }
        let slow = proxy.crowd(1, get: "/slow")
        try eventually("it is asked") { origin.count("/slow") == 1 }
        try Self.wait(for: 2, at: origin)
        try proxy.upgrade()
        try Self.wait(for: 2, at: origin)
        #expect(proxy.exit() == nil, "the old program waits for the slow one")
        let time = try measured { try Self.wait(for: 8, at: origin) }
        #expect(time > .milliseconds(500), "\(time)")
        gate.open()
        #expect(slow.finished()[0].text == "slow")
        #expect(try proxy.exited() == .code(0))
    }

    @Test func `a program that drains uses a server that its last checks found down`() throws {
        let origin = try ScriptedOrigin()
        defer { origin.stop() }
        origin.on("/up") { _ in [.answer(500)] }
        origin.on("/x") { _ in [.answer(200, body: "x")] }
        let proxy = try Program.serve(
            file: Setting.file(
                [.workers(2), Self.health("/up", every: Self.interval, "failures: 1")], upstream: origin.url),
            isLinked: true)
        defer { proxy.stop() }
        try eventually("it is down") { try proxy.get("/x").status == 503 }
        let kept = try proxy.connect()
        try kept.send(proxy.request("GET", "/x"))
        #expect(try kept.answer().status == 503)
        try proxy.upgrade()
        try kept.send(proxy.request("GET", "/x"))
        #expect(try kept.answer().text == "x")
        #expect(try proxy.exited() == .code(0))
    }

    @Test func `a reload that keeps the upstream keeps its checks, and one that changes or removes them ends them`()
        throws
    {
        try scenario(Self.health("/up", every: .seconds(600))) { origin, proxy in
            for path in ["/up", "/other"] { origin.on(path) { _ in [.answer(200)] } }
            func reload(_ settings: Setting...) throws {
                let before = proxy.diagnostics.matches(of: #/info: reloaded /#).count
                try System.write(Setting.file(settings, upstream: origin.url), to: proxy.configurationPath)
                proxy.signal(SIGHUP)
                try eventually("it is reloaded; \(proxy.diagnostics)") {
                    proxy.diagnostics.matches(of: #/info: reloaded /#).count > before
                }
            }
            try eventually("it is checked at once") { origin.count("/up") == 1 }
            try reload(Self.health("/up", every: .seconds(600)), .maxWaiters(7))
            try reload(Self.health("/other"), .maxWaiters(7))
            try Self.wait(for: 3, of: "/other", at: origin)
            #expect(origin.count("/up") == 1, "neither again after the first reload, nor after the second one")
            try reload(.maxWaiters(7))
            try eventually("the last check has ended") { origin.openConnections == 0 }
            let last = origin.count("/other")
            try stays("no check", for: Self.interval * 4) { origin.count("/other") == last }
        }
    }
}
