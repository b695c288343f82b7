import Glibc
import Testing

/// `POST /drain` and `POST /undrain`: a server is taken out, and comes back, without a lost request.
@Suite(.scenario) struct DrainedServerTests {
    /// Two workers. Nothing is stored, so each request asks.
    private func twoServers(
        _ settings: Setting...,
        conversation: (_ first: ScriptedOrigin, _ second: ScriptedOrigin, _ proxy: Program) throws -> Void
    ) throws {
        let servers = try [ScriptedOrigin(), ScriptedOrigin()]
        defer { for server in servers { server.stop() } }
        for (server, name) in zip(servers, ["first", "second"]) {
            server.on("*") { _ in [.requestBody, .answer(200, "Cache-Control: no-store", body: name)] }
        }
        let proxy = try Program.serve(servers: servers.map(\.url), [.workers(2)] + settings)
        defer { proxy.stop() }
        try conversation(servers[0], servers[1], proxy)
    }

    private func drain(_ proxy: Program, _ line: String) throws -> Answer {
        try proxy.admin.send("POST", "/drain", body: line)
    }

    private func undrain(_ proxy: Program, _ line: String) throws -> Answer {
        try proxy.admin.send("POST", "/undrain", body: line)
    }

    /// The lines of the log with that text.
    private func count(_ proxy: Program, _ text: String) -> Int {
        proxy.diagnostics.split(separator: "\n").count { $0.contains(text) }
    }

    @Test func `a drained server gets no new requests, and those in flight go on`() throws {
        try twoServers { first, second, proxy in
            let gate = Gate()
            for server in [first, second] {
                server.on("/held") { _ in [.head(200, "Content-Length: 4"), .text("ab"), .gate(gate), .text("cd")] }
            }
            var held: [Crowd] = []
            repeat {
                held.append(proxy.crowd(1, get: "/held?\(held.count)"))
                try eventually("it is asked") { first.count("/held") + second.count("/held") == held.count }
            } while first.count("/held") == 0
            for number in 0..<20 { try proxy.get("/before/\(number)") }
            let answer = try drain(proxy, "origin \(first.url)")
            let name = "upstream origin: server \(first.url)"
            #expect(
                answer.status == 200 && answer.text == "\(name) is drained: 1 request is in flight there\n",
                "\(answer.text)")
            try eventually("the idle connections are closed") { first.openConnections == 1 }
            let before = first.total
            for number in 0..<20 { #expect(try proxy.get("/after/\(number)").text == "second") }
            #expect(first.total == before)
            gate.open()
            let texts = Set(held.flatMap { $0.finished().map(\.text) })
            #expect(texts == ["abcd"])
            try eventually("their connections are closed") { first.openConnections == 0 }
            #expect(
                try drain(proxy, "origin \(first.url)\n").text == "\(name) is drained: 0 requests are in flight there\n"
            )
            #expect(count(proxy, "\(name) is drained") == 1, "\(proxy.diagnostics)")
        }
    }

    @Test func `status and metrics report a drained server until it gets requests again`() throws {
        try twoServers { first, second, proxy in
            func server() throws -> JSON? { try proxy.servers().first }
            func metric(_ family: String, _ labels: String = "") throws -> Double {
                try Program.sum(
                    "coalesced_upstream_server_\(family){server=\"\(first.url)\"\(labels)}",
                    in: proxy.admin.get("/metrics").wholeText)
            }
            _ = try drain(proxy, "origin \(first.url)")
            let drained = try server()
            #expect(
                drained?["state"]?.string == "drained" && drained?["state_seconds"]?.number == 0,
                "\(String(describing: drained))")
            #expect(try metric("up") == 0 && metric("addresses", ",state=\"drained\"") == 1)
            #expect(try metric("addresses") == 1, "it has one state")
            let answer = try undrain(proxy, "origin \(first.url)")
            let name = "upstream origin: server \(first.url)"
            #expect(answer.status == 200 && answer.text == "\(name) gets requests again\n")
            #expect(
                try server()?["state"]?.string == "up" && metric("up") == 1 && metric("addresses", ",state=\"up\"") == 1
            )
            try eventually("it is asked") { try proxy.get("/again").text == "first" }
            #expect(count(proxy, "\(name) gets requests again") == 1)
            // Once more changes nothing, and is no news.
            #expect(try undrain(proxy, "origin \(first.url)").status == 200)
            #expect(count(proxy, "\(name) gets requests again") == 1)
        }
    }

    @Test func `draining under load loses no request`() throws {
        try twoServers { first, second, proxy in
            let crowd = proxy.crowd(64, get: "/load", keepsOpen: true)
            for round in 0..<20 {
                let statuses = Set(crowd.finished().map(\.status))
                #expect(statuses == [200], "round \(round)")
                crowd.again()
                let answer =
                    try round % 2 == 0 ? drain(proxy, "origin \(first.url)") : undrain(proxy, "origin \(first.url)")
                #expect(answer.status == 200)
            }
            let statuses = Set(crowd.finished().map(\.status))
            #expect(statuses == [200])
            crowd.close()
            #expect(first.total > 0 && second.total > 0)
        }
    }

    @Test func `a drained server stays drained over a reload that changes its upstream`() throws {
        try twoServers { first, second, proxy in
            _ = try drain(proxy, "origin \(first.url)")
            func reload(_ settings: [Setting]) throws {
                try System.write(
                    Setting.file([.workers(2)] + settings, servers: [second.url, first.url]),
                    to: proxy.configurationPath)
                let outcome = try proxy.admin.send("POST", "/reload", body: "")
                #expect(outcome.status == 200, "\(outcome.text)")
            }
            try reload([.maxFailures(7)])
            for number in 0..<10 { #expect(try proxy.get("/\(number)").text == "second") }
            #expect(try proxy.serverStates() == ["up", "drained"])
            _ = try undrain(proxy, "origin \(first.url)")
            try reload([.maxFailures(8)])
            try eventually("it is asked") { try proxy.get("/again").text == "first" }
        }
    }

    @Test func `requests in flight from before a reload are counted`() throws {
        try scenario(.workers(2)) { origin, proxy in
            let gate = Gate()
            origin.on("/held") { _ in [.gate(gate), .answer(200, body: "held")] }
            let held = proxy.crowd(1, get: "/held")
            try eventually("it is asked") { origin.count("/held") == 1 }
            for failures in 4...5 {
                try proxy.rewriteConfiguration(upstream: origin.url, .workers(2), .maxFailures(failures))
                #expect(try proxy.admin.send("POST", "/reload", body: "").status == 200)
            }
            #expect(try drain(proxy, "origin \(origin.url)").text.contains("1 request is in flight there"))
            #expect(try proxy.servers().first?["in_use"]?.number == 1)
            gate.open()
            #expect(held.finished().map(\.text) == ["held"])
            try eventually("none is left") {
                try drain(proxy, "origin \(origin.url)").text.contains("0 requests are in flight there")
            }
        }
    }

    @Test func `the last server may be drained, and the answer says what that means`() throws {
        try twoServers { first, second, proxy in
            _ = try drain(proxy, "origin \(first.url)")
            let answer = try drain(proxy, "origin \(second.url)")
            #expect(
                answer.text.hasSuffix(
                    "; no other server of the upstream is in use, so its requests get 503 or a stale response\n"),
                "\(answer.text)")
            let refused = try proxy.get("/x")
            #expect(refused.status == 503 && refused["retry-after"] != nil)
            #expect(first.total == 0 && second.total == 0)
            _ = try undrain(proxy, "origin \(second.url)")
            #expect(try proxy.get("/y").text == "second")
        }
    }

    @Test func `what is not understood is answered with what is needed, and changes nothing`() throws {
        try twoServers { first, second, proxy in
            let wrong: [(String, Int, String)] = [
                ("", 400, "Send one line"), ("origin", 400, "Send one line"), (" \n", 400, "Send one line"),
                ("origin \(first.url)\norigin \(second.url)", 400, "Send one line"),
                ("other \(first.url)", 404, "there is no such upstream; there are: origin\n"),
                (
                    "origin http://127.0.0.1:1", 404,
                    "upstream origin has no such server; it has: \(first.url), \(second.url)"
                ),
                ("origin \(first.url) \(second.url)", 404, "has no such server"),
            ]
            for page in ["/drain", "/undrain"] {
                for (body, status, text) in wrong {
                    let answer = try proxy.admin.send("POST", page, body: body)
                    #expect(answer.status == status && answer.text.contains(text), "\(body): \(answer.text)")
                }
                let read = try proxy.admin.get(page)
                #expect(read.status == 405 && read["allow"] == "POST")
                let foreign = try proxy.admin.send(
                    "POST", page, "Origin: http://evil.example", "Host: localhost", body: "origin \(first.url)")
                #expect(foreign.status == 403)
            }
            #expect(try proxy.serverStates() == ["up", "up"])
            // As a configuration file may have it, too.
            #expect(try drain(proxy, "origin \(first.url.uppercased())/").status == 200)
            #expect(try undrain(proxy, "origin 127.0.0.1:\(first.port)").status == 200, "its address")
            #expect(try proxy.servers().first?["state"]?.string == "up")
        }
    }

    @Test func `a read-only admin listener drains nothing`() throws {
        try twoServers(.other(section: "admin", key: "purge", value: "false")) { first, _, proxy in
            let answer = try drain(proxy, "origin \(first.url)")
            #expect(answer.status == 403 && answer.text.contains("admin.purge"))
            #expect(try proxy.servers().first?["state"]?.string == "up")
        }
    }

    @Test(.enabled(if: OwnNetwork.isToBeHad), .originsInTheClear("the URLs of the names are of http"))
    func `one address of a name is drained, and stays so when the name is looked up again`() throws {
        let first = try ScriptedOrigin()
        let second = try ScriptedOrigin(port: first.port, last: 2)
        defer { for server in [first, second] { server.stop() } }
        for (server, name) in [(first, "first"), (second, "second")] {
            server.on("*") { _ in [.answer(200, "Cache-Control: no-store", body: name)] }
        }
        let proxy = try Program.serve(
            servers: ["http://app.test:\(first.port)"],
            [.workers(2)],
            in: OwnNetwork(
                hosts: "127.0.0.1 app.test\n127.0.0.2 app.test\n", nameServers: "nameserver 127.0.0.1\n", isShared: true
            ))
        defer { proxy.stop() }
        try eventually("both are asked") { try proxy.get("/x").text == "second" }
        let address = "127.0.0.2:\(first.port)"
        let answer = try drain(proxy, "origin \(address)")
        #expect(answer.text.hasPrefix("upstream origin: address \(address) is drained: 0 requests"), "\(answer.text)")
        for number in 0..<10 { #expect(try proxy.get("/\(number)").text == "first") }
        let server = try proxy.servers().first
        #expect(
            server?["state"]?.string == "up"
                && server?["addresses"]?.each("state") == [.string("up"), .string("drained")])
        proxy.signal(SIGHUP)
        try eventually("it is reloaded") { proxy.diagnostics.contains("reloaded ") }
        for number in 0..<10 { #expect(try proxy.get("/again/\(number)").text == "first") }
        let unknown = try undrain(proxy, "origin 127.0.0.3:\(first.port)")
        #expect(
            unknown.status == 404
                && unknown.text.contains("app.test:\(first.port), 127.0.0.1:\(first.port), \(address)"))
        // The server is all of its addresses.
        _ = try undrain(proxy, "origin http://app.test:\(first.port)")
        try eventually("it is asked again") { try proxy.get("/x").text == "second" }
    }
}
