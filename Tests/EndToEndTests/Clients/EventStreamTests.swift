import Testing

/// Responses that are written as things happen: server-sent events, the pictures of a camera, and whatever says
/// `Incremental: ?1` (RFC 10036). They may be silent for long, and are for one client each unless they say otherwise.
@Suite(.scenario) struct EventStreamTests {
    static let kinds = [
        "Content-Type: text/event-stream", "Content-Type: Text/Event-Stream; charset=utf-8",
        "Content-Type: multipart/x-mixed-replace;boundary=x", "Incremental: ?1", "incremental: ?1;x=2",
    ]
    static let others = [
        "Content-Type: text/event-streams", "Content-Type: text/plain", "Incremental: ?0", "Incremental: 1",
        "Incremental: ?1, ?1",
    ]

    /// Two events, the second when `rest` opens; each says which request it answers.
    private static func script(_ origin: ScriptedOrigin, _ rest: Gate, _ fields: String...) {
        origin.on("/sse") { request in
            [
                .head(200, ["Transfer-Encoding: chunked"] + fields), .chunk("\(request.number)a "), .gate(rest),
                .chunk("\(request.number)b"), .lastChunk(),
            ]
        }
    }

    private static func open(_ proxy: Program) throws -> Conversation {
        let client = try proxy.connect()
        try client.send(proxy.request("GET", "/sse"))
        try client.progress { $0.body.length >= 3 }
        return client
    }

    // MARK: Silence

    @Test(arguments: kinds) func `the silence of an event stream is no failure`(_ kind: String) throws {
        try scenario(.noProgressTimeout(.milliseconds(500))) { origin, proxy in
            origin.on("/sse") { _ in
                [
                    .head(200, "Transfer-Encoding: chunked", kind), .chunk("a "), .wait(.seconds(2)), .chunk("b"),
                    .lastChunk(),
                ]
            }
            let answer = try proxy.get("/sse")
            #expect(answer.text == "a b")
        }
    }

    @Test(arguments: others) func `the silence of another response is a failure`(_ kind: String) throws {
        try scenario(.noProgressTimeout(.milliseconds(500))) { origin, proxy in
            origin.on("/sse") { _ in [.head(200, "Transfer-Encoding: chunked", kind), .chunk("a "), .silence] }
            let answer = try proxy.get("/sse")
            #expect(answer.ending == .cutOff && answer.text == "a ")
            #expect(answer.took > .milliseconds(450) && answer.took < .milliseconds(500) + aStall)
        }
    }

    @Test func `an event stream may be silent for as long as a tunnel`() throws {
        try scenario(.noProgressTimeout(.milliseconds(500)), .tunnelTimeout(.milliseconds(1500))) { origin, proxy in
            origin.on("/sse") { _ in
                [.head(200, "Transfer-Encoding: chunked", Self.kinds[0]), .chunk("a "), .silence]
            }
            let answer = try proxy.get("/sse")
            #expect(answer.ending == .cutOff)
            #expect(answer.took > .milliseconds(1450) && answer.took < .milliseconds(1500) + aStall)
            try eventually("the origin learns of it") { origin.requests("/sse")[0].wasAbandoned }
        }
    }

    @Test func `a streamed response to POST may be silent too`() throws {
        try scenario(.noProgressTimeout(.milliseconds(500))) { origin, proxy in
            origin.on("/sse") { _ in
                [
                    .requestBody, .head(200, "Transfer-Encoding: chunked", Self.kinds[0]), .chunk("a "),
                    .wait(.seconds(2)), .chunk("b"), .lastChunk(),
                ]
            }
            let answer = try proxy.send("POST", "/sse", body: "question")
            #expect(answer.text == "a b")
        }
    }

    @Test func `a shared event stream is not overtaken while silent`() throws {
        try scenario(.overtakeAfter(.milliseconds(200))) { origin, proxy in
            let rest = Gate()
            Self.script(origin, rest, Self.kinds[0], "Cache-Control: public")
            let first = try Self.open(proxy)
            try stays("it is not overtaken", for: .seconds(1)) { try proxy.metric(.overtaken) == 0 }
            let second = try Self.open(proxy)
            rest.open()
            #expect(try first.answer().text == "1a 1b")
            #expect(try second.answer().text == "1a 1b")
            #expect(origin.count("/sse") == 1)
        }
    }

    @Test func `an event stream without clients is closed`() throws {
        try scenario(.whenLastLeaves("finish")) { origin, proxy in
            let rest = Gate()
            Self.script(origin, rest, Self.kinds[0], "Cache-Control: public, max-age=60")
            let client = try Self.open(proxy)
            client.reset()
            try eventually("the origin learns of it") { origin.requests("/sse")[0].wasAbandoned }
        }
    }

    // MARK: Who may listen

    @Test(arguments: kinds) func `a late client gets no earlier events`(_ kind: String) throws {
        try scenario { origin, proxy in
            let rest = Gate()
            Self.script(origin, rest, kind)
            let first = try Self.open(proxy)
            let second = try Self.open(proxy)
            rest.open()
            #expect(try first.answer().text == "1a 1b")
            let answer = try second.answer()
            #expect(answer.text == "2a 2b")
            #expect(answer.cacheStatus.contains("detail=incremental"))
            #expect(try proxy.metric(.joinedLate) == 0)
        }
    }

    @Test(arguments: kinds) func `waiters are released together when the head of an event stream arrives`(
        _ kind: String
    )
        throws
    {
        try scenario { origin, proxy in
            let (head, rest) = (Gate(), Gate())
            origin.on("/sse") { request in
                (request.number == 1 ? [.gate(head)] : []) + [
                    .head(200, "Transfer-Encoding: chunked", kind), .chunk("\(request.number)"), .gate(rest),
                    .lastChunk(),
                ]
            }
            let crowd = proxy.crowd(12, get: "/sse")
            try proxy.joined(12)
            #expect(origin.count("/sse") == 1)
            head.open()
            try eventually("each has a stream of its own") { crowd.answers.allSatisfy { $0.body.length > 0 } }
            #expect(Set(crowd.answers.map(\.text)).count == 12)
            // And remembered: the next one does not wait for anybody.
            let led = try proxy.metric(.led)
            let next = try proxy.connect()
            try next.send(proxy.request("GET", "/sse"))
            #expect(try next.progress { $0.body.length == 2 }.text == "13")
            #expect(try proxy.metric(.led) == led)
            rest.open()
            #expect(crowd.finished().allSatisfy { $0.isClean })
        }
    }

    @Test(arguments: [
        "Cache-Control: public", "Cache-Control: max-age=60", "Cache-Control: s-maxage=60",
        "CDN-Cache-Control: max-age=60", "Cache-Control: public, max-age=0",
    ])
    func `several clients share an event stream if the origin permits`(_ permission: String) throws {
        try scenario { origin, proxy in
            let (head, rest) = (Gate(), Gate())
            origin.on("/sse") { request in
                [
                    .gate(head), .head(200, "Transfer-Encoding: chunked", Self.kinds[0], permission),
                    .chunk("\(request.number)a "), .gate(rest), .chunk("\(request.number)b"), .lastChunk(),
                ]
            }
            let crowd = proxy.crowd(5, get: "/sse")
            try proxy.joined(5)
            head.open()
            try eventually("all have the first event") { crowd.answers.allSatisfy { $0.text == "1a " } }
            rest.open()
            #expect(crowd.finished().allSatisfy { $0.text == "1a 1b" })
            #expect(origin.count("/sse") == 1)
        }
    }

    @Test(arguments: ["Cache-Control: max-age=0", "Last-Modified: Mon, 01 Jan 2024 00:00:00 GMT", "ETag: \"a\""])
    func `no default setting shares or stores an event stream`(_ field: String) throws {
        try scenario(.other(section: "caching", key: "default-ttl", value: "1h")) { origin, proxy in
            let rest = Gate.opened
            Self.script(origin, rest, Self.kinds[0], field)
            #expect(try proxy.send("GET", "/sse").text == "1a 1b")
            let answer = try proxy.send("GET", "/sse")
            #expect(answer.text == "2a 2b" && answer.cacheStatus.contains("detail=incremental"))
            #expect(!answer.cacheStatus.contains("stored"))
        }
    }

    @Test func `a failing event stream sends its error to every waiter`() throws {
        try scenario { origin, proxy in
            let head = Gate()
            origin.on("/sse") { _ in [.gate(head), .answer(503, Self.kinds[0], body: "down")] }
            let crowd = proxy.crowd(5, get: "/sse")
            try proxy.joined(5)
            head.open()
            #expect(crowd.finished().allSatisfy { $0.status == 503 && $0.text == "down" })
            #expect(origin.count("/sse") == 1)
        }
    }

    // MARK: Content of requests

    @Test(arguments: ["Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n", "Content-Length: 10\r\n\r\nhello"])
    func `request content marked as incremental is not read ahead`(_ beginning: String) throws {
        try scenario { origin, proxy in
            origin.on("/up") { _ in [.requestBody, .answer(200, body: "thanks")] }
            let client = try proxy.connect()
            try client.send("POST /up HTTP/1.1\r\nHost: a\r\nIncremental: ?1\r\n" + beginning)
            try eventually("the origin has what there is") { origin.requests("/up").first?.body.text == "hello" }
            let request = origin.requests("/up")[0]
            #expect(!request.isWhole && request["incremental"] == "?1")
            try client.send(beginning.hasPrefix("T") ? "5\r\nworld\r\n0\r\n\r\n" : "world")
            #expect(try client.answer().text == "thanks")
        }
    }

    @Test func `an incremental request and its response may overlap`() throws {
        try scenario { origin, proxy in
            origin.on("/up") { _ in
                [
                    .head(200, "Transfer-Encoding: chunked", "Incremental: ?1"), .chunk("hello"), .requestBody,
                    .lastChunk(),
                ]
            }
            let client = try proxy.connect()
            try client.send("POST /up HTTP/1.1\r\nHost: a\r\nIncremental: ?1\r\nTransfer-Encoding: chunked\r\n\r\n")
            try client.progress { $0.text == "hello" }
            try client.send("3\r\none\r\n")
            try eventually("the origin has it") { origin.requests("/up")[0].body.text == "one" }
            try client.send("0\r\n\r\n")
            #expect(try client.answer().isClean)
        }
    }
}
