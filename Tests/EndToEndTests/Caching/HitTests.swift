import Testing

/// What is stored is served, and says so.
@Suite(.scenario) struct HitTests {
    @Test func `an old Date makes a response stale, unless the operator distrusts Date`() throws {
        for (setting, fetches) in [("true", 2), ("false", 1)] {
            try scenario(.other(section: "caching", key: "trust-date", value: setting)) { origin, proxy in
                origin.on("/x") { _ in
                    [.answer(200, "Cache-Control: max-age=60", "Date: Sun, 06 Nov 1994 08:49:37 GMT", body: "x")]
                }
                try proxy.get("/x")
                try proxy.get("/x")
                #expect(origin.count("/x") == fetches)
            }
        }
    }

    @Test func `a hit has Age and hit in Cache-Status, a miss has the reason and stored`() throws {
        try scenario { origin, proxy in
            origin.on("/x") { _ in [.answer(200, "Cache-Control: max-age=600", body: "x")] }
            let miss = try proxy.get("/x")
            #expect(miss["age"] == nil || miss["age"] == "0")
            #expect(miss.cacheStatus.hasPrefix("coalesced"))
            #expect(miss.cacheStatus.contains("fwd=uri-miss") && miss.cacheStatus.contains("stored"))
            let hit = try proxy.get("/x")
            #expect(hit.text == "x" && hit["age"].flatMap { Int($0) } != nil)
            #expect(hit.cacheStatus.contains("hit") && hit.cacheStatus.contains("ttl="))
            #expect(hit["via"]?.contains("coalesced") ?? false)
            #expect(hit["content-length"] == "1")
            #expect(try proxy.metric(.hits) == 1)
        }
    }

    @Test func `Age includes the Age of the origin's response`() throws {
        try scenario { origin, proxy in
            origin.on("/x") { _ in [.answer(200, "Cache-Control: max-age=600", "Age: 100", body: "x")] }
            try proxy.get("/x")
            let age = try proxy.get("/x")["age"].flatMap { Int($0) } ?? 0
            #expect((100...110).contains(age))
        }
    }

    @Test func `a lifetime of one second ends after one second`() throws {
        try scenario { origin, proxy in
            origin.on("/x") { [.answer(200, "Cache-Control: max-age=1", body: "\($0.number)")] }
            #expect(try proxy.get("/x").text == "1")
            try eventually("it has expired", within: .seconds(5)) { try proxy.get("/x").text == "2" }
        }
    }

    @Test func `a response stored from chunks is served with a length`() throws {
        try scenario { origin, proxy in
            origin.on("/x") { _ in
                [
                    .head(200, "Cache-Control: max-age=60", "Transfer-Encoding: chunked"), .chunk("one"), .chunk("two"),
                    .lastChunk(),
                ]
            }
            #expect(try proxy.get("/x").text == "onetwo")
            let hit = try proxy.get("/x")
            #expect(hit.text == "onetwo" && hit["content-length"] == "6" && hit["transfer-encoding"] == nil)
        }
    }

    @Test func `a client that has the response gets 304`() throws {
        try scenario { origin, proxy in
            let date = System.httpDate(-86_400)
            origin.on("/x") { _ in
                [
                    .answer(
                        200, "Cache-Control: max-age=600", "ETag: \"v1\"", "Last-Modified: \(date)",
                        "Content-Type: text/plain", body: "x")
                ]
            }
            try proxy.get("/x")
            for field in [
                "If-None-Match: \"v1\"", "If-None-Match: \"v0\", W/\"v1\"", "If-None-Match: *",
                "If-Modified-Since: \(date)",
            ] {
                let answer = try proxy.get("/x", field)
                #expect(answer.status == 304 && answer.body.length == 0 && answer["etag"] == "\"v1\"", "\(field)")
            }
            for field in ["If-None-Match: \"v2\"", "If-Modified-Since: \(System.httpDate(-2 * 86_400))"] {
                #expect(try proxy.get("/x", field).status == 200, "\(field)")
            }
            #expect(origin.count("/x") == 1)
        }
    }

    @Test func `a client's condition does not keep the full page from others`() throws {
        try scenario { origin, proxy in
            origin.on("/x") { request in
                request["if-none-match"] == "\"v1\""
                    ? [.answer(304, "ETag: \"v1\"", "Cache-Control: max-age=600")]
                    : [.answer(200, "Cache-Control: max-age=600", "ETag: \"v1\"", body: "whole")]
            }
            #expect(try proxy.get("/x", "If-None-Match: \"v1\"").status == 304)
            let whole = try proxy.get("/x")
            #expect(whole.status == 200 && whole.text == "whole")
        }
    }

    @Test func `request directives can force a fetch, or forbid one`() throws {
        try scenario { origin, proxy in
            origin.on("/x") { [.answer(200, "Cache-Control: max-age=600", body: "\($0.number)")] }
            let empty = try proxy.get("/x", "Cache-Control: only-if-cached")
            #expect(empty.status == 504)
            #expect(try proxy.get("/x").text == "1")
            #expect(try proxy.get("/x", "Cache-Control: no-cache").text == "2")
            #expect(try proxy.get("/x", "Cache-Control: only-if-cached").text == "2")
        }
    }

    @Test func `an unsafe request invalidates the page`() throws {
        try scenario { origin, proxy in
            origin.on("/x") { request in
                request.method == "POST"
                    ? [.requestBody, .answer(204)]
                    : [.answer(200, "Cache-Control: max-age=600", body: "\(request.number)")]
            }
            #expect(try proxy.get("/x").text == "1")
            try proxy.send("POST", "/x", body: "change")
            #expect(try proxy.get("/x").text == "3")
        }
    }

    @Test(
        .overHTTP1("one asks for an upgrade"),
        arguments: [
            "If-Match: \"a\"", "If-Unmodified-Since: Mon, 01 Jan 2024 00:00:00 GMT",
            "Upgrade: websocket\r\nConnection: Upgrade",
        ])
    func `a request with only-if-cached never reaches the origin`(_ field: String) throws {
        try scenario { origin, proxy in
            origin.on("/x") { _ in [.answer(200, "Cache-Control: max-age=60", "ETag: \"a\"", body: "x")] }
            try proxy.get("/x")
            let client = try proxy.connect()
            try client.send(
                "GET /x HTTP/1.1\r\nHost: \(proxy.host)\r\nCache-Control: only-if-cached\r\n\(field)\r\n\r\n")
            #expect(try client.answer().status == 504)
            #expect(origin.count("/x") == 1)
            #expect(try proxy.get("/x").text == "x")
        }
    }
}
