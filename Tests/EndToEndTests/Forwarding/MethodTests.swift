import Testing

/// Methods that are registered as safe or idempotent (RFC 9110 §9.2, RFC 10008) are treated so, GET or not.
@Suite(.scenario) struct MethodTests {
    @Test(arguments: ["QUERY", "PROPFIND", "REPORT", "SEARCH", "OPTIONS"])
    func `a safe request leaves the stored response alone`(_ method: String) throws {
        try scenario { origin, proxy in
            for path in ["/x", "/y", "/z"] {
                origin.on(path) { request in
                    [
                        request.method == "GET"
                            ? .answer(200, "Cache-Control: max-age=60", "Cache-Groups: \"g\"", body: "x")
                            : .answer(
                                200, "Location: /y", "Content-Location: /z", "Cache-Group-Invalidation: \"g\"",
                                body: "found")
                    ]
                }
                try proxy.get(path)
            }
            let found = try proxy.send(method, "/x", body: "select")
            #expect(found.text == "found" && found.cacheStatus.contains("fwd=method"))
            for path in ["/x", "/y", "/z"] {
                let hit = try proxy.get(path)
                #expect(hit.text == "x" && hit.cacheStatus.contains("; hit"), "\(path): \(hit.cacheStatus)")
            }
        }
    }

    @Test(arguments: ["PROPPATCH", "MKCOL", "MOVE", "LOCK", "BREW", "query", "purge"])
    func `a request that is unsafe or has an unregistered method invalidates`(_ method: String) throws {
        try scenario { origin, proxy in
            origin.on("/x") { request in
                [
                    request.method == "GET"
                        ? .answer(200, "Cache-Control: max-age=60", body: "x") : .answer(207, body: "done")
                ]
            }
            try proxy.get("/x")
            try proxy.send(method, "/x")
            try proxy.get("/x")
            #expect(origin.requests("/x").map(\.method) == ["GET", method, "GET"])
        }
    }

    @Test func `a fetch in flight is stored although a QUERY was forwarded meanwhile`() throws {
        try scenario { origin, proxy in
            let gate = Gate()
            origin.on("/x") { request in
                request.method == "GET"
                    ? [.gate(gate), .answer(200, "Cache-Control: max-age=60", body: "x")]
                    : [.answer(200, body: "found")]
            }
            let reader = proxy.crowd(1, get: "/x")
            try eventually("it is asked") { origin.count("/x") == 1 }
            #expect(try proxy.send("QUERY", "/x", body: "q").text == "found")
            gate.open()
            #expect(reader.finished()[0].text == "x")
            #expect(try proxy.get("/x").cacheStatus.contains("; hit"))
        }
    }

    @Test(arguments: ["QUERY", "SEARCH", "MKCOL", "UNLOCK"])
    func `an idempotent request that met a dead connection is sent once more`(_ method: String) throws {
        try scenario(.workers(1)) { origin, proxy in
            origin.on("*") { request in
                request.ordinal == 0 ? [.answer(200, "Cache-Control: no-store", body: "done")] : [.close]
            }
            try proxy.get("/warm")
            #expect(try proxy.send(method, "/x").text == "done")
            #expect(origin.count("/x") == 2)
        }
    }

    @Test(arguments: ["LOCK", "BREW"])
    func `a request that is neither safe nor idempotent is not sent once more`(_ method: String) throws {
        try scenario(.workers(1)) { origin, proxy in
            origin.on("*") { request in
                request.ordinal == 0 ? [.answer(200, "Cache-Control: no-store", body: "done")] : [.close]
            }
            try proxy.get("/warm")
            #expect(try proxy.send(method, "/x").status == 502)
            #expect(origin.count("/x") == 1)
        }
    }

    struct Content: Sendable, CustomTestStringConvertible {
        let method: String
        var length = 20_000
        var isChunked = false
        let isRepeated: Bool

        var testDescription: String { "\(method) with \(length) bytes\(isChunked ? ", chunked" : "")" }
        var request: [UInt8] {
            let content = [UInt8](repeating: 0x78, count: length)
            let head = "\(method) /x HTTP/1.1\r\nHost: a\r\n"
            guard isChunked else { return Array("\(head)Content-Length: \(length)\r\n\r\n".utf8) + content }
            return Array("\(head)Transfer-Encoding: chunked\r\n\r\n\(String(length, radix: 16))\r\n".utf8) + content
                + Array("\r\n0\r\n\r\n".utf8)
        }
    }

    /// The default `body-buffer` is 64 KiB.
    @Test(arguments: [
        Content(method: "QUERY", isRepeated: true), Content(method: "QUERY", isChunked: true, isRepeated: true),
        Content(method: "PROPFIND", length: 1, isRepeated: true), Content(method: "GET", isRepeated: true),
        Content(method: "QUERY", length: 100_000, isRepeated: false), Content(method: "PUT", isRepeated: false),
        Content(method: "POST", isRepeated: false),
    ])
    func `a safe request is sent once more with the content that was read ahead`(_ row: Content) throws {
        try scenario(.workers(1)) { origin, proxy in
            origin.on("*") { request in
                request.ordinal == 0
                    ? [.requestBody, .answer(200, "Cache-Control: no-store", body: "done")] : [.requestBody, .close]
            }
            try proxy.get("/warm")
            let client = try proxy.connect()
            try client.send(row.request)
            let answer = try client.answer()
            #expect(answer.status == (row.isRepeated ? 200 : 502))
            let asked = origin.requests("/x")
            #expect(asked.count == (row.isRepeated ? 2 : 1))
            #expect(asked.allSatisfy { $0.body.length == row.length }, "\(asked.map(\.body.length))")
        }
    }

    @Test func `a safe request is sent to the next server if its new connection was closed`() throws {
        try scenario { origin, _ in
            let dying = try ScriptedOrigin()
            defer { dying.stop() }
            dying.on("*") { _ in [.requestBody, .close] }
            origin.on("*") { _ in [.requestBody, .answer(200, body: "done")] }
            let proxy = try Program.serve(file: Setting.file([.workers(1)], servers: [dying.url, origin.url]))
            defer { proxy.stop() }
            // Servers are asked in turn: one of the two meets the dying one first.
            for _ in 0..<2 {
                let answer = try proxy.send("QUERY", "/x", body: "select")
                #expect(answer.text == "done")
            }
            #expect(dying.count("/x") >= 1 && origin.count("/x") == 2)
            #expect(origin.requests("/x").allSatisfy { $0.body.length == 6 })
        }
    }
}
