import Testing

/// What the origin has sent goes out at once and whole: the data of a chunk, its end, the last chunk, the trailers
/// (RFC 9112 §7.1). Who reads chunk by chunk waits for all of that.
@Suite(.scenario) struct WholeChunkTests {
    private static let request = "GET /x HTTP/1.1\r\nHost: a\r\nTE: trailers\r\nConnection: TE\r\n\r\n"

    /// A response in two chunks; each step waits for its gate.
    private static func script(_ origin: ScriptedOrigin, _ gates: [Gate], _ cacheControl: String) {
        origin.on("/x") { _ in
            [
                .gate(gates[0]), .head(200, "Transfer-Encoding: chunked", "Cache-Control: \(cacheControl)"),
                .chunk("one"),
                .gate(gates[1]), .chunk("two"), .gate(gates[2]), .lastChunk("X-Sum: 42"),
            ]
        }
    }

    @Test(arguments: ["max-age=60", "no-store"])
    func `each chunk reaches the client with its end before the next is sent`(_ cacheControl: String) throws {
        try scenario { origin, proxy in
            let gates = (0..<3).map { _ in Gate() }
            Self.script(origin, gates, cacheControl)
            let isShared = cacheControl == "max-age=60"
            var clients = try (0..<(isShared ? 6 : 1)).map { _ in try proxy.connect() }
            for client in clients { try client.send(Self.request) }
            try proxy.joined(clients.count)
            gates[0].open()
            for client in clients {
                #expect(try client.text(endingIn: "\r\n\r\n3\r\none\r\n").hasPrefix("HTTP/1.1 200"))
            }
            if isShared {
                let late = try proxy.connect()
                try late.send(Self.request)
                #expect(try late.text(endingIn: "\r\n\r\n3\r\none\r\n").hasPrefix("HTTP/1.1 200"))
                clients.append(late)
            }
            gates[1].open()
            for client in clients { #expect(try client.text(endingIn: "\r\ntwo\r\n") == "3\r\ntwo\r\n") }
            gates[2].open()
            for client in clients {
                #expect(try client.text(endingIn: "\r\n\r\n") == "0\r\nX-Sum: 42\r\n\r\n")
            }
            #expect(origin.count("/x") == 1)
        }
    }

    @Test func `each chunk of a request reaches the origin with its end before the next is sent`() throws {
        try scenario(.bodyBuffer(0)) { origin, proxy in
            origin.on("/up") { _ in [.requestBody, .answer(200, body: "thanks")] }
            let client = try proxy.connect()
            try client.send("POST /up HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n")
            var sent = ""
            for piece in ["one", "two", "three"] {
                try client.send("\(piece.utf8.count)\r\n\(piece)\r\n")
                sent += piece
                try eventually("the origin has the whole chunk") {
                    guard let request = origin.requests("/up").first else { return false }
                    return request.body.text == sent && !request.isInChunk
                }
            }
            try client.send("0\r\n\r\n")
            #expect(try client.answer().text == "thanks")
        }
    }
}
