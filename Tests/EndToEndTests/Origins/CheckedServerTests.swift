import Glibc
import Testing

/// What checks of servers mean for requests.
@Suite(.scenario) struct CheckedServerTests {
    private static func health(_ more: String = "failures: 1, successes: 2") -> Setting {
        .other(section: "upstream", key: "health", value: "{path: /up, interval: 100ms, timeout: 100ms, \(more)}")
    }

    private static func wait(_ proxy: Program, for server: ScriptedOrigin, _ what: String) throws {
        try eventually("\(what); \(proxy.diagnostics)") {
            proxy.diagnostics.contains("upstream origin: server \(server.url) \(what)")
        }
    }

    @Test func `even the only server gets no request while its checks fail, and requests get 503 at once`() throws {
        try scenario(.workers(2), Self.health()) { origin, proxy in
            origin.on("/up") { _ in [.answer(500)] }
            origin.on("*") { _ in [.requestBody, .answer(200, "Cache-Control: no-store", body: "x")] }
            try Self.wait(proxy, for: origin, "is down after 1 failed check")
            for method in ["GET", "POST"] {
                let answer = try proxy.send(method, "/x", body: method == "POST" ? "x" : nil)
                #expect(answer.status == 503 && answer["retry-after"] == "1", "\(answer.head.map { "\($0)" } ?? "")")
            }
            #expect(origin.count("/x") == 0)
            origin.on("/up") { _ in [.answer(200)] }
            try Self.wait(proxy, for: origin, "is back after")
            #expect(try proxy.get("/x").text == "x")
        }
    }

    @Test func `a reload without checks uses a server that failed them`() throws {
        try scenario(.workers(2), Self.health()) { origin, proxy in
            origin.on("/up") { _ in [.answer(500)] }
            origin.on("/x") { _ in [.answer(200, "Cache-Control: no-store", body: "x")] }
            try Self.wait(proxy, for: origin, "is down after 1 failed check")
            let before = try proxy.get("/x").status
            #expect(before == 503)
            try proxy.rewriteConfiguration(upstream: origin.url, .workers(2))
            proxy.signal(SIGHUP)
            try eventually("it is used") { try proxy.get("/x").text == "x" }
        }
    }

    @Test func `successful checks end an ejection at once`() throws {
        let servers = try [ScriptedOrigin(), ScriptedOrigin()]
        defer { for server in servers { server.stop() } }
        for (index, server) in servers.enumerated() {
            server.on("/up") { _ in [.answer(200)] }
            server.on("*") { _ in [.answer(200, "Cache-Control: no-store", body: "\(index)")] }
        }
        servers[1].on("*") { _ in [.answer(503)] }
        let proxy = try Program.serve(
            servers: servers.map(\.url),
            [.workers(1), .maxFailures(2), .failureCooldown(.seconds(3600)), Self.health("failures: 3, successes: 2")])
        defer { proxy.stop() }
        var number = 0
        try eventually("it is ejected") {
            number += 1
            let answer = try proxy.get("/\(number)").text
            return answer == "0" && proxy.diagnostics.contains("server \(servers[1].url) not used for")
        }
        servers[1].on("*") { _ in [.answer(200, "Cache-Control: no-store", body: "back")] }
        try Self.wait(proxy, for: servers[1], "is back after")
        #expect(proxy.diagnostics.contains(" s: 2 successful checks of /up in a row"))
        let answers = try (0..<4).map { try proxy.get("/again/\($0)").text }
        #expect(answers.count { $0 == "back" } == 2, "\(answers)")
    }

    // MARK: Under load

    /// 20,000 requests with `COALESCED_TEST_ROUNDS=10`, in rounds of 20 clients.
    private static let requests =
        System.environment("COALESCED_TEST_ROUNDS").flatMap { Int($0) }.map { 2000 * $0 } ?? 2000
    private static let clients = 20
    private static let interval = Duration.milliseconds(200)
    private static let slowStart = Duration.seconds(2)

    private static func answer(_ server: ScriptedOrigin, _ name: String) {
        server.on("/up") { _ in [.answer(200)] }
        server.on("*") { _ in [.wait(.milliseconds(5)), .answer(200, "Cache-Control: no-store", body: name)] }
    }

    /// An answer, by who gave it, and when.
    private struct Given {
        let name: String
        let at: Instant
    }

    @Test func `no request fails while one of three servers is killed and started again`() throws {
        let servers = try (1...3).map { _ in try ScriptedOrigin() }
        defer { for server in servers { server.stop() } }
        for (index, server) in servers.enumerated() { Self.answer(server, "\(index + 1)") }
        let health = "{path: /up, interval: 200ms, timeout: 200ms, failures: 1, successes: 2}"
        let proxy = try Program.serve(
            servers: servers.map(\.url),
            [
                .workers(2), .failureCooldown(.seconds(600)),
                .other(section: "upstream", key: "health", value: health),
                .other(section: "upstream", key: "slow-start", value: "2s"),
            ])
        defer { proxy.stop() }
        let crowd = Crowd(
            at: proxy.endpoint,
            (0..<Self.clients).map {
                var visitor = proxy.visitor("/\($0)")
                visitor.keepsOpen = true
                return visitor
            })
        var given: [Given] = []
        var failed: [Answer] = []
        var isFirst = true

        /// One request of each client. `meanwhile` is called while they are under way.
        func round(_ meanwhile: () throws -> Void = {}) throws {
            if !isFirst { crowd.again() }
            isFirst = false
            try meanwhile()
            for answer in crowd.finished() {
                if answer.status == 200, answer.isClean {
                    given.append(Given(name: answer.text, at: answer.endedAt ?? .now))
                } else {
                    failed.append(answer)
                }
            }
        }
        func rounds(for time: Duration) throws {
            let end = Instant.now + time
            repeat { try round() } while .now < end
        }
        func state() throws -> String? {
            guard case .array(let upstreams) = try proxy.status()["upstreams"],
                case .array(let servers) = upstreams.first?["servers"]
            else { return nil }
            return servers[1]["state"]?.string
        }
        func told(_ what: String) -> Bool {
            proxy.diagnostics.contains("upstream origin: server \(servers[1].url) \(what)")
        }

        try rounds(for: .milliseconds(300))
        var killed = Instant.now
        try round {
            try eventually("it has requests", within: .seconds(5)) { servers[1].openConnections > 0 }
            servers[1].goDown()
            killed = .now
        }
        // The checks find it, however few requests there are.
        while !told("is down after 1 failed check in a row, the last one: check of /up: no connection"),
            Instant.now - killed < aStall
        { try round() }
        let found = Instant.now - killed
        note("a killed server is reported after", found.rounded)
        #expect(found < Self.interval * 2, "\(proxy.diagnostics)")
        #expect(try state() != "up")
        let dead = given.count
        try rounds(for: .milliseconds(300))
        #expect(!given[dead...].contains { $0.name == "2" })

        let again = try ScriptedOrigin(port: servers[1].port)
        defer { again.stop() }
        Self.answer(again, "2")
        let started = Instant.now
        while !told("is back after "), Instant.now - started < aStall { try round() }
        let back = Instant.now
        note("a started server is back after", (back - started).rounded)
        #expect(back - started < Self.interval * 3, "two checks in a row")

        try rounds(for: Self.slowStart)
        let grown = Instant.now
        while given.count < Self.requests { try round() }
        try rounds(for: .milliseconds(500))
        #expect(try state() == "up")

        func share(_ from: Instant, _ to: Instant) -> Double {
            let all = given.filter { $0.at >= from && $0.at < to }
            return Double(all.count { $0.name == "2" }) / Double(max(1, all.count))
        }
        let quarters = (0..<4).map { share(back + Self.slowStart * $0 / 4, back + Self.slowStart * ($0 + 1) / 4) }
        let whole = share(grown, .now)
        let shown = (quarters + [whole]).map { "\(Int(($0 * 100).rounded())) %" }.joined(separator: ", ")
        note("its share in each quarter of slow-start, and then", shown)
        #expect(quarters[0] < 0.2 && whole > 0.28 && whole < 0.39, "\(shown)")
        #expect(quarters[0] < quarters[1] && quarters[1] < quarters[2] && quarters[2] < quarters[3], "\(shown)")
        note("requests", given.count + failed.count)
        #expect(failed.isEmpty, "\(failed.count) of \(given.count + failed.count): \(failed.prefix(3).map(\.status))")
    }
}
