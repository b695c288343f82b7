import Glibc
import Testing

/// A server whose name has several addresses: each is a place to connect to.
@Suite(.scenario, .enabled(if: OwnNetwork.isToBeHad), .originsInTheClear("the URLs of the names are of http"))
struct ServerAddressTests {
    /// Origins at 127.0.0.1, 127.0.0.2 and so on, at one port; their names are their last numbers.
    private func origins(_ numbers: ClosedRange<UInt8>, port: UInt16 = 0) throws -> [ScriptedOrigin] {
        var origins: [ScriptedOrigin] = []
        for last in numbers {
            let origin = try ScriptedOrigin(port: origins.first?.port ?? port, last: last)
            origin.on("*") { _ in [.requestBody, .answer(200, "Cache-Control: no-store", body: "\(last)")] }
            origins.append(origin)
        }
        return origins
    }

    /// In front of one server with that name, in a hosts file. One worker: each has turns of its own.
    private func serve(_ hosts: String, port: UInt16, _ settings: Setting...) throws -> Program {
        try Program.serve(
            servers: ["http://app.test:\(port)"], [.workers(1)] + settings,
            in: OwnNetwork(hosts: hosts, nameServers: "nameserver 127.0.0.1\n", isShared: true))
    }

    private func hosts(_ numbers: ClosedRange<Int>) -> String {
        numbers.map { "127.0.0.\($0) app.test\n" }.joined()
    }

    /// Addresses of the first server as `/status` tells them.
    private func addresses(_ proxy: Program) throws -> [JSON] {
        try proxy.servers().first?["addresses"]?.elements ?? []
    }

    /// A port of 127.0.0.1 where nobody accepts: two connections fill it, and the kernel drops what comes then.
    private func withDeadPort(_ body: (UInt16) throws -> Void) throws {
        let (listener, port) = try Socket.listen(backlog: 0)
        defer { Socket.close(listener) }
        let fillers = try (0..<4).map { _ in try Socket.connect(to: .tcp(port)) }
        defer { for filler in fillers { Socket.close(filler) } }
        try body(port)
    }

    @Test func `all addresses are used in turn, and each keeps its connection`() throws {
        let origins = try origins(1...3)
        defer { for origin in origins { origin.stop() } }
        let proxy = try serve(hosts(1...3), port: origins[0].port)
        defer { proxy.stop() }
        for number in 0..<60 { #expect(try proxy.get("/\(number)").status == 200) }
        #expect(origins.map(\.total) == [20, 20, 20])
        #expect(origins.map(\.acceptedConnections) == [1, 1, 1])
        let seen = try addresses(proxy)
        let expected = (1...3).map { "127.0.0.\($0):\(origins[0].port)" }
        #expect(seen.map { $0["address"]?.string } == expected)
        #expect(seen.map { $0["idle"]?.number } == [1, 1, 1])
        #expect(seen.map { $0["state"]?.string } == ["up", "up", "up"])
    }

    @Test func `an unreachable address delays one request by a quarter of a second, and is not used then`() throws {
        try withDeadPort { port in
            let origins = try origins(2...3, port: port)
            defer { for origin in origins { origin.stop() } }
            let proxy = try serve(
                hosts(1...3), port: port, .connectTimeout(.seconds(60)), .failureCooldown(.seconds(3600)))
            defer { proxy.stop() }
            // Of methods that may not be repeated, too: nobody has heard of the request.
            let answers = try (0..<30).map { number in
                try number % 2 == 0 ? proxy.send("POST", "/\(number)", body: "x") : proxy.get("/\(number)")
            }
            #expect(answers.allSatisfy { $0.status == 200 })
            let times = answers.map { Int($0.took.inMilliseconds) }
            let slow = times.count { $0 >= 240 }
            // A busy machine may be slow once or twice; each third request would be, if it were not remembered.
            #expect(slow >= 1 && slow <= 4, "\(times)")
            #expect(times.allSatisfy { $0 < 250 + Int(aStall.inMilliseconds) })
            let totals = origins.map(\.total)
            #expect(totals.reduce(0, +) == 30 && totals.allSatisfy { $0 >= 14 })
            let seen = try addresses(proxy)
            #expect(seen.map { $0["state"]?.string } == ["ejected", "up", "up"])
            try eventually("the operator is told") {
                proxy.diagnostics.contains("address 127.0.0.1:\(port) of server http://app.test:\(port) not used for")
            }
        }
    }

    @Test func `the wait for several unreachable addresses is not the sum of their waits`() throws {
        try withDeadPort { port in
            let more = try (2...3).map { try Socket.listen(port: port, last: UInt8($0), backlog: 0).descriptor }
            defer { for listener in more { Socket.close(listener) } }
            let fillers = try (0..<8).map { try Socket.connect(to: .tcp(port), last: UInt8(2 + $0 % 2)) }
            defer { for filler in fillers { Socket.close(filler) } }
            let proxy = try serve(hosts(1...3), port: port, .connectTimeout(.seconds(2)))
            defer { proxy.stop() }
            let answer = try proxy.get("/x")
            #expect(
                answer.status == 503 && answer.took > .milliseconds(2400) && answer.took < .milliseconds(2500) + aStall)
        }
    }

    @Test func `an address that refuses costs no client a response, and is used again when it is back`() throws {
        let origins = try origins(1...2)
        defer { for origin in origins { origin.stop() } }
        let proxy = try serve(hosts(1...2), port: origins[0].port, .failureCooldown(.milliseconds(300)))
        defer { proxy.stop() }
        origins[0].goDown()
        for number in 0..<10 { #expect(try proxy.get("/\(number)").text == "2") }
        let again = try self.origins(1...1, port: origins[0].port)[0]
        defer { again.stop() }
        try eventually("it is used again") { try proxy.get("/back").text == "1" }
        let turns = try (0..<6).map { try proxy.get("/\($0)").text }
        #expect(turns.count { $0 == "1" } == 3)
        try eventually("the operator is told") {
            proxy.diagnostics.contains("of server http://app.test:\(origins[0].port) is back after")
        }
    }

    @Test func `an address whose responses break off is not used after as many failures as a server`() throws {
        let origins = try origins(1...3)
        defer { for origin in origins { origin.stop() } }
        let proxy = try serve(
            hosts(1...3), port: origins[0].port, .maxFailures(2), .failureCooldown(.seconds(3600)))
        defer { proxy.stop() }
        origins[1].on("*") { _ in [.close] }
        let statuses = try (0..<30).map { try proxy.send("POST", "/\($0)", body: "x").status }
        #expect(statuses.count { $0 == 502 } == 2)
        #expect(origins[1].total == 2)
    }

    @Test func `a safe request to an address that closes without a response goes to the next one`() throws {
        let origins = try origins(1...2)
        defer { for origin in origins { origin.stop() } }
        let proxy = try serve(hosts(1...2), port: origins[0].port)
        defer { proxy.stop() }
        origins[0].on("*") { _ in [.close] }
        for number in 0..<4 { #expect(try proxy.get("/\(number)").text == "2") }
    }

    @Test func `a client that leaves while two addresses are tried leaves no connection behind`() throws {
        try withDeadPort { port in
            let second = try Socket.listen(port: port, last: 2, backlog: 0).descriptor
            let fillers = try (0..<4).map { _ in try Socket.connect(to: .tcp(port), last: 2) }
            defer { for descriptor in fillers + [second] { Socket.close(descriptor) } }
            let proxy = try serve(
                hosts(1...2), port: port, .connectTimeout(.seconds(600)), .whenLastLeaves("cancel"))
            defer { proxy.stop() }
            var descriptors: Int { System.list("/proc/\(proxy.child)/fd").count }
            let before = descriptors
            let client = try proxy.connect()
            try client.send(proxy.request("GET", "/leaves", ["Host: a"]))
            try eventually("both are tried") { descriptors == before + 3 }
            client.close()
            try eventually("nothing is left") { descriptors == before }
        }
    }
}
