import Testing

/// What may happen while the rest of a body is requested.
@Suite(.scenario) struct TroubledResumptionTests {
    private static let length = 900_000
    private static let file = BreakingFile(length: length, cuts: [300_000])

    /// The requests number 2 up to `last` get these steps.
    private static func troubled(_ steps: [Step], upTo last: Int) -> ScriptedOrigin.Handler {
        { 2...last ~= $0.number ? steps : file.steps($0) }
    }

    static let troubles: [[Step]] = [
        [.answer(503, "Retry-After: 1", body: "busy")], [.answer(502)], [.answer(504)], [.close], [.reset],
        // It breaks off once more, without a byte.
        [BreakingFile.head(of: 300_000..<900_000, length, file.fields), .close],
    ]

    @Test(arguments: troubles) func `an origin in trouble is asked again`(steps: [Step]) throws {
        try scenario(.workers(2), .firstByteTimeout(.milliseconds(500)), .noProgressTimeout(.milliseconds(500))) {
            origin, proxy in
            origin.on("/x", Self.troubled(steps, upTo: 3))
            #expect(proxy.crowd(5, get: "/x").finished().allSatisfy { $0.isWhole(Self.length) })
            // A new connection that is closed before a response is not tried again by the exchange: one server.
            #expect(origin.requests("/x").map { $0["range"] } == [nil] + Array(repeating: "bytes=300000-", count: 3))
            let hit = try proxy.get("/x")
            #expect(hit.cacheStatus.contains("hit"))
        }
    }

    @Test(arguments: [[Step.silence], [BreakingFile.head(of: 300_000..<900_000, length, file.fields), .silence]])
    func `an origin that hangs is asked once, since its readers wait`(steps: [Step]) throws {
        try scenario(.workers(2), .firstByteTimeout(.milliseconds(500)), .noProgressTimeout(.milliseconds(500))) {
            origin, proxy in
            origin.on("/x", Self.troubled(steps, upTo: 100))
            let answers = proxy.crowd(5, get: "/x").finished()
            #expect(answers.allSatisfy { !$0.isClean && $0.body.length == 300_000 && $0.body.isIntact })
            #expect(origin.count("/x") == 2)
            #expect(answers.map(\.took).max()! < .milliseconds(500) + aStall)
        }
    }

    @Test(arguments: [[Step.answer(503)], [Step.close]])
    func `an origin that stays in trouble is asked five times`(steps: [Step]) throws {
        try scenario(.workers(2), .firstByteTimeout(.milliseconds(200))) { origin, proxy in
            origin.on("/x", Self.troubled(steps, upTo: 100))
            let answers = proxy.crowd(5, get: "/x").finished()
            #expect(answers.allSatisfy { !$0.isClean && $0.body.length == 300_000 && $0.body.isIntact })
            try #require(origin.count("/x") == 6)
            // 0, 100, 200, 400 and 800 ms.
            let times = origin.requests("/x").map(\.at)
            #expect(times[5] - times[1] >= .milliseconds(1_450))
            #expect(answers.map(\.took).max()! < .seconds(3) + aStall)
            // What came is a part, as of any origin that breaks off.
            origin.on("/x") { BreakingFile(length: Self.length).steps($0) }
            let again = try proxy.get("/x")
            #expect(again.isWhole(Self.length))
            #expect(origin.requests("/x").last?["range"] == "bytes=300000-")
        }
    }

    @Test func `many bodies that break off at once all go on, although the origin is in trouble for a moment`() throws {
        try scenario(.workers(2)) { origin, proxy in
            for page in 0..<40 { origin.on("/\(page)", Self.troubled([.answer(503)], upTo: 3)) }
            let crowds = (0..<40).map { proxy.crowd(1, get: "/\($0)") }
            #expect(crowds.allSatisfy { $0.finished().allSatisfy { $0.isWhole(Self.length) } })
        }
    }

    @Test func `an origin that is down for a moment is asked once it is back`() throws {
        try scenario(.workers(1)) { origin, proxy in
            let gate = Gate()
            origin.on("/x") { _ in
                [.head(200, Self.file.fields + ["Content-Length: 900000"]), .pattern(0..<300_000), .gate(gate)]
            }
            let client = try proxy.connect()
            try client.send(proxy.request("GET", "/x"))
            try client.progress { $0.body.length == 300_000 }
            origin.goDown()
            try eventually("it was tried") { try proxy.metric(.connectFailures) >= 2 }
            let again = try ScriptedOrigin(port: origin.port)
            defer { again.stop() }
            again.on("/x", BreakingFile(length: Self.length).steps)
            #expect(try client.answer().isWhole(Self.length))
            #expect(again.requests("/x").map { $0["range"] } == ["bytes=300000-"])
        }
    }

    @Test func `another server goes on where the first one broke off`() throws {
        let (first, second) = (try ScriptedOrigin(), try ScriptedOrigin())
        defer { for origin in [first, second] { origin.stop() } }
        let gate = Gate()
        for origin in [first, second] {
            origin.on("/x") { request in
                request["range"] == nil
                    ? [.head(200, Self.file.fields + ["Content-Length: 900000"]), .pattern(0..<300_000), .gate(gate)]
                    : BreakingFile(length: Self.length).steps(request)
            }
        }
        let proxy = try Program.serve(servers: [first.url, second.url], [.workers(1)])
        defer { proxy.stop() }
        let client = try proxy.connect()
        try client.send(proxy.request("GET", "/x"))
        try client.progress { $0.body.length == 300_000 }
        let (down, up) = first.count("/x") == 1 ? (first, second) : (second, first)
        down.goDown()
        #expect(try client.answer().isWhole(Self.length))
        #expect(up.requests("/x").map { $0["range"] } == ["bytes=300000-"])
    }

    @Test func `each time, the server that sent the beginning is asked first`() throws {
        let servers = (try ScriptedOrigin(), try ScriptedOrigin())
        defer { for origin in [servers.0, servers.1] { origin.stop() } }
        for origin in [servers.0, servers.1] {
            origin.on("/x") { request in
                switch (request["range"], request.number) {
                case (nil, _): Self.file.steps(request)
                case ("bytes=300000-", 1): BreakingFile(length: Self.length, cuts: [600_000]).steps(request)
                case ("bytes=300000-", _): [.answer(503)]
                default: BreakingFile(length: Self.length).steps(request)
                }
            }
        }
        let proxy = try Program.serve(servers: [servers.0.url, servers.1.url], [.workers(1)])
        defer { proxy.stop() }
        let answer = try proxy.get("/x")
        #expect(answer.isWhole(Self.length))
        let (source, other) = servers.0.count("/x") > 1 ? servers : (servers.1, servers.0)
        #expect(source.requests("/x").map { $0["range"] } == [nil, "bytes=300000-", "bytes=600000-"])
        #expect(other.requests("/x").map { $0["range"] } == ["bytes=300000-"])
    }

    /// A scenario in which the rest is requested and not answered before the gate is open.
    private func whileResuming(
        _ settings: Setting..., body: (ScriptedOrigin, Program, Gate) throws -> Void
    ) throws {
        try scenario(settings: settings) { origin, proxy in
            let gate = Gate()
            origin.on("/x") { ($0.number == 2 ? [.gate(gate)] : []) + Self.file.steps($0) }
            try body(origin, proxy, gate)
        }
    }

    @Test func `after a purge the readers get all of it, and it is not stored`() throws {
        try whileResuming(.workers(2)) { origin, proxy, gate in
            let crowd = proxy.crowd(5, get: "/x")
            try eventually("the rest is requested") { origin.count("/x") == 2 }
            #expect(try (200..<300).contains(proxy.purge("http://\(proxy.host)/x").status))
            gate.open()
            #expect(crowd.finished().allSatisfy { $0.isWhole(Self.length) })
            #expect(try proxy.get("/x").isWhole(Self.length))
            #expect(origin.requests("/x").map { $0["range"] } == [nil, "bytes=300000-", nil])
        }
    }

    @Test func `the request for the rest ends with the last client`() throws {
        try whileResuming(.workers(2), .whenLastLeaves("cancel")) { origin, proxy, gate in
            let crowd = proxy.crowd(3, get: "/x")
            try eventually("the rest is requested") { origin.count("/x") == 2 }
            for index in 0..<3 { crowd.leave(index) }
            try eventually("it is abandoned") {
                try origin.requests("/x")[1].wasAbandoned && proxy.metric(.inFlight) == 0
            }
            gate.open()
        }
    }

    @Test func `the wait before the next request ends with the last client`() throws {
        try scenario(.workers(1), .whenLastLeaves("cancel")) { origin, proxy in
            origin.on("/x", Self.troubled([.answer(503)], upTo: 100))
            let client = try proxy.connect()
            try client.send(proxy.request("GET", "/x"))
            try eventually("it is asked for the third time") { origin.count("/x") == 4 }
            client.reset()
            try eventually("no fetch is left") { try proxy.metric(.inFlight) == 0 }
            let before = origin.count("/x")
            System.nap(.milliseconds(900))
            #expect(origin.count("/x") == before)
        }
    }

    @Test func `a fetch that outlives its clients is resumed and stored`() throws {
        try whileResuming(.workers(1), .whenLastLeaves("finish")) { origin, proxy, gate in
            let crowd = proxy.crowd(1, get: "/x")
            try eventually("the rest is requested") { origin.count("/x") == 2 }
            crowd.leave(0)
            try eventually("it is gone") { try proxy.metric(.openClients) == 0 }
            gate.open()
            try eventually("it is stored") { try proxy.metric(.inFlight) == 0 }
            #expect(try proxy.get("/x").isWhole(Self.length))
            #expect(origin.count("/x") == 2)
        }
    }

    @Test func `a program that drains finishes what it resumes`() throws {
        try whileResuming(.workers(2), .drainTimeout(.seconds(20))) { origin, proxy, gate in
            let crowd = proxy.crowd(5, get: "/x")
            try eventually("the rest is requested") { origin.count("/x") == 2 }
            proxy.terminate()
            try eventually("it drains") { (try? proxy.connect()) == nil }
            gate.open()
            #expect(crowd.finished().allSatisfy { $0.isWhole(Self.length) })
            #expect(try proxy.exited() == .code(0))
        }
    }

    @Test func `a program that drains requests the rest of what breaks off then`() throws {
        try scenario(.workers(2), .drainTimeout(.seconds(20))) { origin, proxy in
            let gate = Gate()
            origin.on("/x") { request in
                request.number == 1
                    ? [
                        .head(200, Self.file.fields + ["Content-Length: 900000"]), .pattern(0..<300_000), .gate(gate),
                        .close,
                    ] : Self.file.steps(request)
            }
            let crowd = proxy.crowd(5, get: "/x")
            try eventually("all have the beginning") { crowd.answers.allSatisfy { $0.body.length == 300_000 } }
            proxy.terminate()
            try eventually("it drains") { (try? proxy.connect()) == nil }
            gate.open()
            #expect(crowd.finished().allSatisfy { $0.isWhole(Self.length) })
            #expect(try proxy.exited() == .code(0))
        }
    }
}
