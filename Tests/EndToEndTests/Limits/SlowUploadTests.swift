import Glibc
import Testing

/// Clients that take their time to send content: it is read before anybody else has to wait for it.
@Suite(.scenario) struct SlowUploadTests {
    private func head(_ framing: String, _ fields: String = "") -> String {
        "POST /up HTTP/1.1\r\nHost: a\r\n\(fields)\(framing)\r\n\r\n"
    }

    private func hasRead(_ proxy: Program, _ count: Int) throws {
        try eventually("the proxy has read it") { try proxy.metric(.clientReceivedBytes) >= count }
    }

    @Test func `clients that send slowly hold no slot, and the origin gets no request yet`() throws {
        try scenario(.maxConcurrentFetches(4), .waitTimeout(.seconds(5))) { origin, proxy in
            origin.on("/up") { _ in [.requestBody, .answer(201)] }
            origin.on("/x") { _ in [.answer(200, body: "x")] }
            let clients = try (0..<4).map { _ in try proxy.connect() }
            for client in clients { try client.send(head("Content-Length: 10") + "0") }
            try hasRead(proxy, 4 * head("Content-Length: 10").utf8.count + 4)
            let other = try proxy.get("/x")
            #expect(other.text == "x")
            #expect(origin.count("/up") == 0)
            for client in clients { try client.send("123456789") }
            for client in clients {
                let answer = try client.answer()
                #expect(answer.status == 201 && answer["connection"] == nil)
            }
            #expect(origin.requests("/up").map(\.body.text) == Array(repeating: "0123456789", count: 4))
        }
    }

    @Test func `short chunked content is read before the request is sent`() throws {
        try scenario { origin, proxy in
            origin.on("/up") { _ in [.requestBody, .answer(201)] }
            let client = try proxy.connect()
            try client.send(head("Transfer-Encoding: chunked") + "5\r\nhello\r\n")
            try hasRead(proxy, head("Transfer-Encoding: chunked").utf8.count + 10)
            try stays("the origin is not asked", for: .milliseconds(100)) { origin.total == 0 }
            try client.send("6\r\n world\r\n0\r\nX-Sum: 11\r\n\r\n")
            #expect(try client.answer().status == 201)
            #expect(origin.requests("/up").map(\.body.text) == ["hello world"])
        }
    }

    @Test(arguments: [1, 7])
    func `content that arrives byte by byte is forwarded whole`(_ step: Int) throws {
        try scenario { origin, proxy in
            origin.on("/up") { _ in [.requestBody, .answer(201)] }
            let bytes = Pattern().bytes(0..<700)
            let client = try proxy.connect()
            let request = Array(head("Content-Length: 700").utf8) + bytes
            for start in stride(from: 0, to: request.count, by: step) {
                try client.send(Array(request[start..<min(start + step, request.count)]))
            }
            #expect(try client.answer().status == 201)
            #expect(origin.requests("/up")[0].body.isIntact)
        }
    }

    @Test(.overHTTP1("it is about HTTP/1.0")) func `an HTTP 1 point 0 request is read ahead like any other`() throws {
        try scenario { origin, proxy in
            origin.on("/up") { _ in [.requestBody, .answer(201)] }
            let client = try proxy.connect()
            let request = "POST /up HTTP/1.0\r\nHost: a\r\nContent-Length: 10\r\n\r\n01234"
            try client.send(request)
            try hasRead(proxy, request.utf8.count)
            #expect(origin.total == 0)
            try client.send("56789")
            #expect(try client.answer().status == 201 && client.isClosed())
            #expect(origin.requests("/up")[0].body.text == "0123456789")
        }
    }

    @Test func `a client that leaves while its content is read ahead leaves no trace at the origin`() throws {
        try scenario(.accessLog) { origin, proxy in
            let client = try proxy.connect()
            try client.send(Array(head("Content-Length: 60000").utf8) + Pattern().bytes(0..<50_000))
            try eventually("it is held") { try proxy.metric(.inFlightBytes) > 49_000 }
            client.reset()
            try eventually("a line") { try proxy.accessLog.count == 1 }
            let line = try proxy.accessLog[0]
            #expect(line["verdict"]?.string == "pass" && line["status"]?.number == 0 && line["aborted"] != nil)
            #expect(origin.total == 0)
            #expect(try proxy.metric(.inFlightBytes) == 0)
        }
    }

    @Test(arguments: ["Content-Length: 5", "Transfer-Encoding: chunked"])
    func `a client that expects 100 before short content gets 100 from the proxy, once`(_ framing: String) throws {
        try scenario { origin, proxy in
            origin.on("/up") { _ in [.interim(100), .requestBody, .answer(200, body: "got it")] }
            let client = try proxy.connect()
            try client.send(head(framing, "Expect: 100-continue\r\n"))
            #expect(try client.progress { !$0.interim.isEmpty }.interim[0].status == 100)
            #expect(origin.total == 0)
            try client.send(framing.contains("chunked") ? "5\r\nhello\r\n0\r\n\r\n" : "hello")
            let answer = try client.answer()
            #expect(answer.text == "got it" && answer.interim.count == 1)
            let request = origin.requests("/up")[0]
            #expect(request.body.text == "hello" && request["expect"] == nil)
        }
    }

    @Test func `a client that expects 100 before long content is answered by the origin`() throws {
        try scenario(.bodyBuffer(4)) { origin, proxy in
            origin.on("/up") { _ in [.answer(403, body: "no"), .silence] }
            let client = try proxy.connect()
            try client.send(head("Content-Length: 5", "Expect: 100-continue\r\n"))
            let answer = try client.answer()
            #expect(answer.status == 403 && answer.interim.isEmpty)
            #expect(origin.requests("/up")[0]["expect"] == "100-continue")
        }
    }

    @Test func `a client that is refused for its head gets no 100`() throws {
        try scenario(.hosts(["b"])) { _, proxy in
            let client = try proxy.connect()
            try client.send(head("Content-Length: 5", "Expect: 100-continue\r\n"))
            let answer = try client.answer()
            #expect(answer.status == 421 && answer.interim.isEmpty)
        }
    }

    @Test func `content longer than the read-ahead buffer streams, at once or from there on`() throws {
        try scenario(.bodyBuffer(1000)) { origin, proxy in
            origin.on("/up") { _ in [.requestBody, .answer(201)] }
            let known = try proxy.connect()
            try known.send(head("Content-Length: 1001"))
            try eventually("the origin is asked") { origin.count("/up") == 1 }
            try known.send(Pattern().bytes(0..<1001))
            #expect(try known.answer().status == 201)
            let chunked = try proxy.connect()
            let chunk = Array("190\r\n".utf8) + Pattern().bytes(0..<400) + [13, 10]
            try chunked.send(Array(head("Transfer-Encoding: chunked").utf8) + chunk + chunk)
            try stays("the origin is not asked", for: .milliseconds(100)) { origin.count("/up") == 1 }
            try chunked.send(chunk)
            try eventually("the origin has it") { origin.requests("/up").last?.body.length == 1200 }
            try chunked.send("0\r\n\r\n")
            #expect(try chunked.answer().status == 201)
            #expect(origin.requests("/up").allSatisfy { $0.isWhole })
        }
    }

    @Test func `content read ahead takes at most half of the in-flight share, and returns the memory`() throws {
        try scenario(.memory(mebibytes: 1)) { origin, proxy in
            origin.on("/up") { _ in [.requestBody, .answer(201)] }
            let bytes = Pattern().bytes(0..<60_000)
            let clients = try (0..<10).map { _ in try proxy.connect() }
            for client in clients { try client.send(Array(head("Content-Length: 60000").utf8) + bytes[..<50_000]) }
            try eventually("there is no room for most") { origin.count("/up") > 1 }
            try hasRead(proxy, 10 * (head("Content-Length: 60000").utf8.count + 50_000))
            #expect(origin.count("/up") < 10)
            #expect(try proxy.metric(.inFlightBytes) <= 1 << 18)
            for client in clients { try client.send(Array(bytes[50_000...])) }
            for client in clients { #expect(try client.answer().status == 201) }
            #expect(origin.requests("/up").allSatisfy { $0.body.length == 60_000 && $0.body.isIntact })
            try eventually("all is given back") { try proxy.metric(.inFlightBytes) == 0 }
        }
    }

    @Test func `stored responses make room for content that is read ahead`() throws {
        try scenario(.memory(mebibytes: 1)) { origin, proxy in
            origin.on("/up") { _ in [.requestBody, .answer(201)] }
            origin.on("*") { _ in [.answer(200, "Cache-Control: max-age=600", pattern: 50_000)] }
            for number in 1...30 { try proxy.get("/\(number)") }
            let client = try proxy.connect()
            try client.send(Array(head("Content-Length: 60000").utf8) + Pattern().bytes(0..<50_000))
            try eventually("it is held") { try proxy.metric(.inFlightBytes) > 49_000 }
            #expect(origin.count("/up") == 0)
            try client.send(Pattern().bytes(50_000..<60_000))
            #expect(try client.answer().status == 201)
            #expect(origin.requests("/up")[0].body.isIntact)
        }
    }

    @Test(arguments: ["Content-Length: 1000", "Content-Length: 100000", "Transfer-Encoding: chunked"])
    func `a client that keeps sending too slowly gets 408`(_ framing: String) throws {
        try scenario(.bodyTimeout(.seconds(1))) { origin, proxy in
            origin.on("/up") { _ in [.requestBody, .answer(201)] }
            let client = try proxy.connect()
            try client.send(head(framing))
            var isAnswered = false
            for _ in 0..<100 where !isAnswered {
                try client.send(framing.contains("chunked") ? "1\r\na\r\n" : "a")
                // A fifth of the rate, and never so long as body-timeout.
                let came = try? client.progress(within: .milliseconds(50)) { $0.ending != .pending }
                isAnswered = came != nil
            }
            #expect(isAnswered, "while it was sending")
            let answer = try client.answer()
            #expect(answer.status == 408 && answer.announcesEnd)
            #expect(client.isClosed())
            try eventually("the origin learns of it, if it heard of it") {
                origin.requests("/up").allSatisfy { $0.wasAbandoned && !$0.isWhole }
            }
        }
    }

    @Test(.overHTTP1("streams do not wait for one another"))
    func `the request behind content that is read ahead comes next`() throws {
        try scenario { origin, proxy in
            origin.on("/up") { _ in [.requestBody, .answer(201)] }
            origin.on("/next") { _ in [.answer(200, "Cache-Control: max-age=60", body: "next")] }
            let client = try proxy.connect()
            let next = String(repeating: "GET /next HTTP/1.1\r\nHost: a\r\n\r\n", count: 3)
            let post = head("Content-Length: 10") + "01234"
            for round in 0..<2 {
                try client.send(post)
                try hasRead(proxy, (round + 1) * post.utf8.count + round * (5 + next.utf8.count))
                try client.send("56789" + next)
                let answer = try client.answer()
                #expect(answer.status == 201)
                for _ in 0..<3 { #expect(try client.answer().text == "next") }
            }
            #expect(origin.requests("/up").allSatisfy { $0.body.text == "0123456789" })
        }
    }

    @Test func `a request refused after its content has arrived leaves the connection open`() throws {
        try scenario(.maxConcurrentFetches(1), .maxQueuedFetches(0)) { origin, proxy in
            let gate = Gate()
            origin.on("/first") { _ in [.gate(gate), .answer(200)] }
            let first = proxy.crowd(1, get: "/first")
            try eventually("the only place is taken") { origin.count("/first") == 1 }
            let client = try proxy.connect()
            try client.send(head("Content-Length: 10"))
            try client.send("01234")
            try client.send("56789" + head("Content-Length: 5") + "01234")
            for _ in 0..<2 {
                let answer = try client.answer()
                #expect(answer.status == 503 && answer["connection"] == nil)
            }
            // In the middle of it, when it turns out to be more.
            let bytes = [UInt8](repeating: 0x78, count: 100_000)
            try client.send(Array((head("Transfer-Encoding: chunked") + "186a0\r\n").utf8) + bytes)
            let answer = try client.answer()
            #expect(answer.status == 503 && answer.announcesEnd)
            gate.open()
            #expect(first.finished()[0].status == 200)
            #expect(origin.count("/up") == 0)
        }
    }

    @Test func `content that turns out too large never reaches the origin`() throws {
        try scenario(.maxBodySize(1000)) { origin, proxy in
            let client = try proxy.connect()
            try client.send(head("Transfer-Encoding: chunked") + "3e8\r\n" + String(repeating: "x", count: 1000))
            try client.send("\r\n1\r\nx\r\n0\r\n\r\n")
            #expect(try client.answer().status == 413)
            #expect(origin.total == 0)
        }
    }

    /// The origin waits for the rest of the content, which does not come: without an end its slot would be taken for as
    /// long as it sends now and then.
    @Test func `content that becomes too large after the response began ends both`() throws {
        try scenario(.maxBodySize(1000), .bodyBuffer(0), .maxConcurrentFetches(1)) { origin, proxy in
            origin.on("/up") { _ in [.head(200, "Content-Length: 20"), .text("0123456789"), .silence] }
            origin.on("/next") { _ in [.answer(200, body: "next")] }
            let client = try proxy.connect()
            try client.send(head("Transfer-Encoding: chunked") + "1\r\nx\r\n")
            try eventually("it has begun") { try proxy.metric(.clientSentBytes) > 0 }
            try client.send("3e8\r\n" + String(repeating: "x", count: 1000))
            let answer = try client.answer()
            #expect(answer.status == 200 && answer.text == "0123456789" && !answer.isClean)
            #expect(try proxy.get("/next").text == "next")
            #expect(!proxy.diagnostics.contains("failed"))
        }
    }

    @Test func `a request whose content is being read when the program ends still gets a response`() throws {
        try scenario { origin, proxy in
            origin.on("/up") { _ in [.requestBody, .answer(201)] }
            let client = try proxy.connect()
            try client.send(head("Content-Length: 10") + "01234")
            try hasRead(proxy, head("Content-Length: 10").utf8.count + 5)
            proxy.terminate()
            try eventually("nobody new is let in") { (try? proxy.get("/x"))?.status ?? 503 == 503 }
            #expect(proxy.exit() == nil)
            try client.send("56789")
            let answer = try client.answer()
            #expect(answer.status == 201 && answer["connection"] == "close")
            #expect(try proxy.exited() == .code(0))
        }
    }

    @Test func `a request whose content is being read at a reload keeps its settings`() throws {
        try scenario { origin, proxy in
            let other = try ScriptedOrigin()
            defer { other.stop() }
            origin.on("/up") { _ in [.requestBody, .answer(201)] }
            other.on("/new") { _ in [.answer(200, body: "new")] }
            let client = try proxy.connect()
            try client.send(head("Content-Length: 10") + "01234")
            try hasRead(proxy, head("Content-Length: 10").utf8.count + 5)
            for _ in 0..<2 {
                try proxy.rewriteConfiguration(upstream: other.url)
                proxy.signal(SIGHUP)
            }
            try eventually("the new origin is asked") { try proxy.get("/new").text == "new" }
            try client.send("56789")
            #expect(try client.answer().status == 201)
            #expect(origin.requests("/up")[0].body.text == "0123456789")
        }
    }
}
