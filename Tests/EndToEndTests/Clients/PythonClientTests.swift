import Testing

/// Python's requests takes a chunk only with the CRLF that ends it (urllib3, `read_chunked`).
@Suite(.scenario) struct PythonClientTests {
    private static let script = """
        import sys, requests
        with requests.get(sys.argv[1], stream=True, timeout=30) as response:
            for line in response.iter_lines():
                if line: print(line.decode())
        print("end")
        """

    @Test(.clientsInTheClear("Python asks for a URL of http"), arguments: ["no-store", "public"])
    func `each event reaches the client before the next is sent`(_ cacheControl: String) throws {
        try scenario { origin, proxy in
            let gates = (0..<4).map { _ in Gate() }
            origin.on("/events") { _ in
                [
                    .head(
                        200, "Content-Type: text/event-stream", "Transfer-Encoding: chunked",
                        "Cache-Control: \(cacheControl)")
                ]
                    + (1...3).flatMap { [.chunk("data: \($0)\n\n"), .gate(gates[$0 - 1])] as [Step] } + [.lastChunk()]
            }
            let clients = try (0..<2).map { _ in
                try Python(Self.script, importing: "requests", "http://\(proxy.host)/events")
            }
            var expected: [String] = []
            for number in 1...3 {
                expected.append("data: \(number)")
                for client in clients {
                    try eventually("event \(number) is there; \(client.lines) \(client.errors)") {
                        client.lines == expected
                    }
                }
                gates[number - 1].open()
            }
            for client in clients {
                try eventually("it has the end; \(client.errors)") { client.lines.last == "end" }
            }
        }
    }
}
