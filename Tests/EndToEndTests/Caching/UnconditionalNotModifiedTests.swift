import Testing

/// A 304 to a request without conditions: nobody has what it confirms (RFC 9110 §15.4.5).
@Suite(.scenario) struct UnconditionalNotModifiedTests {
    private static let notModified = Step.answer(304, "ETag: \"a\"", "Cache-Control: max-age=60")

    @Test(arguments: [
        ("GET", []), ("HEAD", []), ("GET", ["Range: bytes=0-4", "If-Range: \"a\""]), ("GET", ["If-None-Match: \"a\""]),
        ("GET", ["Authorization: Basic eA=="]),
        ("GET", ["Cache-Control: no-store"]), ("HEAD", ["Cache-Control: no-store"]), ("GET", ["If-Match: \"a\""]),
        ("GET", ["Cache-Control: no-store", "Range: bytes=0-4", "If-Range: \"a\""]),
    ])
    func `a 304 to a request without conditions gives 502`(_ method: String, _ fields: [String]) throws {
        try scenario { origin, proxy in
            origin.on("/x") { _ in [Self.notModified] }
            for _ in 1...2 {
                let answer = try proxy.send(method, "/x", fields)
                #expect(answer.status == 502 && answer["etag"] == nil)
                #expect(answer["proxy-status"]?.contains("error=http_protocol_error") ?? false)
            }
            #expect(origin.count("/x") == 2, "once for each")
        }
    }

    @Test(arguments: [
        ("GET", ["Cache-Control: no-store", "If-None-Match: \"a\""]),
        ("GET", ["Cache-Control: no-store", "If-Modified-Since: Tue, 01 Jan 2019 00:00:00 GMT"]),
        ("GET", ["If-Match: \"a\"", "If-None-Match: \"a\""]), ("POST", []),
    ])
    func `a 304 is forwarded if the origin got the client's conditions, or the method is unsafe`(
        _ method: String, _ fields: [String]
    ) throws {
        try scenario { origin, proxy in
            origin.on("/x") { _ in [Self.notModified] }
            let answer = try proxy.send(method, "/x", fields)
            #expect(answer.status == 304 && answer["etag"] == "\"a\"")
            #expect(origin.count("/x") == 1)
        }
    }

    @Test func `a 304 to a request without conditions is neither shared nor stored nor remembered`() throws {
        try scenario { origin, proxy in
            let gate = Gate()
            origin.on("/x") {
                $0.number == 1
                    ? [.gate(gate), Self.notModified] : [.answer(200, "Cache-Control: max-age=60", body: "whole")]
            }
            let leader = try proxy.connect()
            try leader.send(proxy.request("GET", "/x", ["If-None-Match: \"a\""]))
            try eventually("it leads") { origin.count("/x") == 1 }
            let crowd = proxy.crowd(20, get: "/x")
            try proxy.joined(21)
            gate.open()
            let own = try leader.answer()
            #expect(own.status == 502 && crowd.finished().allSatisfy { $0.status == 502 })
            #expect(origin.count("/x") == 1)
            let (next, last) = try (proxy.get("/x"), proxy.get("/x"))
            #expect(next.text == "whole" && last.cacheStatus.contains("hit"))
        }
    }

    @Test(arguments: [[], ["ETag: \"a\""]])
    func `a stored response is served for a 304 to a request without conditions, if permitted`(_ tag: [String]) throws {
        try scenario { origin, proxy in
            let page = Step.several([
                .head(200, tag + ["Cache-Control: max-age=0, stale-if-error=60", "Content-Length: 4"]), .text("kept"),
            ])
            // Another tag than the one that is asked about confirms nothing; asked without conditions, it says the
            // same.
            origin.on("/x") { $0.number == 1 ? [page] : [.answer(304, "ETag: \"other\"", "Cache-Control: max-age=60")] }
            try proxy.get("/x")
            let answer = try proxy.get("/x")
            #expect(answer.status == 200 && answer.text == "kept" && !answer.cacheStatus.contains("stored"))
            #expect(
                origin.requests("/x").map { $0["if-none-match"] } == (tag.isEmpty ? [nil, nil] : [nil, "\"a\"", nil]))
        }
    }
}
