import Testing

@Suite(.scenario) struct ProxyProtocolTests {
    private static let trusts = Setting.other(section: "clients", key: "trusted-proxies", value: "[127.0.0.1]")
    private static let listens = Setting.other(
        section: "", key: "listen", value: "[{address: \"127.0.0.1:0\", proxy-protocol: true}]")

    private static let binary: [UInt8] =
        [13, 10, 13, 10, 0, 13, 10, 0x51, 0x55, 0x49, 0x54, 10, 0x21, 0x11, 0, 22]
        + [203, 0, 113, 9, 198, 51, 100, 1, 0xDC, 0x04, 0x01, 0xBB] + [0x02, 0, 7] + Array("a.local".utf8)

    private func proxied(
        _ settings: Setting..., conversation: (_ origin: ScriptedOrigin, _ proxy: Program) throws -> Void
    ) throws {
        try scenario(settings: settings + [Self.listens, .accessLog], conversation)
    }

    @Test(
        arguments: [
            (Array("PROXY TCP4 203.0.113.9 198.51.100.1 56324 443\r\n".utf8), "203.0.113.9"),
            (Array("PROXY TCP6 2001:db8::7 2001:db8::1 56324 443\r\n".utf8), "2001:db8::7"), (binary, "203.0.113.9"),
            (Array("PROXY UNKNOWN\r\n".utf8), "127.0.0.1"),
        ] as [([UInt8], String)])
    func `the client that the header names is in the log and in X-Forwarded-For`(_ header: [UInt8], _ client: String)
        throws
    {
        try proxied(Self.trusts) { origin, proxy in
            origin.on("/x") { _ in [.answer(200, "Cache-Control: no-store", body: "hello")] }
            let request = Array(proxy.request("GET", "/x").utf8)
            // Whole, in two pieces, and byte by byte.
            for pieces in [[header + request], [header, request], (header + request).map { [$0] }] {
                let connection = try proxy.connect()
                for piece in pieces { try connection.send(piece) }
                #expect(try connection.answer().text == "hello")
                // The header is for the whole connection.
                try connection.send(request)
                #expect(try connection.answer().text == "hello")
            }
            try eventually("six lines") { try proxy.accessLog.count == 6 }
            #expect(try proxy.accessLog.allSatisfy { $0["client"]?.string == client })
            #expect(origin.requests("/x").allSatisfy { $0["x-forwarded-for"] == client })
        }
    }

    @Test func `a connection without the header is refused in words`() throws {
        try proxied(Self.trusts) { origin, proxy in
            let plain = try proxy.get("/x")
            #expect(plain.status == 400 && plain.text.contains("PROXY header") && plain["connection"] == "close")
            let broken = try proxy.connect()
            try broken.send("PROXY TCP4 203.0.113.9\r\n")
            #expect(try broken.answer().status == 400)
            let endless = try proxy.connect()
            try endless.send("PROXY TCP4 " + String(repeating: "9", count: 200))
            #expect(try endless.answer().status == 400)
            #expect(origin.count("/x") == 0)
            #expect(proxy.diagnostics.contains("it does not begin with a PROXY header, answered 400"))
        }
    }

    @Test func `a header that does not come is waited for no longer than the head of a request`() throws {
        try proxied(Self.trusts, .headTimeout(.milliseconds(300))) { _, proxy in
            let connection = try proxy.connect()
            try connection.send("PROXY TCP4 ")
            #expect(connection.isClosed())
        }
    }

    @Test func `a peer that is not trusted is refused in words`() throws {
        try proxied(.other(section: "clients", key: "trusted-proxies", value: "[192.0.2.1]")) { origin, proxy in
            let connection = try proxy.connect()
            try connection.send("PROXY TCP4 203.0.113.9 198.51.100.1 56324 443\r\n" + proxy.request("GET", "/x"))
            let answer = try connection.answer()
            #expect(answer.status == 403 && answer.text.contains("trusted proxies"))
            #expect(origin.count("/x") == 0)
        }
    }

    @Test func `a connection beyond the most whose headers are awaited is refused in words`() throws {
        try proxied(Self.trusts, .workers(1), .maxConnections(2)) { _, proxy in
            let waiting = try (1...2).map { _ in try proxy.connect() }
            for connection in waiting { try connection.send("PROXY ") }
            try eventually("another is refused") {
                try proxy.connect().answer(within: aStall).status == 503
            }
            #expect(proxy.diagnostics.contains("limit of 2 client connections reached"))
        }
    }

    @Test func `the program ends although a header has not come`() throws {
        try proxied(Self.trusts, .drainTimeout(.milliseconds(200))) { _, proxy in
            let connection = try proxy.connect()
            try connection.send("PROXY ")
            proxy.terminate()
            #expect(try proxy.exited() == .code(0))
            #expect(connection.isClosed())
        }
    }
}
