import Testing

/// Request bodies stream upstream.
@Suite(.scenario) struct RequestBodyTests {
    @Test func `a chunked body reaches the origin before the client has ended it`() throws {
        try scenario(.bodyBuffer(0)) { origin, proxy in
            origin.on("/up") { _ in [.requestBody, .answer(201, body: "thanks")] }
            let client = try proxy.connect()
            try client.send("POST /up HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n")
            try eventually("the origin has the first chunk") { origin.requests("/up").first?.body.text == "hello" }
            #expect(!origin.requests("/up")[0].isWhole)
            try client.send("6\r\n world\r\n0\r\n\r\n")
            #expect(try client.answer().status == 201)
            #expect(origin.requests("/up")[0].body.text == "hello world")
        }
    }

    @Test(arguments: [0, 65_536])
    func `a body in thousands of one-byte chunks arrives whole, and the next request follows`(_ buffer: Int) throws {
        try scenario(.bodyBuffer(buffer)) { origin, proxy in
            origin.on("/up") { _ in [.requestBody, .answer(200)] }
            origin.on("/next") { _ in [.answer(200, body: "next")] }
            let bytes = Pattern().bytes(0..<70_000)
            var request = Array("POST /up HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n".utf8)
            for byte in bytes { request += Array("1\r\n".utf8) + [byte] + Array("\r\n".utf8) }
            request += Array("0\r\n\r\nGET /next HTTP/1.1\r\nHost: a\r\n\r\n".utf8)
            let client = try proxy.connect()
            try client.send(request)
            #expect(try client.answer().status == 200)
            #expect(try client.answer().text == "next")
            let body = origin.requests("/up")[0].body
            #expect(body.length == bytes.count && body.isIntact)
        }
    }

    @Test func `a body with a length streams and arrives whole`() throws {
        try scenario { origin, proxy in
            origin.on("/up") { _ in [.requestBody, .answer(200)] }
            let length = 5_000_000
            let client = try proxy.connect()
            try client.send("PUT /up HTTP/1.1\r\nHost: a\r\nContent-Length: \(length)\r\n\r\n")
            try client.send(Pattern().bytes(0..<length / 2))
            try eventually("the first half is there") { (origin.requests("/up").first?.body.length ?? 0) == length / 2 }
            try client.send(Pattern().bytes(length / 2..<length))
            #expect(try client.answer().status == 200)
            let body = origin.requests("/up")[0].body
            #expect(body.length == length && body.isIntact)
        }
    }

    @Test func `a response may arrive before the request body has ended`() throws {
        try scenario { origin, proxy in
            origin.on("/up") { _ in [.answer(413, "Connection: close", body: "enough"), .silence] }
            let client = try proxy.connect()
            try client.send("POST /up HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000\r\n\r\nbegin")
            let answer = try client.answer()
            #expect(answer.status == 413 && answer.text == "enough")
        }
    }

    @Test func `a client that expects 100 gets 100 and sends its body`() throws {
        try scenario(.bodyBuffer(0)) { origin, proxy in
            origin.on("/up") { _ in [.interim(100), .requestBody, .answer(200, body: "got it")] }
            let client = try proxy.connect()
            try client.send("POST /up HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\n")
            #expect(try client.progress { !$0.interim.isEmpty }.interim[0].status == 100)
            try client.send("hello")
            #expect(try client.answer().text == "got it")
            #expect(
                origin.requests("/up")[0].body.text == "hello" && origin.requests("/up")[0]["expect"] == "100-continue")
        }
    }

    /// RFC 9110 §10.1.1
    @Test(
        .overHTTP1("some are of HTTP/1.0"),
        arguments: [
            "POST /up HTTP/1.0\r\nHost: a\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\nhello",
            "POST /up HTTP/1.0\r\nHost: a\r\nContent-Length: 5\r\nExpect: tea\r\n\r\nhello",
            "POST /up HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\nExpect: 100-continue\r\n\r\n",
            "OPTIONS /up HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\n\r\n",
        ])
    func `Expect without content, or in HTTP 1 point 0, is not forwarded`(_ request: String) throws {
        try scenario { origin, proxy in
            origin.on("/up") { _ in [.requestBody, .answer(200)] }
            let client = try proxy.connect()
            try client.send(request)
            #expect(try client.answer().status == 200)
            #expect(origin.requests("/up")[0]["expect"] == nil)
        }
    }

    @Test func `a client that expects 100 may be refused without 100`() throws {
        try scenario(.bodyBuffer(0)) { origin, proxy in
            origin.on("/up") { _ in [.answer(403, body: "no"), .silence] }
            let client = try proxy.connect()
            try client.send("POST /up HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\n")
            let answer = try client.answer()
            #expect(answer.status == 403 && answer.text == "no" && answer.announcesEnd)
            #expect(client.isClosed(), "as was said")
        }
    }

    @Test(.overHTTP1("it is about the field Connection"))
    func `a response before the end of the content announces that the connection will close`() throws {
        try scenario(.bodyBuffer(0)) { origin, proxy in
            origin.on("/up") { _ in [.head(200, ["Content-Length: 4"]), .text("he"), .requestBody, .text("re")] }
            let client = try proxy.connect()
            try client.send("POST /up HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhe")
            try client.progress { $0.body.length == 2 }
            try client.send("llo")
            let answer = try client.answer()
            #expect(answer.text == "here" && answer["connection"] == "close")
            #expect(origin.requests("/up")[0].body.text == "hello")
        }
    }

    @Test func `a client that leaves in the middle of its body leaves no complete request behind`() throws {
        try scenario(.bodyBuffer(0)) { origin, proxy in
            origin.on("/up") { _ in [.requestBody, .answer(200)] }
            let client = try proxy.connect()
            try client.send("POST /up HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n")
            try eventually("the origin has the first chunk") { origin.requests("/up").first?.body.text == "hello" }
            client.reset()
            try eventually("the origin learns of it") { origin.requests("/up")[0].wasAbandoned }
            #expect(!origin.requests("/up")[0].isWhole)
        }
    }

    @Test func `POST requests are never coalesced`() throws {
        try scenario { origin, proxy in
            let gate = Gate()
            origin.on("/up") {
                [.requestBody, .gate(gate), .answer(200, "Cache-Control: max-age=60", body: "\($0.number)")]
            }
            let text = Array(proxy.request("POST", "/up", body: "same").utf8)
            let crowd = Crowd(at: proxy.endpoint, Array(repeating: Visitor(request: text, method: "POST"), count: 20))
            try eventually("each is at the origin") { origin.count("/up") == 20 }
            gate.open()
            #expect(Set(crowd.finished().map(\.text)).count == 20)
        }
    }

    @Test(arguments: ["Content-Length: 50000000\r\n\r\n", "Transfer-Encoding: chunked\r\n\r\n2faf080\r\n"])
    func `an origin that does not read the body is given up after the timeout`(_ framing: String) throws {
        try scenario(.noProgressTimeout(.seconds(1)), .firstByteTimeout(.seconds(1))) { origin, proxy in
            origin.on("/up") { _ in [.deaf(true), .silence] }
            let client = try proxy.connect()
            try client.send("POST /up HTTP/1.1\r\nHost: a\r\n" + framing)
            try client.send(Pattern().bytes(0..<50_000_000))
            #expect(try client.answer().status == 504)
            try eventually("nobody waits any more") { try proxy.metric(.openUpstreams) == 0 }
        }
    }

    @Test func `an origin that sends interim responses and reads the body slowly is not given up`() throws {
        try scenario(.firstByteTimeout(.milliseconds(500))) { origin, proxy in
            origin.on("/up") { _ in
                [
                    .deaf(true), .wait(.milliseconds(500)), .interim(102), .wait(.milliseconds(1500)), .deaf(false),
                    .requestBody,
                    .answer(200, body: "all of it"),
                ]
            }
            let client = try proxy.connect()
            try client.send("POST /up HTTP/1.1\r\nHost: a\r\nContent-Length: 50000000\r\n\r\n")
            try client.send(Pattern().bytes(0..<50_000_000))
            #expect(try client.answer().text == "all of it")
        }
    }

    @Test(arguments: [
        "Content-Length: 10\r\n\r\nhello", "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n",
        "Content-Length: 10\r\n\r\n",
    ])
    func `a client that stops sending its body gets 408 after the timeout`(_ beginning: String) throws {
        try scenario(.bodyTimeout(.milliseconds(400))) { origin, proxy in
            origin.on("/up") { _ in [.requestBody, .answer(200)] }
            let client = try proxy.connect()
            try client.send("POST /up HTTP/1.1\r\nHost: a\r\n" + beginning)
            let answer = try client.answer()
            #expect(answer.status == 408 && answer.announcesEnd && !answer.text.isEmpty)
            #expect(answer.took > .milliseconds(350) && answer.took < .milliseconds(400) + aStall)
            #expect(client.isClosed())
            try eventually("the origin learns of it") {
                origin.requests("/up").allSatisfy { $0.wasAbandoned && !$0.isWhole }
            }
        }
    }

    @Test func `a client that sends its body bit by bit is not given up`() throws {
        try scenario(.bodyTimeout(.seconds(2)), .bodyBuffer(0), .minBodyRate(5)) { origin, proxy in
            origin.on("/up") { _ in [.requestBody, .answer(200, body: "all of it")] }
            let client = try proxy.connect()
            try client.send("POST /up HTTP/1.1\r\nHost: a\r\nContent-Length: 15\r\n\r\n")
            for count in 1...15 {
                try client.send("a")
                try eventually("the origin has it") { origin.requests("/up").first?.body.length == count }
                // Longer altogether than the time set.
                System.nap(.milliseconds(150))
            }
            #expect(try client.answer().text == "all of it")
        }
    }
}
