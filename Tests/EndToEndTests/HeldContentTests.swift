import Testing

/// Request content that the origin does not take, or not yet: the client waits with it, and nothing of it is lost.
@Suite(.scenario) struct HeldContentTests {
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

    @Test func `an origin that takes nothing costs little memory, however much clients send`() throws {
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

    @Test func `content that has to wait for a place at the origin comes whole`() throws {
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

    @Test func `what follows the content is the next request`() throws {
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

    @Test func `many small chunks come whole and in order`() throws {
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
}
