import Testing

/// The content of an error is the operator's page, whoever made the error.
@Suite(.scenario) struct ErrorPageTests {
    private static let page = "<h1>Sorry</h1>\n"
    private static let route =
        "- {upstream: origin, error-pages: {"
        + [403, 404, 413, 416, 429, 500, 502, 503, 504].map { "\($0): PAGES/sorry.html" }.joined(separator: ", ") + "}"

    private func sorry(
        _ rest: String = "}", more: String = "", _ conversation: (ScriptedOrigin, Program) throws -> Void
    ) throws {
        try scenario(routes: Self.route + rest, more: more, pages: ["sorry.html": Self.page], conversation)
    }

    private func isPage(_ answer: Answer, _ status: Int) -> Bool {
        answer.status == status && answer.isClean && answer.text == Self.page
            && answer["content-type"] == "text/html; charset=utf-8" && answer["content-length"] == "\(Self.page.count)"
    }

    @Test(arguments: ["application/json", "text/x-${cache}"])
    func `a rule for Content-Type leaves a page its own`(_ type: String) throws {
        try sorry(", response-headers: {set: {content-type: \"\(type)\"}}}") { origin, proxy in
            origin.on("/x") { _ in [.answer(404, body: "hello")] }
            let ofOrigin = try proxy.get("/x")
            origin.goDown()
            let own = try proxy.get("/y")
            #expect(isPage(ofOrigin, 404) && isPage(own, 502))
        }
    }

    @Test(.overHTTP1("one request is of HTTP/1.0"))
    func `the fields of the origin stay, but for those about its content`() throws {
        try sorry { origin, proxy in
            let fields = [
                "Retry-After: 7", "WWW-Authenticate: Basic realm=\"a\"", "Cache-Control: no-cache", "Set-Cookie: a=b",
                "X-Own: c", "Server: d", "Vary: Accept",
            ]
            let about = [
                "Content-Type: text/plain", "Content-Language: de", "Content-Encoding: gzip", "ETag: \"a\"",
                "Last-Modified: Thu, 01 Jan 2026 00:00:00 GMT", "Content-Location: /y",
                "Content-Digest: sha-256=:YQ==:",
                "Repr-Digest: sha-256=:YQ==:", "Accept-Ranges: bytes", "Content-Disposition: attachment",
            ]
            origin.on("/x") { _ in [.head(503, fields + about + ["Content-Length: 5"]), .text("hello")] }
            origin.on("/chunked") { _ in [.head(500, "Transfer-Encoding: chunked"), .chunk("hello"), .lastChunk()] }
            let answer = try proxy.get("/x")
            #expect(isPage(answer, 503))
            for line in fields {
                let parts = line.split(separator: ":", maxSplits: 1).map(String.init)
                #expect(answer[parts[0]] == String(parts[1].dropFirst()), "\(line)")
            }
            for line in about.dropFirst() {
                #expect(answer[String(line.prefix { $0 != ":" })] == nil, "\(line)")
            }
            #expect(answer.cacheStatus.contains("fwd=uri-miss") && answer["via"] != nil && answer["date"] != nil)
            let chunked = try proxy.get("/chunked")
            #expect(isPage(chunked, 500) && chunked["transfer-encoding"] == nil)
            let old = try proxy.connect()
            try old.send("GET /chunked HTTP/1.0\r\nConnection: keep-alive\r\n\r\n")
            let kept = try old.answer()
            #expect(isPage(kept, 500) && kept["connection"] == "keep-alive")
        }
    }

    @Test func `hits, misses and passes have the page, and HEAD its length`() throws {
        try sorry { origin, proxy in
            origin.on("/x") { _ in [.answer(404, "Cache-Control: max-age=60", "ETag: \"a\"", body: "not here")] }
            let miss = try proxy.get("/x")
            #expect(isPage(miss, 404) && miss.cacheStatus.contains("stored"))
            for fields in [[], ["If-None-Match: \"a\""], ["Range: bytes=0-1"]] {
                let hit = try proxy.send("GET", "/x", fields)
                #expect(isPage(hit, 404) && hit.cacheStatus.contains("; hit"), "\(fields)")
                #expect(hit["age"] != nil && hit["etag"] == nil)
            }
            let head = try proxy.send("HEAD", "/x")
            #expect(head.status == 404 && head.body.length == 0 && head["content-length"] == "\(Self.page.count)")
            #expect(origin.count("/x") == 1)
            #expect(try isPage(proxy.send("POST", "/x", body: "a"), 404))
            let unstored = try proxy.send("HEAD", "/y")
            #expect(unstored.status == 404 && unstored["content-length"] == "\(Self.page.count)" && unstored.isClean)
            try eventually("seven lines") { try proxy.accessLog.count == 7 }
            let verdicts = try proxy.accessLog.compactMap { $0["verdict"]?.string }
            #expect(verdicts.sorted() == ["hit", "hit", "hit", "hit", "miss", "miss", "pass"])
            let client = try proxy.connect()
            try client.send(String(repeating: proxy.request("GET", "/x"), count: 5))
            for _ in 1...5 { #expect(try isPage(client.answer(), 404)) }
        }
    }

    @Test func `304 and every status without a page stay as they are`() throws {
        try sorry { origin, proxy in
            origin.on("/x") { _ in [.answer(200, "Cache-Control: max-age=60", "ETag: \"a\"", body: "hello")] }
            origin.on("/y") { _ in [.answer(501, "ETag: \"b\"", body: "no")] }
            origin.on("/z") { _ in [.answer(304, "ETag: \"c\"")] }
            #expect(try proxy.get("/x").text == "hello")
            let confirmed = try proxy.get("/x", "If-None-Match: \"a\"")
            #expect(confirmed.status == 304 && confirmed["etag"] == "\"a\"" && confirmed.body.length == 0)
            let other = try proxy.get("/y")
            #expect(other.status == 501 && other.text == "no" && other["etag"] == "\"b\"")
            #expect(try proxy.send("POST", "/z", "If-None-Match: \"c\"").status == 304)
        }
    }

    @Test func `errors that the proxy makes have the page as well`() throws {
        try sorry(", rate-limit: {rate: 6/h}}", more: "clients: {max-body-size: 10B}") { origin, proxy in
            origin.on("/x") { _ in [.answer(200, "Cache-Control: max-age=60", body: "hello")] }
            try proxy.get("/x")
            let unsatisfiable = try proxy.get("/x", "Range: bytes=100-")
            #expect(isPage(unsatisfiable, 416) && unsatisfiable["content-range"] == "bytes */5")
            #expect(unsatisfiable["cache-control"] == "no-store")
            #expect(try isPage(proxy.get("/y", "Cache-Control: only-if-cached"), 504))
            #expect(try isPage(proxy.send("POST", "/x", body: "more than ten"), 413))
            origin.goDown()
            let refused = try proxy.get("/y")
            #expect(isPage(refused, 502) && refused["proxy-status"]?.contains("connection_refused") == true)
            let head = try proxy.send("HEAD", "/y")
            #expect(head.status == 502 && head.isClean && head["content-length"] == "\(Self.page.count)")
            let limited = try proxy.get("/x")
            #expect(isPage(limited, 429) && limited["retry-after"] != nil && limited["ratelimit-policy"] != nil)
        }
        try sorry(", deny: [127.0.0.1]}") { _, proxy in
            let denied = try proxy.get("/x")
            #expect(isPage(denied, 403))
        }
        let own = """
            - {respond: {status: 503, body: no}, error-pages: {503: PAGES/sorry.html}}
            """
        try scenario(routes: own, pages: ["sorry.html": Self.page]) { _, proxy in
            let answer = try proxy.get("/x")
            #expect(isPage(answer, 503))
        }
    }

    @Test func `all who wait for one fetch get the page, and a stale response goes before it`() throws {
        try sorry(", stale-if-error: 1h}") { origin, proxy in
            let gate = Gate()
            origin.on("/x") { _ in [.gate(gate), .answer(503, "Retry-After: 9", body: "down")] }
            let crowd = proxy.crowd(30, get: "/x")
            try proxy.joined(30)
            gate.open()
            #expect(crowd.finished().allSatisfy { isPage($0, 503) && $0["retry-after"] == "9" })
            #expect(origin.count("/x") == 1)
            origin.on("/y") { request in
                [request.number == 1 ? .answer(200, "Cache-Control: max-age=0", body: "old") : .answer(503, body: "no")]
            }
            #expect(try proxy.get("/y").text == "old")
            #expect(try proxy.get("/y").text == "old")
        }
    }

    @Test func `the page does not wait for the content that it replaces`() throws {
        try sorry { origin, proxy in
            let gate = Gate()
            origin.on("/x") { _ in
                [
                    .head(500, "Content-Length: 10000000"), .pattern(0..<1_000_000), .gate(gate),
                    .pattern(1_000_000..<10_000_000),
                ]
            }
            let client = try proxy.connect()
            for _ in 1...2 {
                try client.send(proxy.request("GET", "/x"))
                #expect(try isPage(client.answer(), 500))
            }
            gate.open()
        }
    }
}
