import Testing

/// An upstream with two servers: asked in turn, passed over while they fail.
@Suite(.scenario) struct ServersTests {
    /// One worker: each keeps its own turns. Nothing is stored, so each request asks.
    private func twoServers(
        _ settings: Setting..., conversation: (_ first: ScriptedOrigin, _ second: ScriptedOrigin, _ proxy: Program) throws -> Void
    ) throws {
        let servers = try [ScriptedOrigin(), ScriptedOrigin()]
        defer { for server in servers { server.stop() } }
        for (server, name) in zip(servers, ["first", "second"]) { Self.answer(server, name) }
        let proxy = try Program.serve(servers: servers.map(\.url), [.workers(1)] + settings)
        defer { proxy.stop() }
        try conversation(servers[0], servers[1], proxy)
    }

    private static func answer(_ server: ScriptedOrigin, _ name: String) {
        server.on("*") { _ in [.requestBody, .answer(200, "Cache-Control: no-store", body: name)] }
    }

    @Test func `servers are asked in turn`() throws {
        try twoServers { first, second, proxy in
            let answers = try (0..<8).map { try proxy.get("/\($0)").text }
            #expect(answers == ["first", "second", "first", "second", "first", "second", "first", "second"])
            #expect(first.total == 4 && second.total == 4)
        }
    }

    @Test func `one that is down costs nobody an answer, not even a POST, and is left alone after so many failures`() throws {
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

    @Test func `one that comes back is asked again after its cool-down`() throws {
        try twoServers(.maxFailures(1), .failureCooldown(.milliseconds(300))) { first, second, proxy in
            first.goDown()
            #expect(try proxy.get("/down").text == "second")
            let again = try ScriptedOrigin(port: first.port)
            defer { again.stop() }
            Self.answer(again, "back")
            var round = 0
            try eventually("it is asked", within: .seconds(5)) {
                round += 1
                return try proxy.get("/\(round)").text == "back"
            }
            #expect(try Set((0..<4).map { try proxy.get("/again/\($0)").text }) == ["back", "second"], "in turn, as before")
        }
    }

    @Test func `when all are left alone they are asked all the same`() throws {
        try twoServers(.maxFailures(1), .failureCooldown(.seconds(3600))) { first, second, proxy in
            first.goDown()
            second.goDown()
            for number in 0..<3 {
                let answer = try proxy.get("/\(number)")
                #expect(answer.status == 502 && answer["proxy-status"] != nil)
            }
            let again = try ScriptedOrigin(port: second.port)
            defer { again.stop() }
            Self.answer(again, "back")
            for number in 0..<3 {
                let answer = try proxy.get("/again/\(number)")
                #expect(answer.text == "back", "request \(number)")
            }
        }
    }

    @Test func `an answer with an error is an answer`() throws {
        try twoServers(.maxFailures(1), .failureCooldown(.seconds(3600))) { first, _, proxy in
            first.on("*") { _ in [.answer(500, "Cache-Control: no-store", body: "error")] }
            let answers = try (0..<8).map { try proxy.get("/\($0)").status }
            #expect(answers == [500, 200, 500, 200, 500, 200, 500, 200])
        }
    }

    @Test func `one that closes without an answer is left alone too, but nobody else is asked what it may have done`() throws {
        try twoServers(.maxFailures(2), .failureCooldown(.seconds(3600))) { first, _, proxy in
            first.on("*") { _ in [.requestBody, .close] }
            let answers = try (0..<8).map { try proxy.send("POST", "/\($0)", body: "x").status }
            #expect(answers == [502, 200, 502, 200, 200, 200, 200, 200])
            #expect(first.total == 2)
        }
    }
}
