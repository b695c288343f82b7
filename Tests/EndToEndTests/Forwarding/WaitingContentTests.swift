import Testing

/// Request content that the origin does not take, or not yet: the client waits with it, and nothing of it is lost.
@Suite(.scenario) struct WaitingContentTests {
    /// An origin whose kernel accepts connections and takes what fits into a socket's buffer, and nothing more.
    private func deafOrigin(_ conversation: (Program) throws -> Void) throws {
        let (listener, port) = try Socket.listen()
        defer { Socket.close(listener) }
        let proxy = try Program.serve(upstream: "http://127.0.0.1:\(port)")
        defer { proxy.stop() }
        try conversation(proxy)
    }

    private func upload(_ length: Int) -> [UInt8] {
        Array("PUT /up HTTP/1.1\r\nHost: a\r\nContent-Length: \(length)\r\n\r\n".utf8)
            + [UInt8](repeating: 0x78, count: length)
    }

    @Test func `an origin that reads nothing costs little memory, however much clients send`() throws {
        try deafOrigin { proxy in
            // Its workers have begun.
            try proxy.send("TRACE", "/")
            let before = proxy.residentBytes
            let request = upload(40_000_000)
            let crowd = Crowd(at: proxy.endpoint, Array(repeating: Visitor(request: request, method: "PUT"), count: 20))
            try stays("memory is bounded", for: .seconds(1)) { proxy.residentBytes - before < 24 << 20 }
            #expect(crowd.answers.allSatisfy { $0.ending == .pending })
            crowd.close()
        }
    }

    @Test(.overHTTP1("a stream's window takes less than a socket")) func `content that waits for a slot arrives whole`()
        throws
    {
        try scenario(.maxConcurrentFetches(1)) { origin, proxy in
            let gate = Gate()
            origin.on("/first") { _ in [.gate(gate), .answer(200)] }
            origin.on("/up") { _ in [.requestBody, .answer(201)] }
            let first = proxy.crowd(1, get: "/first")
            try eventually("the only place is taken") { origin.count("/first") == 1 }
            let small = try proxy.connect()
            try small.send("POST /up HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello")
            let large = try proxy.connect()
            let length = 300_000
            try large.send("POST /up HTTP/1.1\r\nHost: a\r\nContent-Length: \(length)\r\n\r\n")
            try large.send(Pattern().bytes(0..<length))
            gate.open()
            #expect(try small.answer().status == 201)
            #expect(try large.answer().status == 201)
            #expect(first.finished()[0].status == 200)
            #expect(Set(origin.requests("/up").map(\.body.length)) == [5, length])
        }
    }

    @Test func `the bytes after the content are the next request`() throws {
        try scenario { origin, proxy in
            origin.on("/up") { _ in [.requestBody, .answer(200)] }
            origin.on("/next") { _ in [.answer(200, body: "next")] }
            let client = try proxy.connect()
            let length = 100_000
            let head = "POST /up HTTP/1.1\r\nHost: a\r\nContent-Length: \(length)\r\n\r\n"
            let next = String(repeating: "GET /next HTTP/1.1\r\nHost: a\r\n\r\n", count: 3)
            try client.send(Array(head.utf8) + Pattern().bytes(0..<length) + Array(next.utf8))
            #expect(try client.answer().status == 200)
            for _ in 0..<3 { #expect(try client.answer().text == "next") }
            #expect(origin.requests("/up")[0].body.isIntact)
        }
    }

    @Test func `many small chunks arrive whole and in order`() throws {
        try scenario { origin, proxy in
            origin.on("/up") { _ in [.requestBody, .answer(200)] }
            let client = try proxy.connect()
            let bytes = Pattern().bytes(0..<200_000)
            var request = Array("POST /up HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n".utf8)
            for start in stride(from: 0, to: bytes.count, by: 20) {
                request += Array("14\r\n".utf8)
                request += bytes[start..<start + 20]
                request += [13, 10]
            }
            try client.send(request + Array("0\r\n\r\n".utf8))
            #expect(try client.answer().status == 200)
            let body = origin.requests("/up")[0].body
            #expect(body.length == bytes.count && body.isIntact)
        }
    }

    private func head(_ framing: String) -> String { "POST /up HTTP/1.1\r\nHost: a\r\n\(framing)\r\n\r\n" }

    /// The only slot is taken until the gate opens.
    private func withoutSlot(
        bodyBuffer: Int = 64 << 10, bodyTimeout: Duration = .seconds(30), memory: Int = 256,
        conversation: (ScriptedOrigin, Program, Gate) throws -> Void
    ) throws {
        try scenario(
            .maxConcurrentFetches(1), .workers(1), .bodyBuffer(bodyBuffer), .bodyTimeout(bodyTimeout),
            .memory(mebibytes: memory)
        ) { origin, proxy in
            let gate = Gate()
            origin.on("/first") { _ in [.gate(gate), .answer(200)] }
            origin.on("/up") { _ in [.requestBody, .answer(201)] }
            let first = proxy.crowd(1, get: "/first")
            try eventually("the only slot is taken") { origin.count("/first") == 1 }
            try conversation(origin, proxy, gate)
            #expect(first.finished()[0].status == 200)
        }
    }

    @Test(arguments: [true, false])
    func `content that waits for a slot takes little memory of the budget`(isChunked: Bool) throws {
        try withoutSlot { origin, proxy, gate in
            let (count, length) = (150, 300_000)
            let before = proxy.residentBytes
            // A connection of HTTP/2 takes 16 KB, over TLS 40.
            let own = (Transport.current.isFramedToClients ? 12 : 6) << 20
            var request = Array(head(isChunked ? "Transfer-Encoding: chunked" : "Content-Length: \(length)").utf8)
            if isChunked { request += Array((String(length, radix: 16) + "\r\n").utf8) }
            request += Pattern().bytes(0..<length)
            if isChunked { request += Array("\r\n0\r\n\r\n".utf8) }
            let visitor = Visitor(request: request, method: "POST")
            let crowd = Crowd(at: proxy.endpoint, Array(repeating: visitor, count: count))
            try eventually("they wait for the slot") { try proxy.metric(.queued) == count }
            try stays("little is held that is in no budget", for: .seconds(1)) {
                try proxy.residentBytes - before - proxy.metric(.inFlightBytes) < own
            }
            let most = (isChunked || Transport.current.isFramedToClients ? 144 : 17) << 10
            let held = try proxy.metric(.inFlightBytes)
            #expect((count..<count * most).contains(held))
            gate.open()
            #expect(crowd.finished().allSatisfy { $0.status == 201 })
            #expect(origin.requests("/up").allSatisfy { $0.body.length == length && $0.body.isIntact })
            try eventually("all is given back") { try proxy.metric(.inFlightBytes) == 0 }
        }
    }

    @Test func `a client whose content waits for a slot has no deadline, and is seen to leave`() throws {
        try withoutSlot(bodyBuffer: 0, bodyTimeout: .milliseconds(2500)) { origin, proxy, gate in
            origin.on("/up") { _ in [.interim(100), .requestBody, .answer(201)] }
            let clients = try (0..<4).map { _ in try proxy.connect() }
            let (expecting, begun, leaving, silent) = (clients[0], clients[1], clients[2], clients[3])
            try expecting.send(head("Expect: 100-continue\r\nContent-Length: 5"))
            try begun.send(head("Content-Length: 5") + "hel")
            try leaving.send(head("Content-Length: 5"))
            try eventually("three wait for the slot") { try proxy.metric(.queued) == 3 }
            try silent.send(head("Content-Length: 5"))
            try eventually("four wait for the slot") { try proxy.metric(.queued) == 4 }
            leaving.close()
            try eventually("one has left") { try proxy.metric(.queued) == 3 }
            try stays("they wait", for: .milliseconds(2800)) { try proxy.metric(.queued) == 3 }
            gate.open()
            #expect(try expecting.progress { !$0.interim.isEmpty }.interim[0].status == 100)
            try expecting.send("hello")
            try begun.send("lo")
            #expect(try expecting.answer().status == 201)
            #expect(try begun.answer().status == 201)
            #expect(try silent.answer().status == 408, "from the slot on its time runs")
            #expect(origin.requests("/up").filter(\.isWhole).map(\.body.text) == ["hello", "hello"])
        }
    }

    @Test(.overHTTP1("content that its window lets in is read, or refused"))
    func `content without slot and memory is not read, or its request is refused`() throws {
        try withoutSlot(bodyBuffer: 0, memory: 1) { origin, proxy, gate in
            let (count, length) = (60, 20_000)
            let bytes = Pattern().bytes(0..<length)
            let first = Array(head("Content-Length: \(length)").utf8) + bytes[..<10_000]
            let clients = try (0..<count).map { _ in try proxy.connect() }
            for client in clients { try client.send(first) }
            try eventually("some are refused") {
                try proxy.metric(.requests) > 0 && proxy.metric(.queued) + proxy.metric(.requests) == count
            }
            let held = try proxy.metric(.queued)
            #expect(try held > 10 && proxy.metric(.inFlightBytes) <= 1 << 18)
            let late = try proxy.connect()
            try late.send(head("Content-Length: \(length)"))
            try eventually("one more waits") { try proxy.metric(.queued) == held + 1 }
            try late.send(bytes)
            try stays("it is neither read nor refused", for: .milliseconds(200)) {
                try proxy.metric(.queued) == held + 1 && proxy.metric(.inFlightBytes) <= 1 << 18
            }
            gate.open()
            // Who is refused need not take the rest.
            for client in clients { try? client.send(Array(bytes[10_000...])) }
            var served = 0
            for client in clients {
                let answer = try client.answer()
                if answer.status == 201 {
                    served += 1
                } else {
                    #expect(answer.status == 503 && answer["cache-status"]?.contains("memory-full") == true)
                }
            }
            #expect(served == held)
            #expect(try late.answer().status == 201)
            #expect(origin.requests("/up").allSatisfy { $0.body.length == length && $0.body.isIntact })
        }
    }
}
