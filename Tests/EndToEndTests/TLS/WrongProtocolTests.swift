import Testing

/// Clients that speak HTTP where TLS is expected, and the reverse.
@Suite(.scenario) struct WrongProtocolTests {
    @Test(arguments: [false, true])
    func `a request in the clear on a TLS port is answered with 400, in words, and told seldom`(_ isSplit: Bool) throws
    {
        try SecureSite.run { site in
            let client = try site.raw.connect()
            let request = Array(site.raw.request("GET", "/x").utf8)
            if isSplit {
                try client.send(Array(request[..<1]))
                try client.send(Array(request[1...]))
            } else {
                try client.send(request)
            }
            let answer = try client.answer()
            #expect(answer.status == 400 && answer.text.contains("https://") && answer["connection"] == "close")
            #expect(client.isClosed() && !client.isReset)
            try eventually("it is told") {
                site.proxy.diagnostics.contains("a request in the clear, answered 400")
            }
            for _ in 0..<50 { try site.raw.get("/x") }
            let lines = site.proxy.diagnostics.split(separator: "\n").filter { $0.contains("a request in the clear") }
            #expect(lines.count < 30, "the rest are counted")
            #expect(site.origin.total == 0)
        }
    }

    @Test func `a hello on a port in the clear gets no request through, and is told`() throws {
        try SecureSite.run { site in
            let client = try site.plain.connect()
            client.secure()
            #expect(throws: (any Error).self) {
                try client.send(site.plain.request("GET", "/x"))
                let answer = try client.answer()
                if !answer.isClean { throw Late(what: "an answer", place: #function) }
            }
            let curl = try Command.run(["curl", "-sS", "--max-time", "10", "https://\(site.plain.host)/x"])
            #expect(curl.exit != .code(0))
            #expect(site.origin.total == 0)
            // The admin page counts it.
            #expect(try site.proxy.metric(.malformed) >= 1)
            #expect(try site.plain.get("/x").text == "hello")
        }
    }

    @Test func `a TLS port survives bytes of no protocol`() throws {
        try SecureSite.run { site in
            let rubbish: [[UInt8]] = [
                [0], [0x16], [0x16, 3, 1, 0xFF, 0xFF], [0x16, 3, 1, 0, 4, 1, 0, 0, 0], [0x80, 0x2E, 1, 0, 2],
                [0x15, 3, 3, 0, 2, 1, 0], [0x17, 3, 3, 0, 1, 0], Array(repeating: 0xFF, count: 20_000),
                Array(repeating: 0x16, count: 20_000), [13, 10, 13, 10], Array("get /x HTTP/1.1\r\n\r\n".utf8),
            ]
            for bytes in rubbish {
                let client = try site.raw.connect()
                try client.send(bytes)
                client.finishSending()
                _ = client.isClosed()
                #expect(client.isEndedByPeer)
            }
            #expect(try site.get("/x").text == "hello")
        }
    }
}
