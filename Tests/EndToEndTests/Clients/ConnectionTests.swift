import Testing

/// Keep-alive, pipelining and older clients.
@Suite(.scenario) struct ConnectionTests {
    @Test func `pipelined requests are answered in order, however long the first takes`() throws {
        try scenario { origin, proxy in
            let gate = Gate()
            origin.on("/slow") { _ in [.gate(gate), .answer(200, body: "slow")] }
            origin.on("/fast") { _ in [.answer(200, "Cache-Control: max-age=60", body: "fast")] }
            try proxy.get("/fast")
            let client = try proxy.connect()
            try client.send(
                proxy.request("GET", "/slow") + proxy.request("GET", "/fast") + proxy.request("HEAD", "/fast")
                    + proxy.request("GET", "/fast"))
            try eventually("the first is under way") { origin.count("/slow") == 1 }
            gate.open()
            #expect(try client.answer().text == "slow")
            #expect(try client.answer().text == "fast")
            #expect(try client.answer(to: "HEAD").body.length == 0)
            #expect(try client.answer().text == "fast")
        }
    }

    @Test func `a client that reads late gets pipelined hits whole and in order`() throws {
        try scenario { origin, proxy in
            let length = 2000
            for path in ["/a", "/b", "/c"] {
                let body = String(repeating: String(path.suffix(1)), count: length)
                origin.on(path) { _ in
                    [.answer(200, path == "/c" ? "Cache-Control: no-store" : "Cache-Control: max-age=60", body: body)]
                }
                try proxy.get(path)
            }
            // More than the buffers of both sockets take, with what is not stored among it.
            let paths = (0..<6000).map { $0 % 500 == 499 ? "/c" : $0 % 2 == 0 ? "/a" : "/b" }
            let client = try proxy.connect()
            try client.send(
                paths.map { proxy.request("GET", $0) }.joined() + proxy.request("GET", "/a", ["Connection: close"]))
            let bytes = try client.bytes(.max)
            var answers: [Character] = []
            var position = 0
            while position < bytes.count {
                #expect(bytes[position] == UInt8(ascii: "H"))
                guard let end = Head.end(in: bytes, from: position), end + length <= bytes.count else { break }
                let body = bytes[end..<end + length]
                #expect(body.allSatisfy { $0 == body.first })
                answers.append(Character(UnicodeScalar(bytes[end])))
                position = end + length
            }
            #expect(answers == paths.map { $0.last! } + ["a"])
        }
    }

    @Test(.overHTTP1("the text is malformed"))
    func `a malformed request behind pipelined hits is refused, and the hits are answered`() throws {
        try scenario { origin, proxy in
            origin.on("/x") { _ in [.answer(200, "Cache-Control: max-age=60", body: "x")] }
            try proxy.get("/x")
            let client = try proxy.connect()
            try client.send(
                proxy.request("GET", "/x") + proxy.request("GET", "/x") + "GET  /x HTTP/1.1\r\nHost: a\r\n\r\n")
            #expect(try client.answer().text == "x")
            #expect(try client.answer().text == "x")
            #expect(try client.answer().status == 400)
            #expect(client.isClosed())
        }
    }

    @Test func `pipelined hits are sent although the next request is incomplete`() throws {
        try scenario { origin, proxy in
            origin.on("/x") { _ in [.answer(200, "Cache-Control: max-age=60", body: "x")] }
            try proxy.get("/x")
            let client = try proxy.connect()
            let request = proxy.request("GET", "/x")
            try client.send(request + request + request.prefix(20))
            #expect(try client.answer().text == "x")
            #expect(try client.answer().text == "x")
            try client.send(String(request.dropFirst(20)))
            #expect(try client.answer().text == "x")
        }
    }

    @Test func `a body is not parsed as a pipelined request`() throws {
        try scenario { origin, proxy in
            origin.on("*") { _ in [.requestBody, .answer(200, body: "ok")] }
            let inner = "GET /inner HTTP/1.1\r\nHost: a\r\n\r\n"
            let client = try proxy.connect()
            try client.send(proxy.request("POST", "/outer", body: inner) + proxy.request("GET", "/next"))
            #expect(try client.answer().status == 200)
            #expect(try client.answer().status == 200)
            #expect(origin.count("/inner") == 0)
            #expect(origin.requests("/outer")[0].body.text == inner)
        }
    }

    @Test func `a connection is closed after the response to a request with Connection close`() throws {
        try scenario { origin, proxy in
            origin.on("/x") { _ in [.answer(200, body: "x")] }
            let client = try proxy.connect()
            try client.send(proxy.request("GET", "/x", ["Connection: close"]))
            let answer = try client.answer()
            #expect(answer.isClean && answer["connection"]?.lowercased() == "close")
            #expect(client.isClosed())
        }
    }

    @Test func `a connection is closed after its last permitted request, and the response says so`() throws {
        try scenario(.other(section: "clients", key: "max-requests-per-connection", value: "3")) { origin, proxy in
            origin.on("/x") { _ in [.answer(200, "Cache-Control: max-age=60", body: "x")] }
            let client = try proxy.connect()
            for number in 1...3 {
                try client.send(proxy.request("GET", "/x"))
                let answer = try client.answer()
                #expect(
                    answer.text == "x" && (answer["connection"]?.lowercased() == "close") == (number == 3),
                    "answer \(number)")
            }
            #expect(client.isClosed())
        }
    }

    @Test(.overHTTP1("it is about HTTP/1.0"))
    func `an HTTP 1 point 0 client gets no chunks, and the end of the connection`() throws {
        try scenario { origin, proxy in
            origin.on("/chunks") { _ in
                [.head(200, "Transfer-Encoding: chunked"), .chunk("one"), .chunk("two"), .lastChunk()]
            }
            let client = try proxy.connect()
            try client.send("GET /chunks HTTP/1.0\r\nHost: a\r\n\r\n")
            let answer = try client.answer()
            #expect(answer.text == "onetwo" && answer.isClean)
            #expect(answer["transfer-encoding"] == nil)
            #expect(client.isClosed())
        }
    }

    @Test(.overHTTP1("it is about HTTP/1.0"))
    func `an HTTP 1 point 0 client can keep its connection when the length is known`() throws {
        try scenario { origin, proxy in
            origin.on("/x") { _ in [.answer(200, body: "x")] }
            let client = try proxy.connect()
            for _ in 1...2 {
                try client.send("GET /x HTTP/1.0\r\nHost: a\r\nConnection: keep-alive\r\n\r\n")
                let answer = try client.answer()
                #expect(answer.text == "x" && answer["connection"]?.lowercased() == "keep-alive")
            }
        }
    }

    @Test(.overHTTP1("it is about HTTP/1.0")) func `a response cut off for an HTTP 1 point 0 client ends with a reset`()
        throws
    {
        try scenario { origin, proxy in
            let gate = Gate()
            origin.on("/cut") { _ in [.head(200, "Transfer-Encoding: chunked"), .chunk("half"), .gate(gate), .reset] }
            let client = try proxy.connect()
            try client.send("GET /cut HTTP/1.0\r\nHost: a\r\n\r\n")
            try client.progress { $0.text == "half" }
            gate.open()
            #expect(try client.answer().ending == .reset)
        }
    }

    @Test(.overHTTP1("it is about HTTP/1.0"))
    func `a response cut off for a half-closed HTTP 1 point 0 client ends with a reset`() throws {
        try scenario { origin, proxy in
            let gate = Gate()
            origin.on("/cut") { _ in [.head(200, "Transfer-Encoding: chunked"), .chunk("half"), .gate(gate), .reset] }
            let client = try proxy.connect()
            try client.send("GET /cut HTTP/1.0\r\nHost: a\r\n\r\n")
            try client.progress { $0.text == "half" }
            client.finishSending()
            gate.open()
            let answer = try client.answer()
            #expect(answer.ending == .reset)
        }
    }

    @Test func `origin connections are kept and reused`() throws {
        try scenario(.workers(1)) { origin, proxy in
            origin.on("/x") { _ in [.answer(200, "Cache-Control: no-store", body: "x")] }
            let client = try proxy.connect()
            for _ in 1...20 {
                try client.send(proxy.request("GET", "/x"))
                #expect(try client.answer().text == "x")
            }
            #expect(origin.count("/x") == 20)
            #expect(origin.acceptedConnections == 1)
        }
    }

    @Test func `a response without a body ends at its head`() throws {
        try scenario { origin, proxy in
            origin.on("/none") { _ in [.answer(204, "X: 1")] }
            origin.on("/reset") { _ in [.answer(205)] }
            let client = try proxy.connect()
            try client.send(
                proxy.request("GET", "/none") + proxy.request("GET", "/reset") + proxy.request("GET", "/none"))
            #expect(try client.answer().status == 204)
            #expect(try client.answer().status == 205)
            let last = try client.answer()
            #expect(last.status == 204 && last["content-length"] == nil && last["transfer-encoding"] == nil)
        }
    }
}
