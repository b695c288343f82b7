import Testing

/// A reused upstream connection that turns out dead before the first byte of the answer (RFC 9112 §9.3.1).
@Suite(.scenario) struct DeadConnectionTests {
    /// The first request on any connection is answered, the next one finds it dead.
    private static func dead(_ request: Received, _ end: Step) -> [Step] {
        request.ordinal == 0 ? [.answer(200, "Cache-Control: no-store", body: "fresh connection")] : [end]
    }

    @Test(arguments: [Step.close, .reset])
    func `a GET is sent once more on a new connection`(end: Step) throws {
        try scenario(.workers(1)) { origin, proxy in
            origin.on("*") { Self.dead($0, end) }
            try proxy.get("/warm")
            let answer = try proxy.get("/x")
            #expect(answer.status == 200 && answer.text == "fresh connection")
            #expect(origin.count("/x") == 2)
            #expect(try proxy.metric(.retries) == 1)
        }
    }

    @Test func `a POST is not sent once more`() throws {
        try scenario(.workers(1)) { origin, proxy in
            origin.on("/warm") { Self.dead($0, .close) }
            origin.on("/post") { _ in [.close] }
            try proxy.get("/warm")
            #expect(try proxy.send("POST", "/post", body: "pay once").status == 502)
            #expect(origin.count("/post") == 1)
        }
    }

    @Test func `a GET is not sent once more if the operator forbids retries`() throws {
        try scenario(.workers(1), .other(section: "upstream", key: "retry-dead-connection", value: "false")) {
            origin, proxy in
            origin.on("*") { Self.dead($0, .close) }
            try proxy.get("/warm")
            #expect(try proxy.get("/x").status == 502)
            #expect(origin.count("/x") == 1)
            #expect(try proxy.metric(.retries) == 0)
        }
    }

    @Test func `a request is sent once more at most, and never after a new connection failed`() throws {
        try scenario(.workers(1)) { origin, proxy in
            origin.on("/warm") { Self.dead($0, .close) }
            origin.on("/x") { _ in [.close] }
            try proxy.get("/warm")
            #expect(try proxy.get("/x").status == 502)
            #expect(origin.count("/x") == 2)
            #expect(try proxy.get("/x").status == 502)
            #expect(origin.count("/x") == 3)
        }
    }

    @Test(arguments: ["the rest of a response", "a 408 and the end"])
    func `bytes on an idle connection are no response to the next request`(what: String) throws {
        try scenario(.workers(1)) { origin, proxy in
            let gate = Gate()
            let unasked: [Step] =
                what == "a 408 and the end"
                ? [.answer(408, "Connection: close"), .close]
                : [.answer(200, "Cache-Control: max-age=60", body: "wrong")]
            origin.on("/warm") { _ in [.answer(200, "Cache-Control: no-store", body: "warm"), .gate(gate)] + unasked }
            origin.on("/x") { _ in [.answer(200, "Cache-Control: max-age=60", body: "right")] }
            let client = try proxy.connect()
            try client.send(proxy.request("GET", "/warm"))
            #expect(try client.answer().text == "warm")
            try proxy.whileStopped {
                // First the request, then what nobody asked for: both are there when the program looks.
                try client.send(proxy.request("GET", "/x"))
                try eventually("the request is there", within: .seconds(30)) {
                    System.hasUnreadBytes(ownPort: proxy.endpoint.port)
                }
                gate.open()
                try eventually("the rest is there", within: .seconds(30)) {
                    System.hasUnreadBytes(peerPort: origin.endpoint.port)
                }
            }
            #expect(try client.answer().text == "right")
            #expect(try proxy.get("/x").text == "right")
        }
    }

    /// Also where nothing may be done twice: it was not done once. But content is not held, and what is said on a new
    /// connection is meant.
    @Test(arguments: [("GET", nil), ("POST", nil), ("POST", "pay once")] as [(String, String?)])
    func `a 408 that crossed the request is no response to it`(method: String, content: String?) throws {
        try scenario(.workers(1)) { origin, proxy in
            origin.on("*") {
                $0.ordinal == 0
                    ? [.requestBody, .answer(200, "Cache-Control: no-store", body: "right")]
                    : [.requestBody, Self.timedOut]
            }
            try proxy.get("/warm")
            let answer = try proxy.send(method, "/x", body: content)
            #expect(content == nil ? answer.text == "right" : answer.status == 408)
            #expect(origin.count("/x") == (content == nil ? 2 : 1))
            origin.on("/z") { _ in [Self.timedOut] }
            #expect(try proxy.get("/z").status == 408)
            #expect(origin.count("/z") <= 2)
        }
    }

    private static let timedOut = Step.several([.answer(408, "Connection: close"), .close])

    /// A POST whose connection is found dead before it goes out: its content is little and in one piece, or in chunks.
    @Test(arguments: [("little", timedOut), ("little", Step.reset), ("chunks", timedOut), ("chunks", .reset)])
    func `a POST that was not sent yet is sent once on another connection`(content: String, end: Step) throws {
        try post(content, end)
    }

    @Test(.overHTTP1("a stopped program opens no window for so much"))
    func `content of more than is held back is sent once on another connection`() throws { try post("much", .reset) }

    private func post(_ content: String, _ end: Step) throws {
        try scenario(.workers(1)) { origin, proxy in
            let text = String(repeating: "pay once ", count: content == "much" ? 3_000 : 1)
            let client = try proxy.connect()
            let gate = try Self.warm(client, proxy, origin, end)
            let post =
                content == "chunks"
                ? proxy.request("POST", "/post", ["Transfer-Encoding: chunked"]) + "9\r\n\(text)\r\n0\r\n\r\n"
                : proxy.request("POST", "/post", body: text)
            try proxy.whileStopped {
                try client.send(post)
                try eventually("the request is there", within: .seconds(30)) {
                    System.hasUnreadBytes(ownPort: proxy.endpoint.port)
                }
                gate.open()
                try eventually("the connection is over", within: .seconds(30)) {
                    !System.hasOpenConnection(peerPort: origin.endpoint.port)
                }
            }
            let answer = try client.answer(to: "POST")
            let requests = origin.requests("/post")
            #expect(answer.status == 200 && requests.count == 1)
            #expect(requests.first?.body.text == text)
        }
    }

    /// One connection to the origin is idle; `end` is what becomes of it once the gate is open.
    private static func warm(_ client: Conversation, _ proxy: Program, _ origin: ScriptedOrigin, _ end: Step) throws
        -> Gate
    {
        let gate = Gate()
        origin.on("/warm") { _ in [.answer(200, "Cache-Control: no-store", body: "warm"), .gate(gate), end] }
        origin.on("/post") { _ in [.requestBody, .answer(200, body: "paid")] }
        try client.send(proxy.request("GET", "/warm"))
        #expect(try client.answer().text == "warm")
        return gate
    }

    @Test func `a connection that the origin closed while idle costs no client a response`() throws {
        try scenario(.workers(1)) { origin, proxy in
            origin.on("*") { _ in [.answer(200, "Cache-Control: no-store", body: "x")] }
            for _ in 1...10 {
                try proxy.get("/x")
                origin.closeIdleConnections()
                try eventually("the program knows") { try proxy.metric(.openUpstreams) == 0 }
                #expect(try proxy.send("POST", "/y", body: "b").status == 200)
            }
        }
    }
}
