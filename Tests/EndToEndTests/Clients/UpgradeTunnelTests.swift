import Testing

@Suite(.overHTTP1("HTTP/2 has no Upgrade"), .scenario) struct UpgradeTunnelTests {
    private let fields = [
        "Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
        "Sec-WebSocket-Version: 13",
    ]
    static let head =
        "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: x\r\n\r\n"
    static let switching = Step.raw(head)

    @Test func `bytes pass both ways after a 101`() throws {
        try scenario { origin, proxy in
            origin.on("/ws") { _ in [Self.switching, .raw("welcome"), .echo] }
            let client = try proxy.connect()
            try client.send(proxy.request("GET", "/ws", fields))
            let answer = try client.answer()
            #expect(answer.status == 101 && answer["upgrade"] == "websocket" && answer["sec-websocket-accept"] == "x")
            #expect(try client.bytes(7) == Array("welcome".utf8))
            for message in ["ping", String(repeating: "long", count: 50_000)] {
                try client.send(message)
                #expect(try client.bytes(message.utf8.count) == Array(message.utf8))
            }
            #expect(origin.requests("/ws")[0]["upgrade"] == "websocket")
            client.close()
            try eventually("the origin's side ends too") { origin.openConnections == 0 }
        }
    }

    @Test func `the access log has the same fields for a 101 as for any response`() throws {
        try scenario(.accessLog) { origin, proxy in
            origin.on("/ws") { _ in [Self.switching, .echo] }
            let client = try proxy.connect()
            try client.send(proxy.request("GET", "/ws", fields))
            #expect(try client.answer().status == 101)
            try eventually("its line") { try proxy.accessLog.count == 1 }
            let line = try proxy.accessLog[0]
            #expect(line["status"]?.number == 101 && line["upstream_status"]?.number == 101)
            let (first, all) = (line["ttfb"]?.number ?? -1, line["duration"]?.number ?? -1)
            #expect(first >= 0 && first == all, "\(first) of \(all)")
        }
    }

    @Test func `a reset by the origin resets the client's connection`() throws {
        try scenario { origin, proxy in
            let gate = Gate()
            origin.on("/ws") { _ in [.raw(Self.head + "half"), .gate(gate), .reset] }
            let client = try proxy.connect()
            try client.send(proxy.request("GET", "/ws", fields))
            #expect(try client.answer().status == 101)
            #expect(try client.bytes(4) == Array("half".utf8))
            gate.open()
            #expect(client.isClosed() && client.isReset)
        }
    }

    @Test func `bytes sent right behind the request reach the origin`() throws {
        try scenario { origin, proxy in
            origin.on("/ws") { _ in [Self.switching, .echo] }
            let client = try proxy.connect()
            try client.send(proxy.request("GET", "/ws", fields) + "early")
            #expect(try client.answer().status == 101)
            #expect(try client.bytes(5) == Array("early".utf8))
        }
    }

    @Test func `bytes sent right behind the 101 reach the client`() throws {
        try scenario { origin, proxy in
            origin.on("/ws") { _ in [.raw(Self.head + "welcome"), .echo] }
            let client = try proxy.connect()
            try client.send(proxy.request("GET", "/ws", fields))
            #expect(try client.answer().status == 101)
            #expect(try client.bytes(7) == Array("welcome".utf8))
            try client.send("back")
            #expect(try client.bytes(4) == Array("back".utf8))
        }
    }

    @Test(arguments: [["Content-Length: 10"], ["Transfer-Encoding: chunked"]])
    func `a 101 in the middle of the request's content is not accepted`(_ framing: [String]) throws {
        try scenario(.bodyBuffer(0)) { origin, proxy in
            origin.on("/ws") { _ in [Self.switching, .echo] }
            let client = try proxy.connect()
            let isChunked = framing[0].hasPrefix("T")
            try client.send(proxy.request("POST", "/ws", fields + framing) + (isChunked ? "a\r\n01234" : "01234"))
            #expect(try client.answer().status == 502)
            #expect(client.isClosed())
            // The whole of it first, then the protocol.
            let patient = try proxy.connect()
            origin.on("/ws") { _ in [.requestBody, Self.switching, .echo] }
            try patient.send(
                proxy.request("POST", "/ws", fields + framing) + (isChunked ? "5\r\n01234\r\n0\r\n\r\n" : "0123456789"))
            #expect(try patient.answer().status == 101)
            try patient.send("tunnel")
            #expect(try patient.bytes(6) == Array("tunnel".utf8))
        }
    }

    @Test func `a tunnel that the origin ends is ended for the client`() throws {
        try scenario { origin, proxy in
            let gate = Gate()
            origin.on("/ws") { _ in [Self.switching, .raw("bye"), .gate(gate), .close] }
            let client = try proxy.connect()
            try client.send(proxy.request("GET", "/ws", fields))
            #expect(try client.answer().status == 101)
            #expect(try client.bytes(3) == Array("bye".utf8))
            gate.open()
            #expect(client.isClosed())
        }
    }

    @Test func `a silent tunnel ends after its timeout, and not before`() throws {
        try scenario(.tunnelTimeout(.seconds(3))) { origin, proxy in
            origin.on("/ws") { _ in [Self.switching, .echo] }
            let client = try proxy.connect()
            try client.send(proxy.request("GET", "/ws", fields))
            #expect(try client.answer().status == 101)
            let began = Instant.now
            for _ in 0..<7 {
                System.nap(.milliseconds(500)) // the silence itself is what is tested
                try client.send("still here")
                #expect(try client.bytes(10) == Array("still here".utf8))
            }
            #expect(client.isClosed() && client.isReset, "an end would mean that all was said")
            #expect(Instant.now - began >= .milliseconds(6400))
            try eventually("the origin's side ends too") { origin.openConnections == 0 }
        }
    }

    @Test func `an origin that does not switch protocols responds as usual`() throws {
        try scenario { origin, proxy in
            origin.on("/ws") { _ in [.answer(426, "Upgrade: other", body: "no")] }
            let client = try proxy.connect()
            try client.send(proxy.request("GET", "/ws", fields))
            let answer = try client.answer()
            #expect(answer.status == 426 && answer.text == "no")
        }
    }

    @Test(arguments: ["h2c", "h2c/1", "HTTP/2.0", "TLS/1.0", "websocket, TLS/1.2", "\"h2c\"", "h2c;q=1", ""])
    func `an upgrade to a protocol that carries requests, or to none, is not forwarded`(_ protocols: String) throws {
        try scenario { origin, proxy in
            origin.on("*") { _ in [.answer(200, body: "still HTTP/1.1")] }
            let answer = try proxy.get(
                "/h2", "Connection: Upgrade", "Upgrade: \(protocols)", "HTTP2-Settings: AAMAAABk")
            #expect(answer.text == "still HTTP/1.1")
            let asked = origin.requests("/h2")[0]
            #expect(asked["upgrade"] == nil && asked["connection"] == nil && asked["http2-settings"] == nil)
        }
    }

    /// `curl --http2` and Java's client offer HTTP/2 with every request.
    @Test(arguments: [
        ["Connection: Upgrade, HTTP2-Settings", "Upgrade: h2c", "HTTP2-Settings: AAMAAABk"], ["Upgrade: websocket"],
        ["Connection: Upgrade", "Upgrade:"],
    ])
    func `a request with an ignored upgrade is served like any other`(_ fields: [String]) throws {
        try scenario(.workers(1)) { origin, proxy in
            let gate = Gate()
            origin.on("/x") { _ in [.gate(gate), .answer(200, "Cache-Control: max-age=60", body: "x")] }
            let crowd = Crowd(at: proxy.endpoint, Array(repeating: proxy.visitor("/x", fields), count: 10))
            let others = proxy.crowd(10, get: "/x")
            try proxy.joined(20)
            gate.open()
            #expect((crowd.finished() + others.finished()).allSatisfy { $0.text == "x" })
            #expect(origin.count("/x") == 1)
            let client = try proxy.connect()
            for more in [[], ["Cache-Control: only-if-cached"]] {
                try client.send(proxy.request("GET", "/x", fields + more))
                #expect(try client.answer().cacheStatus.contains("hit"))
            }
            try client.send(
                "GET /x HTTP/1.0\r\nHost: \(proxy.host)\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
            #expect(try client.answer().cacheStatus.contains("hit"))
            #expect(origin.count("/x") == 1)
        }
    }

    @Test func `a 101 has no length, whatever the origin sends`() throws {
        try scenario { origin, proxy in
            origin.on("/ws") { _ in
                [
                    .raw(
                        "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nContent-Length: 7\r\n\r\n"
                    ), .echo,
                ]
            }
            let client = try proxy.connect()
            try client.send(proxy.request("GET", "/ws", fields))
            let answer = try client.answer()
            #expect(answer.status == 101 && answer["content-length"] == nil)
        }
    }

    @Test func `a tunnel buffers little for a peer that reads nothing`() throws {
        try scenario(.workers(1)) { origin, proxy in
            let gate = Gate()
            origin.on("/ws") { _ in [Self.switching, .gate(gate), .close] }
            let request = proxy.request("GET", "/ws", fields)
            try proxy.send("TRACE", "/")
            let before = proxy.residentBytes
            let visitor = Visitor(request: Array(request.utf8) + [UInt8](repeating: 0x78, count: 16 << 20))
            let crowd = Crowd(at: proxy.endpoint, Array(repeating: visitor, count: 40))
            try stays("memory is bounded", for: .seconds(2)) { proxy.residentBytes - before < 8 << 20 }
            #expect(origin.count("/ws") == 40)
            gate.open()
            crowd.close()
        }
    }
}
