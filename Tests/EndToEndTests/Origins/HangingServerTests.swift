import Testing

/// One of two servers accepts connections and never answers, with two workers.
@Suite(.scenario) struct HangingServerTests {
    private func serve(
        _ settings: Setting..., conversation: (_ hanging: ScriptedOrigin, _ proxy: Program) throws -> Void
    ) throws {
        let servers = try [ScriptedOrigin(), ScriptedOrigin()]
        defer { for server in servers { server.stop() } }
        servers[0].on("*") { _ in [.requestBody, .silence] }
        servers[1].on("*") { _ in [.requestBody, .answer(200, "Cache-Control: no-store", body: "1")] }
        let proxy = try Program.serve(
            servers: servers.map(\.url), [.workers(2), .firstByteTimeout(.seconds(1))] + settings)
        defer { proxy.stop() }
        try conversation(servers[0], proxy)
    }

    @Test func `three requests wait for it, and none for the probes that follow`() throws {
        try serve(.failureCooldown(.milliseconds(100))) { hanging, proxy in
            var times: [Duration] = []
            try eventually("there were three requests and three probes", within: .seconds(60)) {
                let answer = try proxy.get("/\(times.count)", "Cookie: a=b")
                #expect(answer.status == 200)
                times.append(answer.took)
                return hanging.total >= 6
            }
            let late = times.indices.filter { times[$0] >= .seconds(1) }
            note("requests of \(times.count) that waited for a server that hangs", late)
            // The copies have no cookie. What else waited, if anything, waited for this machine.
            let asked = (0..<times.count).flatMap { hanging.requests("/\($0)") }
            #expect(asked.count { $0["cookie"] != nil } == 3 && asked.count { $0["cookie"] == nil } >= 3)
            #expect(late.count >= 3 && times.allSatisfy { $0 < .seconds(1) + aStall })
        }
    }

    @Test func `of a hundred requests a second none fails`() throws {
        try serve { hanging, proxy in
            let crowds = (0..<30).map { round in
                System.nap(.milliseconds(100))
                return Crowd(at: proxy.endpoint, (0..<10).map { proxy.visitor("/\(round)/\($0)") })
            }
            let answers = crowds.flatMap { $0.finished() }
            #expect(answers.allSatisfy { $0.status == 200 })
            let late = answers.count { $0.took >= .seconds(1) }
            note("requests of \(answers.count) that waited for a server that hangs", late)
            // Those of the first second: more than the budget of retries.
            #expect(hanging.total > 35 && hanging.total <= late, "\(hanging.total)")
        }
    }
}
