import Testing

/// A client that shuts its sending side after its request, as `nc -N` does, is answered as long as writing works. One
/// that has gone is found out by its reset, or, where it is silent, soon enough.
@Suite(.scenario) struct HalfClosedClientTests {
    /// How long a client is believed to be there that has shut its half, and to which nothing goes out.
    private static let patience = Duration.seconds(5)

    /// Sends a request and shuts the sending side.
    private static func ask(_ proxy: Program, _ request: String) throws -> Conversation {
        let client = try proxy.connect()
        try client.send(request)
        client.finishSending()
        return client
    }

    /// The program has heard of the end of all its clients.
    private static func hasHeard(_ proxy: Program) throws {
        let port = proxy.endpoint.port
        try eventually("the ends have arrived") { !System.hasOpenConnection(ownPort: port) }
    }

    @Test(.overHTTP1("the end of a connection ends its streams"), arguments: ["max-age=60", "no-store"])
    func `a half-closed client gets its response`(_ control: String) throws {
        try scenario { origin, proxy in
            let head = Gate()
            origin.on("/x") { _ in [.gate(head), .answer(200, "Cache-Control: \(control)", body: "here")] }
            let clients = try (0..<3).map { _ in try Self.ask(proxy, proxy.request("GET", "/x")) }
            try proxy.joined(3)
            try Self.hasHeard(proxy)
            head.open()
            for client in clients {
                let answer = try client.answer()
                #expect(answer.text == "here" && answer["connection"] == "close")
                #expect(client.isClosed(within: .seconds(5)) && !client.isReset)
            }
            #expect(origin.count("/x") == (control == "no-store" ? 3 : 1))
        }
    }

    @Test(.overHTTP1("it is about HTTP/1.0")) func `a half-closed HTTP 1 point 0 client gets its response`() throws {
        try scenario { origin, proxy in
            let head = Gate()
            origin.on("/x") { _ in
                [.gate(head), .head(200, "Transfer-Encoding: chunked"), .chunk("here"), .lastChunk()]
            }
            let client = try Self.ask(proxy, "GET /x HTTP/1.0\r\nHost: a\r\n\r\n")
            try proxy.joined(1)
            try Self.hasHeard(proxy)
            head.open()
            let answer = try client.answer()
            #expect(answer.text == "here" && answer.isClean && !client.isReset)
        }
    }

    @Test(.overHTTP1("the end of a connection ends its streams"), arguments: [0, 65_536])
    func `a half-closed client with complete content gets its response`(_ buffer: Int)
        throws
    {
        try scenario(.bodyBuffer(buffer)) { origin, proxy in
            let head = Gate()
            origin.on("/up") { _ in [.requestBody, .gate(head), .answer(200, body: "thanks")] }
            let client = try Self.ask(proxy, proxy.request("POST", "/up", body: "hello"))
            try eventually("the origin has it") { origin.requests("/up").first?.isWhole == true }
            try Self.hasHeard(proxy)
            head.open()
            #expect(try client.answer().text == "thanks")
        }
    }

    @Test func `a half-closed client with incomplete content has left`() throws {
        try scenario(.bodyBuffer(0)) { origin, proxy in
            origin.on("/up") { _ in [.requestBody, .answer(200)] }
            let client = try Self.ask(proxy, "POST /up HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nhello")
            #expect(client.isClosed())
            try eventually("the origin learns of it") { origin.requests("/up").allSatisfy { $0.wasAbandoned } }
        }
    }

    @Test(.overHTTP1("the end of a connection ends its streams"))
    func `a half-closed client gets the responses to all its requests, in order`() throws {
        try scenario { origin, proxy in
            let head = Gate()
            for path in ["/a", "/b", "/c"] {
                origin.on(path) { _ in [.gate(head), .answer(200, "Cache-Control: no-store", body: path)] }
            }
            let client = try Self.ask(proxy, ["/a", "/b", "/c"].map { proxy.request("GET", $0) }.joined())
            try proxy.joined(1)
            try Self.hasHeard(proxy)
            head.open()
            for path in ["/a", "/b", "/c"] { #expect(try client.answer().text == path) }
            #expect(client.isClosed(within: .seconds(5)))
        }
    }

    /// While the request before is served, and before that is begun.
    @Test(.overHTTP1("the end of a connection ends its streams"), arguments: [false, true])
    func `a client that leaves behind several requests is noticed while the last is served`(_ resets: Bool) throws {
        try scenario(.whenLastLeaves("cancel")) { origin, proxy in
            let head = Gate()
            origin.on("/a") { _ in [.gate(head), .answer(200, "Cache-Control: no-store", body: "a")] }
            origin.on("/slow") { _ in [.silence] }
            let client = try Self.ask(proxy, proxy.request("GET", "/a") + proxy.request("GET", "/slow"))
            try proxy.joined(1)
            try Self.hasHeard(proxy)
            head.open()
            #expect(try client.answer().text == "a")
            try eventually("the second is asked") { origin.count("/slow") == 1 }
            if resets { client.reset() }
            try eventually("the origin is spared", within: resets ? .seconds(3) : .seconds(15)) {
                origin.requests("/slow").first?.wasAbandoned == true
            }
        }
    }

    @Test(.overHTTP1("the end of a connection ends its streams")) func `a half-closed client gets a body to its end`()
        throws
    {
        try scenario { origin, proxy in
            let rest = Gate()
            origin.on("/x") { _ in
                [.head(200, "Transfer-Encoding: chunked"), .chunk("one "), .gate(rest), .chunk("two"), .lastChunk()]
            }
            let client = try proxy.connect()
            try client.send(proxy.request("GET", "/x"))
            try client.progress { $0.text == "one " }
            client.finishSending()
            try Self.hasHeard(proxy)
            rest.open()
            #expect(try client.answer().text == "one two")
            #expect(client.isClosed(within: .seconds(5)))
        }
    }

    @Test(.overHTTP1("it is about an upgrade")) func `a half-closed client of a tunnel still gets the origin's bytes`()
        throws
    {
        try scenario { origin, proxy in
            let head = Gate()
            origin.on("/ws") { _ in
                [
                    .gate(head), .raw("HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n"),
                    .raw("hello"), .close,
                ]
            }
            let client = try Self.ask(proxy, proxy.request("GET", "/ws", ["Connection: upgrade", "Upgrade: x"]))
            try proxy.joined(1)
            try Self.hasHeard(proxy)
            head.open()
            #expect(try client.answer().status == 101)
            #expect(try client.bytes(5) == Array("hello".utf8))
            #expect(client.isClosed())
        }
    }

    @Test(.overHTTP1("the end of a connection ends its streams"), arguments: [false, true])
    func `a client that resets has left at once`(_ hasBody: Bool) throws {
        try scenario(.whenLastLeaves("cancel")) { origin, proxy in
            origin.on("/x") { _ in
                (hasBody ? [.head(200, "Transfer-Encoding: chunked"), .chunk("one ")] : []) + [.silence]
            }
            let client = try Self.ask(proxy, proxy.request("GET", "/x"))
            try proxy.joined(1)
            if hasBody { try client.progress { $0.text == "one " } }
            try Self.hasHeard(proxy)
            client.reset()
            try eventually("the origin is spared", within: .seconds(5)) {
                origin.requests("/x").first?.wasAbandoned == true
            }
        }
    }

    @Test func `a closed client is noticed when bytes are written`() throws {
        try scenario { origin, proxy in
            let events = (0..<3).map { _ in Gate() }
            origin.on("/x") { _ in
                [.head(200, "Transfer-Encoding: chunked", "Cache-Control: no-store"), .chunk("one ")]
                    + events.flatMap { [.gate($0), .chunk("more ")] as [Step] } + [.silence]
            }
            let client = try proxy.connect()
            try client.send(proxy.request("GET", "/x"))
            try client.progress { $0.text == "one " }
            client.close()
            try Self.hasHeard(proxy)
            events[0].open()
            try eventually("the origin is spared", within: .seconds(5)) {
                origin.requests("/x").first?.wasAbandoned == true
            }
        }
    }

    @Test func `a closed client is given up if nothing was written for a while`() throws {
        try scenario(.whenLastLeaves("cancel")) { origin, proxy in
            origin.on("/x") { _ in [.silence] }
            let client = try proxy.connect()
            try client.send(proxy.request("GET", "/x"))
            try proxy.joined(1)
            client.close()
            try eventually("the origin is spared", within: Self.patience + aStall) {
                origin.requests("/x").first?.wasAbandoned == true
            }
        }
    }

    @Test func `a client that closes a Unix socket has left at once`() throws {
        let origin = try ScriptedOrigin()
        defer { origin.stop() }
        origin.on("/x") { _ in [.silence] }
        let folder = try System.makeTemporaryFolder()
        defer { System.removeFolder(folder) }
        let proxy = try Program(
            folder: folder, ["--listen", "unix:\(folder)/s", "--upstream", origin.url, "--workers", "1"])
        defer { proxy.stop() }
        let place = Address(endpoint: .unix("\(folder)/s"))
        try eventually("it listens") { (try? place.connect()) != nil }
        let client = try place.connect()
        try client.send("POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\nx")
        try eventually("the origin is asked") { origin.count("/x") == 1 }
        client.close()
        try eventually("the origin is spared", within: .seconds(5)) {
            origin.requests("/x").first?.wasAbandoned == true
        }
    }

    @Test func `a half-closed client on a Unix socket gets its response`() throws {
        let origin = try ScriptedOrigin()
        defer { origin.stop() }
        let head = Gate()
        origin.on("/x") { _ in [.gate(head), .answer(200, body: "here")] }
        let folder = try System.makeTemporaryFolder()
        defer { System.removeFolder(folder) }
        let proxy = try Program(
            folder: folder, ["--listen", "unix:\(folder)/s", "--upstream", origin.url, "--workers", "1"])
        defer { proxy.stop() }
        let place = Address(endpoint: .unix("\(folder)/s"))
        try eventually("it listens") { (try? place.connect()) != nil }
        let client = try place.connect()
        try client.send("GET /x HTTP/1.1\r\nHost: a\r\n\r\n")
        client.finishSending()
        try eventually("the origin is asked") { origin.count("/x") == 1 }
        head.open()
        #expect(try client.answer().text == "here")
    }
}
