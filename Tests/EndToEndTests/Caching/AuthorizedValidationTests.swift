import Testing

/// What the origin tells a client with `Authorization` is for that client, as far as it does not say otherwise (RFC
/// 9111 §3.5).
@Suite(.scenario) struct AuthorizedValidationTests {
    private func page(_ cacheControl: String, age: Int, confirmed: String = "ETag: \"a\"") -> ScriptedOrigin.Handler {
        { request in
            request["if-none-match"] == nil
                ? [.answer(200, "Cache-Control: \(cacheControl)", "ETag: \"a\"", "Age: \(age)", body: "page")]
                : [.answer(304, "ETag: \"a\"", confirmed)]
        }
    }

    @Test(arguments: [
        "ETag: \"a\"", "Cache-Control: private", "Cache-Control: no-store", "Vary: Authorization", "Vary: *",
    ])
    func `a page confirmed to a client with Authorization stays the same for other clients`(_ confirmed: String)
        throws
    {
        try scenario { origin, proxy in
            origin.on("/p", page("max-age=60", age: 0, confirmed: confirmed))
            try proxy.get("/p")
            let own = try proxy.get("/p", "Authorization: Basic eA==", "Cache-Control: no-cache")
            #expect(own.text == "page" && !own.cacheStatus.contains("stored"))
            let other = try proxy.get("/p")
            #expect(other.text == "page" && other.cacheStatus.contains("hit"))
            #expect(origin.count("/p") == 2)
        }
    }

    @Test(arguments: ["Cache-Control: private", "X: 1", "ETag: \"a\"\r\nVary: Authorization"])
    func `a HEAD response to a client with Authorization changes nothing for other clients`(_ told: String) throws {
        try scenario { origin, proxy in
            origin.on("/p") { request in
                request.method == "HEAD"
                    ? [.raw("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\(told)\r\n\r\n")]
                    : [.answer(200, "Cache-Control: public, max-age=60", "ETag: \"a\"", body: "page")]
            }
            try proxy.get("/p")
            try proxy.send("HEAD", "/p", "Authorization: Basic eA==", "Cache-Control: no-cache")
            let other = try proxy.get("/p")
            #expect(other.text == "page" && other.cacheStatus.contains("hit"))
            #expect(origin.count("/p") == 2)
        }
    }

    @Test(arguments: ["X-User: me", "Set-Cookie: user=me", "Vary: Authorization"])
    func `the fields of a 304 to a client with Authorization go to that client alone`(_ told: String) throws {
        try scenario { origin, proxy in
            origin.on("/p", page("public, max-age=60", age: 0, confirmed: told))
            try proxy.get("/p")
            let own = try proxy.get("/p", "Authorization: Basic eA==", "Cache-Control: no-cache")
            let name = String(told.prefix { $0 != ":" }).lowercased()
            #expect(own.text == "page" && own[name] != nil)
            let other = try proxy.get("/p")
            #expect(other.text == "page" && other.cacheStatus.contains("hit") && other[name] == nil)
            #expect(origin.count("/p") == 2)
        }
    }

    @Test(arguments: ["GET", "HEAD"])
    func `a refresh caused by a client with Authorization is sent without Authorization`(_ method: String) throws {
        try scenario { origin, proxy in
            origin.on("/p", page("max-age=10, stale-while-revalidate=600", age: 15))
            try proxy.get("/p")
            try proxy.send(method, "/p", "Authorization: Basic eA==")
            try eventually("the refresh is over") { try origin.count("/p") == 2 && proxy.metric(.inFlight) == 0 }
            let asked = origin.requests("/p")
            #expect(asked.count == 2 && asked[1]["authorization"] == nil)
            let refreshed = try proxy.get("/p")
            #expect(refreshed.cacheStatus.contains("hit") && (refreshed["age"].flatMap { Int($0) } ?? 15) < 15)
        }
    }

    /// What came without the field is no variant of a client that has it.
    @Test(arguments: [true, false])
    func `a refreshed response with Vary Authorization does not serve a client with Authorization`(_ isConfirmed: Bool)
        throws
    {
        try scenario { origin, proxy in
            origin.on("/p") { request in
                if request["authorization"] != nil {
                    return [.answer(200, "Cache-Control: max-age=60", "Vary: Authorization", body: "own")]
                }
                if request["if-none-match"] == nil {
                    return [
                        .answer(
                            200, "Cache-Control: max-age=10, stale-while-revalidate=600", "ETag: \"a\"", "Age: 15",
                            body: "page")
                    ]
                }
                let says = "Cache-Control: public, max-age=60"
                return isConfirmed
                    ? [.answer(304, "ETag: \"a\"", says, "Vary: Authorization")]
                    : [.answer(200, says, "Vary: Authorization", body: "page")]
            }
            try proxy.get("/p")
            let first = try proxy.get("/p", "Authorization: Basic eA==")
            #expect(first.text == "page")
            try eventually("the refresh is over") { try origin.count("/p") == 2 && proxy.metric(.inFlight) == 0 }
            let own = try proxy.get("/p", "Authorization: Basic eA==")
            #expect(own.text == "own")
            let other = try proxy.get("/p")
            #expect(other.text == "page" && other.cacheStatus.contains("hit"))
        }
    }

    @Test func `a refresh of a page that permits reuse for Authorization is sent with Authorization`() throws {
        try scenario { origin, proxy in
            origin.on("/p", page("public, max-age=10, stale-while-revalidate=600", age: 15))
            try proxy.get("/p")
            try proxy.get("/p", "Authorization: Basic eA==")
            try eventually("the refresh is over") { try origin.count("/p") == 2 && proxy.metric(.inFlight) == 0 }
            #expect(origin.requests("/p")[1]["authorization"] == "Basic eA==")
            let refreshed = try proxy.get("/p")
            #expect((refreshed["age"].flatMap { Int($0) } ?? 15) < 15)
        }
    }

    @Test(arguments: ["public", "must-revalidate", "s-maxage=10"])
    func `a 304 to a client with Authorization counts if the page permits reuse`(_ directive: String) throws {
        try scenario { origin, proxy in
            origin.on("/p", page("max-age=10, \(directive)", age: 20))
            try proxy.get("/p")
            let own = try proxy.get("/p", "Authorization: Basic eA==")
            #expect(own.text == "page" && own.cacheStatus.contains("stored"))
            let other = try proxy.get("/p")
            #expect(other.cacheStatus.contains("hit"))
            #expect(origin.count("/p") == 2)
        }
    }

    @Test func `a 304 with another Vary serves its client alone, not the other waiters`() throws {
        try scenario { origin, proxy in
            let gate = Gate()
            origin.on("/p") { request in
                request.number == 1
                    ? [.answer(200, "Cache-Control: public, max-age=10", "Age: 20", "ETag: \"a\"", body: "page")]
                    : [.gate(gate), .answer(304, "ETag: \"a\"", "Vary: Accept-Language", "X-User: \(request.number)")]
            }
            try proxy.get("/p")
            let crowd = proxy.crowd(3, get: "/p", "Authorization: Basic eA==")
            try proxy.joined(4)
            gate.open()
            let answers = crowd.finished()
            #expect(answers.allSatisfy { $0.text == "page" })
            #expect(Set(answers.map { $0["x-user"] }).count == 3)
        }
    }

    @Test func `a client whose own responses are not shared validates the shared stored response`() throws {
        try scenario { origin, proxy in
            origin.on("/p") { request in
                request["if-none-match"] == nil
                    ? [.answer(200, "Cache-Control: max-age=10", "Age: 20", "ETag: \"a\"", body: "page")]
                    : [.answer(304, "ETag: \"a\"")]
            }
            // The key is marked, and stays so when the page is stored for the others.
            try proxy.get("/p", "Authorization: Basic eA==")
            try proxy.get("/p")
            let own = try proxy.get("/p", "Authorization: Basic eA==")
            #expect(own.text == "page" && own.cacheStatus.contains("fwd-status=304"), "\(own.cacheStatus)")
        }
    }
}
