import Testing

/// Ranges from a whole stored response (RFC 9110 §14).
@Suite(.scenario) struct RangeConversationTests {
    private let letters = "abcdefghijklmnopqrstuvwxyz"

    @Test(arguments: [
        ("bytes=0-4", "abcde", "bytes 0-4/26"), ("bytes=20-", "uvwxyz", "bytes 20-25/26"),
        ("bytes=-3", "xyz", "bytes 23-25/26"),
        ("bytes=25-99", "z", "bytes 25-25/26"), ("bytes=-99", "abcdefghijklmnopqrstuvwxyz", "bytes 0-25/26"),
    ])
    func `a single range gets 206`(_ range: String, _ part: String, _ contentRange: String) throws {
        try scenario { origin, proxy in
            origin.on("/x") { [letters] _ in [.answer(200, "Cache-Control: max-age=60", "ETag: \"v1\"", body: letters)]
            }
            try proxy.get("/x")
            let answer = try proxy.get("/x", "Range: \(range)")
            #expect(answer.status == 206 && answer.text == part && answer["content-range"] == contentRange)
            #expect(answer["content-length"] == "\(part.utf8.count)" && answer["etag"] == "\"v1\"")
            #expect(origin.count("/x") == 1)
        }
    }

    @Test func `a range past the end gets 416, an invalid one the full response, and If-Range decides`() throws {
        try scenario { origin, proxy in
            origin.on("/x") { [letters] _ in [.answer(200, "Cache-Control: max-age=60", "ETag: \"v1\"", body: letters)]
            }
            try proxy.get("/x")
            let past = try proxy.get("/x", "Range: bytes=26-30")
            #expect(past.status == 416 && past["content-range"] == "bytes */26")
            for range in ["pages=1-2", "bytes=4-2", "bytes=a-b", "bytes="] {
                let answer = try proxy.get("/x", "Range: \(range)")
                #expect(answer.status == 200 && answer.text == letters, "\(range)")
            }
            #expect(try proxy.get("/x", "Range: bytes=0-4", "If-Range: \"v1\"").status == 206)
            #expect(try proxy.get("/x", "Range: bytes=0-4", "If-Range: \"v0\"").status == 200)
            #expect(try proxy.get("/x", "Range: bytes=0-4", "If-Range: W/\"v1\"").status == 200)
        }
    }

    @Test func `a part is never served as the full response`() throws {
        try scenario { origin, proxy in
            origin.on("/x") { [letters] request in
                request["range"] == "bytes=0-4"
                    ? [
                        .answer(
                            206, "Cache-Control: max-age=60", "ETag: \"v1\"", "Content-Range: bytes 0-4/26",
                            body: "abcde")
                    ]
                    : [.answer(200, "Cache-Control: max-age=60", "ETag: \"v1\"", body: letters)]
            }
            let part = try proxy.get("/x", "Range: bytes=0-4")
            #expect(part.status == 206 && part.text == "abcde")
            let whole = try proxy.get("/x")
            #expect(whole.status == 200 && whole.text == letters)
        }
    }

    @Test func `a page with its own Content-Range keeps the field, and its parts have only the proxy's`() throws {
        try scenario { origin, proxy in
            let own = "Content-Range: items 0-25/99"
            origin.on("/x") { _ in [.answer(200, "Cache-Control: max-age=60", own, pattern: 1_000)] }
            let whole = try proxy.get("/x")
            #expect(whole["content-range"] == "items 0-25/99")
            let part = try proxy.get("/x", "Range: bytes=0-4")
            #expect(part.status == 206 && part.head?.all("content-range") == ["bytes 0-4/1000"])
            let decided = try proxy.get("/x", "Range: bytes=0-4", "Cache-Control: max-age=60")
            #expect(decided.status == 206 && decided.head?.all("content-range") == ["bytes 0-4/1000"])
            let parts = try proxy.get("/x", "Range: bytes=0-4,900-904")
            #expect(parts.status == 206 && parts["content-range"] == nil)
            let none = try proxy.get("/x", "Range: bytes=1000-")
            #expect(none.status == 416 && none.head?.all("content-range") == ["bytes */1000"])
        }
    }

    @Test func `a request with more ranges than permitted gets the full response`() throws {
        try scenario(.other(section: "caching", key: "max-ranges", value: "2")) { origin, proxy in
            origin.on("/x") { _ in [.answer(200, "Cache-Control: max-age=60", pattern: 1_000)] }
            try proxy.get("/x")
            #expect(try proxy.get("/x", "Range: bytes=0-1,900-901").status == 206)
            let whole = try proxy.get("/x", "Range: bytes=0-1,500-501,900-901")
            #expect(whole.status == 200 && whole.isWhole(1_000))
        }
    }

    @Test(arguments: ["bytes=0-4", "bytes=-1", "bytes=1000-"])
    func `a single range is ignored where the operator permits none`(_ range: String) throws {
        try scenario(.other(section: "caching", key: "max-ranges", value: "0")) { origin, proxy in
            origin.on("/x") { _ in [.answer(200, "Cache-Control: max-age=60", pattern: 1_000)] }
            try proxy.get("/x")
            for field in ["X: plain", "Cache-Control: max-stale"] {
                let whole = try proxy.get("/x", "Range: \(range)", field)
                #expect(whole.status == 200 && whole.isWhole(1_000), "\(field)")
            }
        }
    }

    @Test func `a range of a response too large to store is not forwarded if none is permitted`() throws {
        try scenario(.other(section: "caching", key: "max-ranges", value: "0"), .maxObjectSize(100_000)) {
            origin, proxy in
            origin.on("/x") { _ in [.answer(200, "Cache-Control: max-age=60", pattern: 300_000)] }
            for _ in 0..<2 {
                let whole = try proxy.get("/x", "Range: bytes=200000-200009")
                #expect(whole.status == 200 && whole.isWhole(300_000))
            }
            #expect(origin.requests("/x").map { $0["range"] } == [nil, nil])
        }
    }
}
