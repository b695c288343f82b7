import Testing

/// An upstream with two servers: asked in turn, passed over while they fail.
@Suite(.scenario) struct ServersTests {
    /// One worker: each keeps its own turns. Nothing is stored, so each request asks.
    private func twoServers(
        _ settings: Setting...,
        conversation: (_ first: ScriptedOrigin, _ second: ScriptedOrigin, _ proxy: Program) throws -> Void
    ) throws {
        let servers = try [ScriptedOrigin(), ScriptedOrigin()]
        defer { for server in servers { server.stop() } }
        for (server, name) in zip(servers, ["first", "second"]) { Self.answer(server, name) }
        let proxy = try Program.serve(servers: servers.map(\.url), [.workers(1)] + settings)
        defer { proxy.stop() }
        try conversation(servers[0], servers[1], proxy)
    }

    /// A server that went down is back: another one at its port, to be stopped by the test.
    private static func comesBack(_ server: ScriptedOrigin) throws -> ScriptedOrigin {
        let again = try ScriptedOrigin(port: server.port)
        answer(again, "back")
        return again
    }

    /// Asks until one that came back answers.
    private static func askUntilBack(_ proxy: Program, within limit: Duration = .seconds(5)) throws {
        var round = 0
        try eventually("it is asked", within: limit) {
            round += 1
            return try proxy.get("/back/\(round)").text == "back"
        }
    }

    private static func answer(_ server: ScriptedOrigin, _ name: String) {
        server.on("*") { _ in [.requestBody, .answer(200, "Cache-Control: no-store", body: name)] }
    }

    @Test func `servers are used in turn`() throws {
        try twoServers { first, second, proxy in
            let answers = try (0..<8).map { try proxy.get("/\($0)").text }
            #expect(answers == ["first", "second", "first", "second", "first", "second", "first", "second"])
            #expect(first.total == 4 && second.total == 4)
        }
    }

    @Test func `a server that is down costs no response, not even to a POST`()
        throws
    {
        try twoServers(.maxFailures(3), .failureCooldown(.seconds(3600))) { first, second, proxy in
            first.goDown()
            for number in 0..<10 {
                let answer = try number % 2 == 0 ? proxy.get("/\(number)") : proxy.send("POST", "/\(number)", body: "x")
                #expect(answer.status == 200 && answer.text == "second", "request \(number)")
            }
            #expect(second.total == 10)
            let failures = try proxy.metric(.connectFailures)
            #expect(failures == 3)
        }
    }

    @Test func `the log reports once that a server is not used, with the reason, and that it is back`() throws {
        try twoServers(.maxFailures(2), .failureCooldown(.milliseconds(100))) { first, second, proxy in
            func told(_ what: String) -> [Substring] {
                proxy.diagnostics.split(separator: "\n").filter {
                    $0.contains("upstream origin: server \(first.url) \(what)")
                }
            }
            first.goDown()
            // Through several cool-downs.
            var round = 0
            try eventually("it was tried four times") {
                round += 1
                return try proxy.get("/\(round)").text == "second" && proxy.metric(.connectFailures) >= 4
            }
            #expect(told("not used for").count == 1)
            let reason =
                "after 2 failures in a row, the last one: connect: 127.0.0.1:\(first.port): Connection refused"
            #expect(told("not used for").first?.hasSuffix(reason) == true, "\(proxy.diagnostics)")
            let again = try Self.comesBack(first)
            defer { again.stop() }
            try Self.askUntilBack(proxy)
            #expect(told("is back after").count == 1 && told("").count == 2, "\(proxy.diagnostics)")
        }
    }

    @Test(arguments: [1, 2])
    func `the log reports once for all workers that the only server fails and is back`(_ workers: Int)
        throws
    {
        try scenario(.workers(workers), .maxFailures(2)) { origin, proxy in
            func told(_ what: String) -> Int {
                proxy.diagnostics.split(separator: "\n").count {
                    $0.contains(" upstream origin: server \(origin.url) \(what)")
                }
            }
            origin.goDown()
            var round = 0
            func state() throws -> String? { try proxy.servers().first?["state"]?.string }
            // Each by a connection of its own, which any of the workers may accept: they count together.
            for _ in 0..<2 {
                round += 1
                let answer = try proxy.get("/\(round)")
                #expect(answer.status == 502)
            }
            #expect(try state() == "ejected")
            for _ in 0..<6 {
                round += 1
                #expect(try proxy.get("/\(round)").status == 502)
            }
            let reason =
                "is failing, but still used because it is the only one, after 2 failures in a row, the last one: connect"
            #expect(told(reason) == 1 && told("") == 1, "\(proxy.diagnostics)")
            let again = try Self.comesBack(origin)
            defer { again.stop() }
            for _ in 0..<6 {
                round += 1
                #expect(try proxy.get("/\(round)").text == "back")
            }
            #expect(try state() == "up")
            #expect(told("is back after") == 1 && told("") == 2, "\(proxy.diagnostics)")
        }
    }

    @Test func `the only server is reported as failing, and is used all the same`() throws {
        try scenario(.maxFailures(2), .failureCooldown(.seconds(3600)), .workers(1)) { origin, proxy in
            origin.goDown()
            for number in 0..<2 {
                let answer = try proxy.get("/\(number)")
                #expect(answer.status == 502)
            }
            let page = try proxy.admin.get("/metrics").wholeText
            #expect(Program.sum("coalesced_upstream_server_up", in: page) == 0)
            let help =
                "# HELP coalesced_upstream_server_up 1 if the server gets requests, at one of its addresses at least, otherwise 0."
            #expect(page.contains(help))
            try proxy.get("/2")
            let failures = try proxy.metric(.connectFailures)
            #expect(failures == 3, "it is asked all the same")
        }
    }

    @Test func `status and metrics report a failing server until it is back`() throws {
        try twoServers(.maxFailures(2), .failureCooldown(.seconds(1))) { first, second, proxy in
            func isUp(_ server: ScriptedOrigin) throws -> Int {
                try Int(
                    Program.sum(
                        "coalesced_upstream_server_up{server=\"\(server.url)\"}",
                        in: proxy.admin.get("/metrics").wholeText))
            }
            for number in 0..<4 { try proxy.get("/\(number)") }
            let atFirst = try proxy.servers()
            #expect(atFirst.map { $0["server"]?.string } == [first.url, second.url])
            #expect(
                atFirst.allSatisfy {
                    $0["state"]?.string == "up" && $0["state_seconds"] == nil && $0["next_try_seconds"] == nil
                }, "\(atFirst)")
            #expect(
                atFirst.allSatisfy { $0["in_use"]?.number == 0 && $0["idle"]?.number == 1 }, "\(atFirst)")
            #expect(try isUp(first) == 1 && isUp(second) == 1)
            let idle = try Program.sum(
                "coalesced_upstream_server_connections{upstream=\"origin\",state=\"idle\"}",
                in: proxy.admin.get("/metrics").wholeText)
            #expect(idle == 2)

            first.goDown()
            for number in 0..<5 { try proxy.get("/down/\(number)") }
            let down = try proxy.servers()
            #expect(down.map { $0["state"]?.string } == ["ejected", "up"], "\(down)")
            #expect(
                down[0]["reason"]?.string == "connect" && (0...9).contains(down[0]["state_seconds"]?.number ?? -1)
                    && down[0]["next_try_seconds"]?.number == 0, "\(down)")
            #expect(try isUp(first) == 0 && isUp(second) == 1)

            let again = try Self.comesBack(first)
            defer { again.stop() }
            try Self.askUntilBack(proxy)
            let back = try proxy.servers()
            #expect(
                back.allSatisfy { $0["state"]?.string == "up" }
                    && (0...9).contains(back[0]["state_seconds"]?.number ?? -1), "\(back)")
            #expect(try isUp(first) == 1)
        }
    }

    @Test func `a server that is back is used again after its cool-down`() throws {
        try twoServers(.maxFailures(1), .failureCooldown(.milliseconds(300))) { first, second, proxy in
            first.goDown()
            #expect(try proxy.get("/down").text == "second")
            let again = try Self.comesBack(first)
            defer { again.stop() }
            try Self.askUntilBack(proxy)
            #expect(
                try Set((0..<4).map { try proxy.get("/again/\($0)").text }) == ["back", "second"], "in turn, as before")
        }
    }

    @Test func `a client that leaves during the try of a server does not keep others from it`() throws {
        let cooldown = 6_000
        try twoServers(.maxFailures(1), .failureCooldown(.milliseconds(cooldown))) { first, second, proxy in
            first.goDown()
            let down = try proxy.get("/down").text
            #expect(down == "second")
            let again = try Self.comesBack(first)
            defer { again.stop() }
            let gate = Gate()
            again.on("/held") { _ in [.requestBody, .gate(gate), .answer(200)] }
            var trying: Conversation?
            try eventually("a request tries it", within: .seconds(20)) {
                let (client, asked) = try (proxy.connect(), second.total)
                // A request that is not copied is itself the try.
                try client.send(proxy.request("POST", "/held", body: "x"))
                try eventually("one of them is asked") { second.total > asked || again.total == 1 }
                trying = client
                return again.total == 1
            }
            let began = ContinuousClock.now
            trying?.reset()
            try Self.askUntilBack(proxy, within: .seconds(20))
            #expect(ContinuousClock.now - began < .milliseconds(cooldown / 2), "long before another cool-down is over")
            gate.open()
        }
    }

    @Test(.overHTTP1("it is about an upgrade")) func `a server that switches protocols is up again`() throws {
        let upgrade = ["Connection: Upgrade", "Upgrade: websocket"]
        try twoServers(.maxFailures(1), .failureCooldown(.milliseconds(100))) { first, second, proxy in
            first.goDown()
            #expect(try proxy.get("/down").text == "second")
            let again = try Self.comesBack(first)
            defer { again.stop() }
            for server in [again, second] { server.on("/ws") { _ in [UpgradeTunnelTests.switching, .echo] } }
            var clients: [Conversation] = []
            func upgradeOnce() throws {
                let client = try proxy.connect()
                try client.send(proxy.request("GET", "/ws", upgrade))
                let status = try client.answer().status
                #expect(status == 101)
                clients.append(client)
            }
            try eventually("it is asked", within: .seconds(5)) {
                try upgradeOnce()
                return again.count("/ws") == 1
            }
            let (ofFirst, ofSecond) = (again.count("/ws"), second.count("/ws"))
            for _ in 0..<8 { try upgradeOnce() }
            #expect(again.count("/ws") == ofFirst + 4 && second.count("/ws") == ofSecond + 4, "in turn, as before")
        }
    }

    @Test func `when all servers fail, requests are refused at once, and one that is back is found soon`() throws {
        try twoServers(.maxFailures(1), .failureCooldown(.seconds(3600))) { first, second, proxy in
            first.goDown()
            second.goDown()
            for number in 0..<3 {
                let answer = try proxy.get("/\(number)")
                #expect(answer.status == 503 && answer["retry-after"] == "300")
                #expect(answer["proxy-status"]?.contains("error=destination_unavailable") == true)
                #expect(answer["cache-status"]?.contains("detail=no-server") == true)
            }
            let again = try Self.comesBack(second)
            defer { again.stop() }
            try Self.askUntilBack(proxy)
            for number in 0..<3 {
                let answer = try proxy.get("/again/\(number)")
                #expect(answer.text == "back", "request \(number)")
            }
        }
    }

    @Test(arguments: [Step.close, .reset])
    func `a GET whose connection a server closes is sent to the other server once`(end: Step) throws {
        try twoServers(.maxFailures(1000), .accessLog) { first, second, proxy in
            first.on("*") { _ in [end] }
            let answers = try (0..<8).map { try proxy.get("/\($0)").text }
            #expect(answers == Array(repeating: "second", count: 8))
            #expect(first.total == 4 && second.total == 8)
            #expect(try proxy.metric(.retries) == 4)
            try eventually("eight lines") { try proxy.accessLog.count == 8 }
            #expect(try proxy.accessLog.allSatisfy { $0["upstream"]?.string == "127.0.0.1:\(second.port)" })

            second.on("*") { _ in [end] }
            #expect(try proxy.get("/both").status == 502)
            #expect(first.count("/both") == 1 && second.count("/both") == 1)
        }
    }

    @Test func `only an idempotent, complete request of whose response the client has seen nothing is sent twice`()
        throws
    {
        try twoServers(.maxFailures(1000)) { first, second, proxy in
            // Of two requests in a row, each server gets one.
            first.on("*") { _ in [.requestBody, .close] }
            func statuses(_ method: String, _ target: String, body: String? = nil) throws -> Set<Int> {
                Set(try (0..<2).map { _ in try proxy.send(method, target, body: body).status })
            }
            var all = try [
                statuses("POST", "/post"), statuses("PUT", "/content", body: "x"),
                // More than is read ahead.
                statuses("GET", "/content", body: String(repeating: "x", count: 100_000)),
            ]
            first.on("*") { _ in [.interim(103, "Link: </a>"), .close] }
            all.append(try statuses("GET", "/interim"))
            #expect(all == Array(repeating: [502, 200], count: 4))
            #expect(try proxy.metric(.retries) == 0 && first.total == 4 && second.total == 4)

            first.on("*") { _ in [.requestBody, .close] }
            all = try [statuses("DELETE", "/delete"), statuses("PUT", "/put"), statuses("GET", "/get")]
            first.on("*") { _ in [.bytes(Array("HTTP/1.1 2".utf8)), .close] }
            all.append(try statuses("GET", "/beginning"))
            first.on("*") { _ in [.bytes(Array("HTTP/1.1 two\r\n\r\n".utf8)), .close] }
            all.append(try statuses("GET", "/malformed"))
            #expect(all == Array(repeating: [200], count: 5))
            #expect(try proxy.metric(.retries) == 5 && first.total == 9 && second.total == 14)
        }
        try twoServers(.other(section: "upstream", key: "retry", value: "off")) { first, second, proxy in
            first.on("*") { _ in [.close] }
            let answers = try Set((0..<2).map { try proxy.get("/\($0)").status })
            #expect(answers == [502, 200] && first.total + second.total == 2)
        }
    }

    @Test func `an error response is a response`() throws {
        try twoServers(.maxFailures(1), .failureCooldown(.seconds(3600))) { first, _, proxy in
            first.on("*") { _ in [.answer(500, "Cache-Control: no-store", body: "error")] }
            let answers = try (0..<8).map { try proxy.get("/\($0)").status }
            #expect(answers == [500, 200, 500, 200, 500, 200, 500, 200])
        }
    }

    @Test func `an unsafe request that a server closes on is not sent to another, and counts as a failure`()
        throws
    {
        try twoServers(.maxFailures(2), .failureCooldown(.seconds(3600))) { first, _, proxy in
            first.on("*") { _ in [.requestBody, .close] }
            let answers = try (0..<8).map { try proxy.send("POST", "/\($0)", body: "x").status }
            #expect(answers == [502, 200, 502, 200, 200, 200, 200, 200])
            #expect(first.total == 2)
        }
    }
}
