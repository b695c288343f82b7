import Testing

/// Servers that fail while others do not, as clients see it: with two workers, which judge the servers together.
@Suite(.scenario) struct FailingServerTests {
    /// By how much more is asked in a long run.
    private static let rounds = System.environment("COALESCED_TEST_ROUNDS").flatMap { Int($0) } ?? 1

    /// So many servers, named by their numbers. Nothing is stored unless the test says so.
    private static func servers(_ count: Int) throws -> [ScriptedOrigin] {
        try (0..<count).map { number in
            let server = try ScriptedOrigin()
            answer(server, number)
            return server
        }
    }

    private static func answer(_ server: ScriptedOrigin, _ number: Int, after wait: Duration = .zero) {
        server.on("*") { _ in [.requestBody, .wait(wait), .answer(200, "Cache-Control: no-store", body: "\(number)")] }
    }

    private func serve(_ servers: [ScriptedOrigin], _ settings: Setting...) throws -> Program {
        try Program.serve(servers: servers.map(\.url), [.workers(2)] + settings)
    }

    private func upstream(_ key: String, _ value: String) -> Setting {
        .other(section: "upstream", key: key, value: value)
    }

    // MARK: Answers

    @Test(arguments: [503, 500])
    func `while one of two servers answers with errors no GET fails, and POSTs only until it is left out`(
        status: Int
    ) throws {
        let servers = try Self.servers(2)
        defer { for server in servers { server.stop() } }
        servers[0].on("*") { _ in [.requestBody, .answer(status, "Retry-After: 1", body: "broken")] }
        let proxy = try serve(servers, upstream("retry", "{on: [error, timeout, 500, 502, 503, 504]}"))
        defer { proxy.stop() }
        let count = 100 * Self.rounds
        var (gets, posts): ([Int], [Int]) = ([], [])
        for number in 0..<count {
            gets.append(try proxy.get("/get/\(number)").status)
            posts.append(try proxy.send("POST", "/post/\(number)", body: "x").status)
            // The figures of the long run are those of 50 requests a second.
            if Self.rounds > 1 { System.nap(.milliseconds(20)) }
        }
        #expect(gets.allSatisfy { $0 == 200 })
        let failed = posts.count { $0 == status }
        // Three failures in a row; each of them may be a POST.
        #expect(failed <= 3 && failed + posts.count { $0 == 200 } == count, "\(posts)")
        note("requests of \(2 * count) to the server that answers \(status)", servers[0].total)
        // One probe after 10 s, one after 20 s more, and so on.
        #expect(servers[0].total <= 3 + Self.rounds)
        #expect(
            proxy.diagnostics.contains(
                "server \(servers[0].url) not used for 10.0 seconds after 3 failures in a row, the last one: answered \(status)"
            ))
    }

    @Test func `the answer of the last server is passed on as it came, with its Retry-After`() throws {
        let servers = try Self.servers(2)
        defer { for server in servers { server.stop() } }
        for server in servers { server.on("*") { _ in [.answer(503, "Retry-After: 17", body: "sorry")] } }
        let proxy = try serve(servers)
        defer { proxy.stop() }
        let answer = try proxy.get("/x")
        #expect(answer.status == 503 && answer["retry-after"] == "17" && answer.text == "sorry")
        #expect(servers.map(\.total) == [1, 1])
    }

    @Test func `a server that takes requests and never answers makes three of them wait`() throws {
        let servers = try Self.servers(2)
        defer { for server in servers { server.stop() } }
        servers[0].on("*") { _ in [.silence] }
        let proxy = try serve(servers, .firstByteTimeout(.seconds(1)), .failureCooldown(.seconds(3600)))
        defer { proxy.stop() }
        let answers = try (0..<40 * Self.rounds).map { try proxy.get("/\($0)") }
        #expect(answers.allSatisfy { $0.status == 200 && $0.text == "1" })
        #expect(servers[0].total == 3)
        let late = answers.indices.filter { answers[$0].took >= .seconds(1) }
        #expect(late.count >= 3 && (late.last ?? 0) < 40, "\(late)")
        #expect(answers.allSatisfy { $0.took < .seconds(1) + aStall })
    }

    @Test func `retries never multiply an outage`() throws {
        let servers = try Self.servers(3)
        defer { for server in servers { server.stop() } }
        for server in servers { server.on("*") { _ in [.wait(.milliseconds(20)), .answer(503, body: "down")] } }
        let proxy = try serve(servers, .maxFailures(1_000_000))
        defer { proxy.stop() }
        let (crowds, size) = (10, 40)
        for round in 0..<crowds {
            let visitors = (0..<size).map { Visitor(request: Array(proxy.request("GET", "/\(round)/\($0)").utf8)) }
            let answers = Crowd(at: proxy.endpoint, visitors).finished()
            #expect(answers.allSatisfy { $0.status == 503 })
        }
        let (asked, seen) = (crowds * size, servers.map(\.total).reduce(0, +))
        note("requests that \(asked) made at the servers", seen)
        // A tenth more, and three at a time in the 20 ms that each takes.
        #expect(seen > asked && seen <= asked + asked / 10 + 3 * crowds, "\(seen)")
    }

    // MARK: All of them

    @Test(.clientsInTheClear("a handshake takes a part of the time that is measured"))
    func `while all servers are down clients get stale responses or 503 at once, and soon fresh ones again`()
        throws
    {
        let servers = try Self.servers(2)
        defer { for server in servers { server.stop() } }
        func makeKept(_ server: ScriptedOrigin) {
            server.on("/kept") { _ in [.answer(200, "Cache-Control: max-age=0, stale-if-error=600", body: "kept")] }
        }
        servers.forEach(makeKept)
        let proxy = try serve(servers)
        defer { proxy.stop() }
        let kept = try proxy.get("/kept").text
        #expect(kept == "kept")
        for server in servers { server.goDown() }
        var times: [Duration] = []
        let until = ContinuousClock.now + (Self.rounds > 1 ? .seconds(10) : .seconds(2))
        var (number, first) = (0, true)
        while ContinuousClock.now < until {
            number += 1
            let answer = try proxy.get(number % 2 == 0 ? "/kept" : "/lost/\(number)")
            if number % 2 == 0 {
                #expect(answer.status == 200 && answer.text == "kept")
            } else {
                #expect(answer.status == 503 && (1...300).contains(Int(answer["retry-after"] ?? "") ?? 0))
                #expect(answer["proxy-status"]?.contains("destination_unavailable") == true)
            }
            if !first { times.append(answer.took) }
            first = false
            System.nap(.milliseconds(2))
        }
        times.sort()
        let (median, slowest) = (times[times.count / 2], times[times.count - 1])
        note("answers while all servers are down, median", median.rounded)
        note("the slowest of \(times.count)", slowest.rounded)
        #expect(median < .milliseconds(5) && slowest < aStall)
        // Three failures each, then two probes a second each, of all workers together.
        let failures = try proxy.metric(.connectFailures)
        #expect(failures <= 6 + 4 * (Self.rounds > 1 ? 12 : 4), "\(failures)")

        let again = try servers.map { try ScriptedOrigin(port: $0.port) }
        defer { for server in again { server.stop() } }
        for (number, server) in again.enumerated() {
            Self.answer(server, number)
            makeKept(server)
        }
        let back = ContinuousClock.now
        try eventually("both answer", within: .seconds(10)) {
            number += 1
            _ = try proxy.get("/back/\(number)")
            return again.allSatisfy { $0.total > 0 }
        }
        note("both servers are used again after", (ContinuousClock.now - back).rounded)
        #expect(ContinuousClock.now - back < .seconds(2) + aStall)
        let answers = try (0..<20).map { try proxy.get("/again/\($0)").status }
        #expect(answers.allSatisfy { $0 == 200 })
    }

    @Test
    func `a server that is down comes back without a failure, by one probe of all workers, for which nobody waits`()
        throws
    {
        let servers = try Self.servers(2)
        defer { for server in servers { server.stop() } }
        let proxy = try serve(servers, .maxFailures(1), .failureCooldown(.milliseconds(500)))
        defer { proxy.stop() }
        servers[0].on("*") { _ in [.answer(503, body: "down")] }
        let down = try (0..<10).map { try proxy.get("/\($0)").status }
        #expect(down.allSatisfy { $0 == 200 } && servers[0].total == 1)
        let gate = Gate()
        servers[0].on("*") { _ in [.gate(gate), .answer(200, "Cache-Control: no-store", body: "0")] }
        System.nap(.milliseconds(550))
        let crowd = Crowd(
            at: proxy.endpoint, (0..<20).map { Visitor(request: Array(proxy.request("GET", "/probe/\($0)").utf8)) })
        #expect(crowd.finished().allSatisfy { $0.status == 200 && $0.text == "1" })
        try eventually("there is a probe") { servers[0].total == 2 }
        gate.open()
        try eventually("it is back") { try proxy.serverStates().first == "up" }
        let after = try (0..<8).map { try proxy.get("/after/\($0)").text }
        #expect(Set(after) == ["0", "1"])
    }

    // MARK: Balancing

    @Test func `by key, a server that leaves takes only its keys along, and gets them back`() throws {
        let servers = try Self.servers(5)
        defer { for server in servers { server.stop() } }
        let proxy = try serve(
            servers, upstream("balance", "hash"), .maxFailures(1), .failureCooldown(.milliseconds(300)))
        defer { proxy.stop() }
        let keys = 100 * Self.rounds
        func owners() throws -> [String] { try (0..<keys).map { try proxy.get("/page/\($0)").text } }
        let before = try owners()
        #expect(Set(before) == ["0", "1", "2", "3", "4"])
        #expect(try owners() == before)
        servers[3].goDown()
        let without = try owners()
        let moved = zip(before, without).count { $0 != $1 }
        note("keys of \(keys) that move when one of five servers leaves", moved)
        #expect(moved == before.count { $0 == "3" } && moved <= keys / 3)
        let again = try ScriptedOrigin(port: servers[3].port)
        defer { again.stop() }
        Self.answer(again, 3)
        try eventually("it is used again", within: .seconds(20)) {
            try proxy.get("/probe").text == "3" || again.total > 0
        }
        #expect(try owners() == before)
    }

    @Test func `the server with the least to wait for is asked, so that a slow one holds up nobody`() throws {
        let servers = try Self.servers(3)
        defer { for server in servers { server.stop() } }
        for (number, server) in servers.enumerated() {
            Self.answer(server, number, after: .milliseconds(number == 2 ? 300 : 30))
        }
        let proxy = try serve(servers, upstream("balance", "least-requests"))
        defer { proxy.stop() }
        func crowd(_ name: String) -> [Answer] {
            let visitors = (0..<10).map { Visitor(request: Array(proxy.request("GET", "/\(name)/\($0)").utf8)) }
            return Crowd(at: proxy.endpoint, visitors).finished()
        }
        for round in 0..<3 { _ = crowd("first/\(round)") }
        let slow = servers[2].total
        let answers = (0..<30 * Self.rounds).flatMap { crowd("\($0)") }
        #expect(answers.allSatisfy { $0.status == 200 })
        let (more, all) = (servers[2].total - slow, answers.count)
        let fast = answers.filter { $0.text != "2" }.map(\.took).sorted()
        let times = answers.map(\.took).sorted()
        let ninetyNine = (times[times.count * 99 / 100], fast[fast.count * 99 / 100])
        note("requests of \(all) to the slow server", more)
        note("p99 of all, and of the fast servers", "\(ninetyNine.0.rounded), \(ninetyNine.1.rounded)")
        #expect(more * 100 <= all, "\(more)")
        #expect(ninetyNine.0 <= ninetyNine.1 * 2)
    }

    @Test func `weights share the requests, and a backup gets none`() throws {
        let servers = try Self.servers(3)
        defer { for server in servers { server.stop() } }
        let list =
            "[\(servers[0].url), {url: \"\(servers[1].url)\", weight: 3}, {url: \"\(servers[2].url)\", backup: true}]"
        var file = Setting.file([.workers(2)], servers: ["@"])
        file = file.replacing("[\"@\"]", with: list)
        let proxy = try Program.serve(file: file)
        defer { proxy.stop() }
        for number in 0..<80 { #expect(try proxy.get("/\(number)").status == 200) }
        let totals = servers.map(\.total)
        // Two workers, each in turn.
        #expect((17...23).contains(totals[0]) && totals[2] == 0, "\(totals)")
        for server in servers[0...1] { server.goDown() }
        let answers = try (0..<4).map { try proxy.get("/backup/\($0)").text }
        #expect(answers == ["2", "2", "2", "2"])
    }
}

/// The same for the addresses of one name.
@Suite(.scenario, .enabled(if: OwnNetwork.isToBeHad), .originsInTheClear("the URLs of the names are of http"))
struct FailingAddressTests {
    @Test func `of five addresses one is dead, one slow, and one broken, and no GET fails or waits`() throws {
        // 127.0.0.1 takes no connection, 127.0.0.2 answers 500, 127.0.0.3 is slow.
        let (listener, port) = try Socket.listen(backlog: 0)
        defer { Socket.close(listener) }
        let fillers = try (0..<4).map { _ in try Socket.connect(to: .tcp(port)) }
        defer { for filler in fillers { Socket.close(filler) } }
        let origins = try (2...5).map { try ScriptedOrigin(port: port, last: UInt8($0)) }
        defer { for origin in origins { origin.stop() } }
        for (index, origin) in origins.enumerated() {
            let (status, wait): (Int, Duration) = (index == 0 ? 500 : 200, index == 1 ? .milliseconds(400) : .zero)
            origin.on("*") { _ in [.wait(wait), .answer(status, "Cache-Control: no-store", body: "\(index + 2)")] }
        }
        let hosts = (1...5).map { "127.0.0.\($0) app.test\n" }.joined()
        let proxy = try Program.serve(
            servers: ["http://app.test:\(port)"],
            [
                .workers(2), .failureCooldown(.seconds(3600)),
                .other(section: "upstream", key: "balance", value: "least-requests"),
                .other(section: "upstream", key: "retry", value: "{on: [error, timeout, 500, 502, 503, 504]}"),
            ],
            in: OwnNetwork(hosts: hosts, nameServers: "nameserver 127.0.0.1\n", isShared: true))
        defer { proxy.stop() }
        let answers = try (0..<100).map { try proxy.get("/\($0)") }
        #expect(answers.allSatisfy { $0.status == 200 })
        #expect(origins[0].total == 3, "answers 500 three times")
        let late = answers.count { $0.took >= .milliseconds(240) }
        note("requests of \(answers.count) that a dead or a slow address held up", late)
        // The dead one holds up the first that meets it, a quarter of a second; the slow one is known from its first answer.
        #expect(late <= 10)
        #expect(origins[2].total + origins[3].total >= 90)
    }
}
