import Glibc
import Testing

/// What `/status`, the metrics and the log tell of each server, with two workers that share what they know.
@Suite(.scenario) struct ServerStateTests {
    private func twoServers(
        _ settings: Setting...,
        conversation: (_ first: ScriptedOrigin, _ second: ScriptedOrigin, _ proxy: Program) throws -> Void
    ) throws {
        let servers = try [ScriptedOrigin(), ScriptedOrigin()]
        defer { for server in servers { server.stop() } }
        for (server, name) in zip(servers, ["first", "second"]) { Self.answer(server, name) }
        let proxy = try Program.serve(servers: servers.map(\.url), [.workers(2)] + settings)
        defer { proxy.stop() }
        try conversation(servers[0], servers[1], proxy)
    }

    private static func answer(_ server: ScriptedOrigin, _ name: String) {
        server.on("*") { _ in [.requestBody, .answer(200, "Cache-Control: no-store", body: name)] }
    }

    private func state(_ proxy: Program) throws -> String? { try proxy.serverStates().first ?? nil }

    /// The sum of the samples of a family, whose name begins with `coalesced_upstream_`.
    private func metric(_ family: String, _ proxy: Program) throws -> Double {
        try Program.sum("coalesced_upstream_\(family)", in: proxy.admin.get("/metrics").wholeText)
    }

    /// Asks with ever new targets until `condition` holds.
    private func ask(_ proxy: Program, _ what: String, until condition: () throws -> Bool) throws {
        var round = 0
        try eventually(what) {
            round += 1
            try proxy.get("/ask/\(round)")
            return try condition()
        }
    }

    @Test func `an ejected server is told with the reason, and when it is tried again`() throws {
        try twoServers(.maxFailures(3), .failureCooldown(.seconds(3600))) { first, second, proxy in
            first.on("*") { _ in [.answer(503, "Cache-Control: no-store")] }
            try ask(proxy, "it is ejected") { try state(proxy) == "ejected" }
            let servers = try proxy.servers()
            let label = "{server=\"\(first.url)\""
            #expect(servers[0]["reason"]?.string == "503", "\(servers)")
            #expect((3590...3600).contains(servers[0]["next_try_seconds"]?.number ?? -1), "\(servers)")
            #expect((0...9).contains(servers[0]["state_seconds"]?.number ?? -1), "\(servers)")
            #expect(servers[1]["state"]?.string == "up" && servers[1]["reason"] == nil, "\(servers)")
            let told = JSON.array(servers)
            #expect(
                told.each("weight") == [.number(1), .number(1)] && told.each("backup") == [.bool(false), .bool(false)])
            for absent in ["last_check", "in_flight", "addresses"] {
                #expect(told.each(absent) == [nil, nil], "\(absent)")
            }
            #expect(try metric("server_up\(label)}", proxy) == 0 && metric("server_up", proxy) == 1)
            #expect(try metric("server_addresses\(label),state=\"ejected\"}", proxy) == 1)
            #expect(try metric("server_addresses{state=\"up\"}", proxy) == 1)
            #expect(try metric("ejections_total{upstream=\"origin\"}", proxy) == 1)
            let line =
                "upstream origin: server \(first.url) not used for 3600.0 seconds after 3 failures in a row, the last one: answered 503"
            let lines = proxy.diagnostics.split(separator: "\n").count { $0.hasSuffix(line) }
            #expect(lines == 1, "\(proxy.diagnostics)")
            #expect(!proxy.diagnostics.contains("server \(second.url)"), "\(proxy.diagnostics)")
        }
    }

    @Test func `a probe under way, and the growing share after it, are told`() throws {
        try twoServers(
            .maxFailures(1), .failureCooldown(.milliseconds(100)),
            .other(section: "upstream", key: "slow-start", value: "1h")
        ) { first, _, proxy in
            first.on("*") { _ in [.answer(503, "Cache-Control: no-store")] }
            try ask(proxy, "it is ejected") { try state(proxy) == "ejected" }
            let gate = Gate()
            first.on("*") { _ in [.gate(gate), .answer(200, "Cache-Control: no-store", body: "first")] }
            var probes: [Crowd] = []
            let before = first.total
            try eventually("a request is the probe") {
                let probe = proxy.crowd(1, get: "/probe/\(probes.count)")
                probes.append(probe)
                try eventually("it is answered, or held") { probe.pending == 0 || first.total > before }
                return first.total > before
            }
            #expect(try state(proxy) == "probing" && metric("server_up", proxy) == 1)
            gate.open()
            let statuses = Set(probes.flatMap { $0.finished().map(\.status) })
            #expect(statuses == [200])
            try eventually("it is back") { try state(proxy) == "slow-start" }
            let server = try proxy.servers().first
            #expect(server?["reason"]?.string == "503")
            #expect(try metric("server_up", proxy) == 2 && metric("server_addresses{state=\"slow-start\"}", proxy) == 1)
            #expect(
                proxy.diagnostics.matches(of: /server https?:.* is back after/).count == 1, "\(proxy.diagnostics)")
        }
    }

    @Test func `retries that the budget does not allow are counted`() throws {
        try twoServers(
            .maxFailures(1000), .other(section: "upstream", key: "retry", value: "{budget: 0%}")
        ) { first, second, proxy in
            let gate = Gate()
            first.on("*") { _ in [.answer(503, "Cache-Control: no-store")] }
            second.on("*") { _ in [.gate(gate), .answer(200, "Cache-Control: no-store")] }
            let crowds = (0..<100).map { proxy.crowd(1, get: "/\($0)") }
            // 30 retries in ten seconds are always allowed. Each loop gives both servers their turns.
            try eventually("some are refused") { try metric("retries_refused_total{upstream=\"origin\"}", proxy) >= 1 }
            try eventually("their requests have the first answer, and 30 are sent again") {
                let refused = try metric("retries_refused_total", proxy)
                return try proxy.metric(.retries) == 30 && Double(crowds.count { $0.pending == 0 }) == refused
                    && first.total == Int(refused) + 30
            }
            gate.open()
            let statuses = crowds.flatMap { $0.finished().map(\.status) }
            #expect(Set(statuses) == [200, 503])
            let refused = statuses.count { $0 == 503 }
            #expect(try refused == Int(metric("retries_refused_total", proxy)))
        }
    }

    @Test func `the share of each server, and the requests in flight that a balance counts, are told`() throws {
        let servers = try [ScriptedOrigin(), ScriptedOrigin()]
        defer { for server in servers { server.stop() } }
        let gate = Gate()
        for server in servers { server.on("*") { _ in [.gate(gate), .answer(200)] } }
        let proxy = try Program.serve(
            file: """
                workers: 2
                upstreams:
                  - name: origin
                    servers: [{url: "\(servers[0].url)", weight: 7}, {url: "\(servers[1].url)", backup: true}]
                    balance: least-requests

                """)
        defer { proxy.stop() }
        let crowds = (0..<3).map { proxy.crowd(1, get: "/\($0)") }
        try eventually("they are in flight") { servers[0].total == 3 }
        let told = JSON.array(try proxy.servers())
        #expect(told.each("weight") == [.number(7), .number(1)] && told.each("backup") == [.bool(false), .bool(true)])
        #expect(told.each("in_flight") == [.number(3), .number(0)] && told.each("in_use") == [.number(3), .number(0)])
        gate.open()
        for crowd in crowds { _ = crowd.finished() }
        try eventually("none is left") { try proxy.servers().allSatisfy { $0["in_flight"]?.number == 0 } }
    }

    @Test func `a server that is down by its checks is told with the last one`() throws {
        try twoServers(
            .failureCooldown(.seconds(3600)),
            .other(section: "upstream", key: "health", value: "{path: /up, interval: 200ms, failures: 2, successes: 1}")
        ) { first, _, proxy in
            try eventually("both are checked") {
                try proxy.servers().allSatisfy {
                    $0["last_check"]?["succeeded"] == .bool(true) && $0["state"]?.string == "up"
                }
            }
            first.on("/up") { _ in [.answer(500)] }
            try eventually("it is down") { try state(proxy) == "down" }
            let server = try proxy.servers().first
            let check = server?["last_check"]
            #expect(
                check?["succeeded"] == .bool(false) && check?["reason"]?.string == "500",
                "\(String(describing: server))")
            #expect((0...9).contains(check?["seconds"]?.number ?? -1) && server?["next_try_seconds"]?.number == 0)
            #expect(server?["reason"]?.string == "check: 500")
            #expect(try metric("server_up", proxy) == 1 && metric("server_addresses{state=\"down\"}", proxy) == 1)
            #expect(try metric("checks_total{outcome=\"failure\"}", proxy) >= 2)
            #expect(try metric("checks_total{upstream=\"origin\",outcome=\"success\"}", proxy) >= 2)
            first.on("/up") { _ in [.answer(200)] }
            try eventually("it is back") { try state(proxy) == "up" }
            #expect(try metric("server_up", proxy) == 2 && metric("ejections_total", proxy) == 0)
        }
    }
}
