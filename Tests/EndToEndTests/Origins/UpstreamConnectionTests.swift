import Testing

/// How connections to an origin are made and kept.
@Suite(.scenario) struct UpstreamConnectionTests {
    @Test(arguments: [0, 1, 3])
    func `no more idle connections are kept than the operator permits`(_ most: Int) throws {
        try scenario(.workers(1), .other(section: "upstream", key: "max-idle-connections", value: "\(most)")) {
            origin, proxy in
            let gate = Gate()
            origin.on("*") { _ in [.gate(gate), .answer(200, "Cache-Control: no-store", body: "x")] }
            let crowds = (0..<4).map { proxy.crowd(1, get: "/\($0)") }
            try eventually("all four are asked") { origin.total == 4 }
            #expect(origin.openConnections == 4)
            gate.open()
            for crowd in crowds { #expect(crowd.finished()[0].text == "x") }
            try eventually("the others are closed") {
                try proxy.metric(.inFlight) == 0 && proxy.metric(.openUpstreams) == most
            }
            try proxy.get("/later")
            #expect(origin.acceptedConnections == (most == 0 ? 5 : 4))
        }
    }

    @Test func `an idle connection is closed after idle-timeout`() throws {
        try scenario(.workers(1), .other(section: "upstream", key: "idle-timeout", value: "300ms")) { origin, proxy in
            origin.on("/x") { _ in [.answer(200, "Cache-Control: no-store", body: "x")] }
            try proxy.get("/x")
            let used = Instant.now
            try eventually("it is closed") { try proxy.metric(.openUpstreams) == 0 }
            #expect(.now - used > .milliseconds(200))
            try eventually("the origin knows") { origin.openConnections == 0 }
        }
    }

    @Test(arguments: [false, true])
    func `a server that does not accept a connection is given up after the timeout, for the next one`(
        _ hasNext: Bool
    ) throws {
        // Two connections that nobody accepts fill it; the kernel drops what comes then.
        let (listener, port) = try Socket.listen(backlog: 0)
        defer { Socket.close(listener) }
        let fillers = try (0..<4).map { _ in try Socket.connect(to: .tcp(port)) }
        defer { for filler in fillers { Socket.close(filler) } }
        let origin = try ScriptedOrigin()
        defer { origin.stop() }
        origin.on("/x") { _ in [.answer(200, body: "next")] }
        let servers = ["http://127.0.0.1:\(port)"] + (hasNext ? [origin.url] : [])
        let proxy = try Program.serve(servers: servers, [.workers(1), .connectTimeout(.milliseconds(400))])
        defer { proxy.stop() }
        let answer = try proxy.get("/x")
        if hasNext {
            #expect(answer.text == "next")
        } else {
            #expect(answer.status == 504 && answer["proxy-status"] != nil)
        }
        #expect(answer.took > .milliseconds(350) && answer.took < .milliseconds(400) + aStall)
    }

    @Test(arguments: [(limit: "2KiB", status: 502), ("64KiB", 200)])
    func `a response head larger than permitted gives 502`(_ setting: (limit: String, status: Int)) throws {
        try scenario(.other(section: "upstream", key: "max-head-size", value: setting.limit)) { origin, proxy in
            origin.on("/x") { _ in [.answer(200, "X: \(String(repeating: "a", count: 4_000))", body: "x")] }
            let answer = try proxy.get("/x")
            #expect(answer.status == setting.status)
            guard setting.status == 502 else { return }
            #expect(answer["proxy-status"]?.contains("error=http_response_header_section_size") == true)
            #expect(answer["cache-status"]?.contains("detail=head-too-large") == true)
            try eventually("the operator is told of the key") { proxy.diagnostics.contains("max-head-size") }
        }
    }

    @Test func `a response of more than 200 field lines gives 502`() throws {
        try scenario { origin, proxy in
            let lines = (0..<201).map { "X-\($0): a" }.joined(separator: "\r\n")
            origin.on("/x") { _ in [.answer(200, lines, body: "x")] }
            let answer = try proxy.get("/x")
            #expect(answer.status == 502 && answer["cache-status"]?.contains("detail=too-many-fields") == true)
        }
    }

    /// A listener whose connections nobody reads from.
    @Test func `a server that does not read a request is distinguished from one that does not respond`() throws {
        let (listener, port) = try Socket.listen(backlog: 8)
        defer { Socket.close(listener) }
        let proxy = try Program.serve(
            servers: ["http://127.0.0.1:\(port)"],
            [.workers(1), .bodyBuffer(0), .noProgressTimeout(.milliseconds(500))])
        defer { proxy.stop() }
        let answer = try proxy.send("POST", "/up", body: String(repeating: "x", count: 16 << 20))
        #expect(answer.status == 504 && answer["proxy-status"]?.contains("error=connection_write_timeout") == true)
        #expect(answer["cache-status"]?.contains("detail=send-timeout") == true)
    }

    @Test func `a connection that may be closing is used only for requests that can be sent twice`() throws {
        try scenario(.workers(1)) { origin, proxy in
            origin.on("*") { _ in [.requestBody, .answer(200, "Cache-Control: no-store", body: "ok")] }
            try proxy.get("/warm")
            System.nap(.milliseconds(1_200))
            #expect(try proxy.send("POST", "/pay", body: "once").status == 200)
            #expect(origin.acceptedConnections == 2)
            System.nap(.milliseconds(1_200))
            try proxy.get("/again")
            #expect(origin.acceptedConnections == 2)
        }
    }

    /// What the origin sends last, and when, counts; not when its reader takes it.
    @Test func `the time in which a slow client reads counts as idle`() throws {
        try scenario(
            .workers(1), .other(section: "storage", key: "streaming-window", value: "128KiB"),
            .other(section: "upstream", key: "idle-timeout", value: "1m")
        ) { origin, proxy in
            let length = 300_000
            origin.on("/large") { _ in
                [.answer(200, "Cache-Control: no-store", "Keep-Alive: timeout=3", pattern: length)]
            }
            origin.on("/pay") { _ in [.requestBody, .answer(200, body: "ok")] }
            let crowd = proxy.crowd(1, get: "/large", pace: .slow(bytes: 20_000, every: .milliseconds(200)))
            #expect(crowd.finished()[0].isClean)
            try eventually("its request is over") { try proxy.metric(.inFlight) == 0 }
            #expect(try proxy.send("POST", "/pay", body: "once").status == 200)
            #expect(origin.requests("/pay").first?.connection == 1)
        }
    }
}
