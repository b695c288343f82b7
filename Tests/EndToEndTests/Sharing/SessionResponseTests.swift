import Testing

/// What is stored of one session, where the origin does not say who may have it, and what requests of others get.
@Suite(.scenario) struct SessionResponseTests {
    /// An origin that goes by dates says 304 whosever page it has.
    @Test(arguments: [
        "max-age=0", "no-cache", "no-cache, max-age=3600", "no-cache, must-revalidate",
        "must-understand, no-store, max-age=0",
    ])
    func `a page of one session is not confirmed for another by its date`(_ policy: String) throws {
        try scenario { origin, proxy in
            origin.on("/x") { request in
                if request["if-modified-since"] != nil { return [.answer(304)] }
                let whose = request["cookie"] ?? request["x-api-key"] ?? request["authorization"] ?? "nobody"
                return [
                    .answer(
                        200, "Cache-Control: \(policy)", "Last-Modified: Mon, 01 Jan 2024 00:00:00 GMT", body: whose)
                ]
            }
            for _ in 0..<2 {
                for (field, whose) in [
                    ("Cookie: a=1", "a=1"), ("Cookie: a=2", "a=2"), ("X-Api-Key: k", "k"), ("X-Api-Key: l", "l"),
                    ("Accept: */*", "nobody"), ("Authorization: Basic eA==", "Basic eA=="),
                ] {
                    let text = try proxy.get("/x", field).text
                    #expect(text == whose)
                }
            }
        }
    }

    @Test(arguments: ["Cookie: a=1", "X-Api-Key: k"])
    func `a response to one session is not served stale, whatever another asks for`(_ field: String) throws {
        try scenario(.other(section: "caching", key: "stale-while-revalidate", value: "60s")) { origin, proxy in
            origin.on("/x") { request in
                request[field.hasPrefix("Cookie") ? "cookie" : "x-api-key"] != nil
                    ? [.answer(200, "ETag: \"1\"", body: "secret")] : [.answer(401, body: "who?")]
            }
            #expect(try proxy.get("/x", field).text == "secret")
            for other in ["Accept: */*", "Cache-Control: max-stale", "Cache-Control: max-stale=60"] {
                let text = try proxy.get("/x", other).text
                #expect(text == "who?", "\(other)")
            }
            #expect(try proxy.get("/x", field).text == "secret")
            origin.goDown()
            #expect(try proxy.get("/x", "Cache-Control: max-stale").status == 502)
        }
    }

    @Test func `requests that do not match stop waiting for one another, even if responses are stored`() throws {
        try scenario { origin, proxy in
            let (first, second) = (Gate(), Gate())
            origin.on("/x") { request in
                let language = request["accept-language"] ?? ""
                return [
                    .gate(request.number <= 2 ? first : second), .answer(200, "ETag: \"\(language)\"", body: language),
                ]
            }
            func ask(_ language: String) throws -> Conversation {
                let client = try proxy.connect()
                try client.send(proxy.request("GET", "/x", ["Accept-Language: \(language)"]))
                return client
            }
            let one = try ask("en")
            try proxy.joined(1)
            let other = try ask("de")
            try proxy.joined(2)
            first.open()
            let (own, others) = (try one.answer().text, try other.answer().text)
            #expect(own == "en" && others == "de")
            let clients = try ["fr", "en", "de"].map { try ask($0) }
            try eventually("all of them are asked for, while nobody is answered") { origin.count("/x") == 5 }
            second.open()
            let texts = try clients.map { try $0.answer().text }
            #expect(texts == ["fr", "en", "de"])
        }
    }

    @Test func `a request that forbids storing causes no refresh`() throws {
        try scenario { origin, proxy in
            origin.on("/x") { request in
                [
                    .answer(
                        200, "Cache-Control: max-age=1, stale-while-revalidate=60", "Age: 2", body: "\(request.number)")
                ]
            }
            #expect(try proxy.get("/x").text == "1")
            #expect(try proxy.get("/x", "Cache-Control: no-store").text == "1")
            #expect(origin.count("/x") == 1)
            #expect(try proxy.get("/x").text == "1")
            try eventually("another one refreshes it") { origin.count("/x") == 2 }
        }
    }

    @Test func `a HEAD with credentials and one without do not share a fetch`() throws {
        try scenario { origin, proxy in
            let gate = Gate()
            origin.on("/x") { request in
                [.gate(gate), .answer(200, "X-User: \(request["authorization"] ?? "nobody")", body: "x")]
            }
            let clients = try [[], ["Authorization: Basic eA=="]].map { fields in
                let client = try proxy.connect()
                try client.send(proxy.request("HEAD", "/x", fields))
                return client
            }
            try eventually("both are asked for") { origin.count("/x") == 2 }
            gate.open()
            let users = try clients.map { try $0.answer(to: "HEAD").head?["x-user"] }
            #expect(users == ["nobody", "Basic eA=="])
        }
    }
}
