import Testing

/// What a validation says of `Vary` holds from then on (RFC 9111 §3.2, §4.1).
@Suite(.scenario) struct ChangedVaryTests {
    @Test(arguments: [[], ["Vary: Cookie"]])
    func `the Vary of a 304 decides which requests the page serves`(_ stored: [String]) throws {
        try scenario { origin, proxy in
            origin.on("/v") { request in
                let (language, fields) = (
                    request["accept-language"] ?? "--", ["ETag: \"a\"", "Cache-Control: max-age=60"]
                )
                return request.number == 1
                    ? [.head(200, fields + stored + ["Age: 80", "Content-Length: 2"]), .text(language)]
                    : request["if-none-match"] != nil && language == "de"
                        ? [.head(304, fields + ["Vary: Accept-Language"])]
                        : [.head(200, fields + ["Vary: Accept-Language", "Content-Length: 2"]), .text(language)]
            }
            try proxy.get("/v", "Accept-Language: de")
            let confirmed = try proxy.get("/v", "Accept-Language: de")
            #expect(confirmed.text == "de" && confirmed["vary"] == "Accept-Language")
            #expect(confirmed.cacheStatus.contains("stored"))

            let other = try proxy.get("/v", "Accept-Language: fr")
            #expect(other.text == "fr" && !other.cacheStatus.contains("hit"))
            let again = try proxy.get("/v", "Accept-Language: de")
            #expect(again.text == "de" && again.cacheStatus.contains("hit"), "the client that asked was told so")
            #expect(origin.count("/v") == 3)
        }
    }

    @Test func `a page confirmed to a request with other fields is stored for these fields too`() throws {
        try scenario { origin, proxy in
            origin.on("/v") { request in
                let fields = ["ETag: \"a\"", "Cache-Control: max-age=60", "Vary: Accept-Language"]
                return request["if-none-match"] == nil
                    ? [.head(200, fields + ["Content-Length: 4"]), .text("same")] : [.head(304, fields)]
            }
            for language in ["de", "en", "en", "fr", "en", "de"] {
                let answer = try proxy.get("/v", "Accept-Language: \(language)")
                #expect(answer.text == "same")
            }
            #expect(origin.count("/v") == 3, "once for each")
        }
    }

    @Test func `a waiter gets a confirmed page only if Vary permits`() throws {
        try scenario { origin, proxy in
            let gate = Gate()
            origin.on("/w") { request in
                let user = request["cookie"] ?? ""
                return request.number == 1
                    ? [.answer(200, "ETag: \"a\"", "Cache-Control: max-age=10", "Age: 20", body: user)]
                    : request["if-none-match"] != nil && user == "alice"
                        ? [.gate(gate), .answer(304, "ETag: \"a\"", "Cache-Control: max-age=60", "Vary: Cookie")]
                        : [.answer(200, "ETag: \"\(user)\"", "Cache-Control: max-age=60", "Vary: Cookie", body: user)]
            }
            try proxy.get("/w", "Cookie: alice")
            let alice = proxy.crowd(1, get: "/w", "Cookie: alice")
            try eventually("she has it validated") { origin.count("/w") == 2 }
            let others = proxy.crowd(5, get: "/w", "Cookie: alice"), bobs = proxy.crowd(5, get: "/w", "Cookie: bob")
            try proxy.joined(12)
            gate.open()
            let texts = (alice.finished() + others.finished()).map(\.text)
            #expect(texts == Array(repeating: "alice", count: 6))
            #expect(bobs.finished().map(\.text) == Array(repeating: "bob", count: 5))
            #expect(origin.count("/w") == 3)
        }
    }

    @Test func `a page confirmed to a request is that request's variant, whatever request stored it`()
        throws
    {
        try scenario { origin, proxy in
            origin.on("/v") { request in
                request["if-none-match"] != nil && request["accept-language"] == "en"
                    ? [.answer(304, "ETag: \"a\"", "Cache-Control: max-age=60", "Vary: Accept-Language")]
                    : [
                        .answer(
                            200, "ETag: \"a\"", "Cache-Control: max-age=10", "Age: 20",
                            body: "for \(request["accept-language"] ?? "")")
                    ]
            }
            try proxy.get("/v", "Accept-Language: de")
            #expect(try proxy.get("/v", "Accept-Language: en").text == "for de")
            let again = try proxy.get("/v", "Accept-Language: en")
            #expect(again.text == "for de" && again.cacheStatus.contains("hit"))
            let first = try proxy.get("/v", "Accept-Language: de")
            #expect(!first.cacheStatus.contains("hit"))
        }
    }

    @Test func `a HEAD response with Vary confirms no stored page`() throws {
        try scenario { origin, proxy in
            origin.on("/h") { request in
                request.method == "HEAD"
                    ? [.head(200, "ETag: \"a\"", "Cache-Control: max-age=60", "Vary: Accept-Language")]
                    : [
                        .answer(
                            200, "ETag: \"a\"", "Cache-Control: max-age=10", request.number == 1 ? "Age: 20" : "Age: 0",
                            body: request["accept-language"] ?? "")
                    ]
            }
            try proxy.get("/h", "Accept-Language: de")
            try proxy.send("HEAD", "/h", "Accept-Language: de")
            #expect(try proxy.get("/h", "Accept-Language: fr").text == "fr")
        }
    }

    @Test func `a full response without Vary also serves the next request`() throws {
        try scenario { origin, proxy in
            origin.on("/v") { request in
                let vary = request.number <= 2 ? "Vary: Accept-Language" : "X-Vary: none"
                return [
                    .answer(
                        200, "ETag: \"\(request.number)\"", "Cache-Control: max-age=60", vary, body: "\(request.number)"
                    )
                ]
            }
            for language in ["de", "fr"] { try proxy.get("/v", "Accept-Language: \(language)") }
            #expect(try proxy.get("/v", "Accept-Language: de", "Cache-Control: no-cache").text == "3")
            let next = try proxy.get("/v", "Accept-Language: de")
            #expect(next.text == "3" && next.cacheStatus.contains("hit"))
            #expect(try proxy.get("/v", "Accept-Language: en").text == "3")
            #expect(try proxy.get("/v", "Accept-Language: fr").text == "2", "of this one the origin said nothing")
            #expect(origin.count("/v") == 3)
        }
    }

    @Test func `a full response without Vary that breaks off replaces no variant`() throws {
        try scenario { origin, proxy in
            origin.on("/v") { request in
                request.number == 1
                    ? [.answer(200, "ETag: \"1\"", "Cache-Control: max-age=60", "Vary: Accept-Language", body: "1")]
                    : [.raw("HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nContent-Length: 30\r\n\r\nabc"), .close]
            }
            try proxy.get("/v", "Accept-Language: de")
            let client = try proxy.connect()
            try client.send(proxy.request("GET", "/v", ["Accept-Language: de", "Cache-Control: no-cache"]))
            let cut = try client.answer()
            #expect(!cut.isClean && cut.text == "abc")
            let next = try proxy.get("/v", "Accept-Language: de")
            #expect(next.text == "1" && next.cacheStatus.contains("hit"))
        }
    }

    @Test func `a 304 with Vary * ends the reuse of the page`() throws {
        try scenario { origin, proxy in
            origin.on("/s") { request in
                request["if-none-match"] != nil
                    ? [.answer(304, "ETag: \"a\"", "Cache-Control: max-age=60", "Vary: *")]
                    : [.answer(200, "ETag: \"a\"", "Cache-Control: max-age=10", "Age: 20", body: "\(request.number)")]
            }
            try proxy.get("/s")
            #expect(try proxy.get("/s").text == "1")
            #expect(try proxy.get("/s").text == "3")
        }
    }
}
