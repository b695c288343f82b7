import Testing

/// `Location` and `Content-Location` that name the origin name the host that the client asked.
@Suite(.scenario) struct RewriteLocationTests {
    private static let on = """
        - {upstream: origin, rewrite-location: on}
        """

    @Test(.clientsInTheClear("the references are URLs of http"))
    func `a reference to the server becomes one to the host that was asked, in hits, misses and passes`() throws {
        try scenario(routes: Self.on) { origin, proxy in
            let url = origin.url
            origin.on("/x") { _ in
                [
                    .answer(
                        301, "Cache-Control: max-age=60", "Location: \(url)/y?a#b", "Content-Location: \(url)",
                        body: "moved")
                ]
            }
            origin.on("/z") { _ in [.answer(201, "location: //127.0.0.1:\(origin.port)/new", "X-A: b", body: "made")] }
            for word in ["fwd=uri-miss", "; hit"] {
                let answer = try proxy.get("/x")
                #expect(answer["location"] == "http://\(proxy.host)/y?a#b" && answer.cacheStatus.contains(word))
                #expect(answer["content-location"] == "http://\(proxy.host)" && answer.text == "moved")
            }
            #expect(try proxy.get("/x", "Host: A.example:80")["location"] == "http://a.example/y?a#b")
            let made = try proxy.send("POST", "/z", body: "a")
            #expect(made["location"] == "http://\(proxy.host)/new" && made["x-a"] == "b" && made.text == "made")
            #expect(origin.count("/x") == 2)
        }
    }

    @Test func `relative references and other hosts stay, and so do all without the setting`() throws {
        try scenario(routes: "- {path: /off, upstream: origin}\n" + Self.on) { origin, proxy in
            let others = [
                "/y", "../y", "?a", "https://other.example/", "http://127.0.0.1/y", "mailto:a@b", "//b.example/",
            ]
            for (number, value) in others.enumerated() {
                origin.on("/\(number)") { _ in [.answer(302, "Location: \(value)", body: "")] }
                let answer = try proxy.get("/\(number)")
                #expect(answer["location"] == value)
            }
            origin.on("/off") { _ in [.answer(302, "Location: \(origin.url)/y", body: "")] }
            #expect(try proxy.get("/off")["location"] == "\(origin.url)/y")
        }
    }

    @Test func `behind TLS the reference becomes one to https`() throws {
        let trusting = "clients: {trusted-proxies: [127.0.0.1]}"
        try scenario(routes: Self.on, more: trusting) { origin, proxy in
            origin.on("/x") { _ in [.answer(302, "Location: \(origin.url)/y", body: "")] }
            let fields = ["Host: www.example.com", "X-Forwarded-Proto: https"]
            let answer = try proxy.send("GET", "/x", fields)
            #expect(answer["location"] == "https://www.example.com/y")
        }
    }

    @Test func `an unsafe request invalidates what the server names by its own address`() throws {
        try scenario(routes: Self.on) { origin, proxy in
            origin.on("/x") { _ in [.answer(200, "Cache-Control: max-age=60", body: "hello")] }
            origin.on("/z") { _ in [.answer(201, "Location: \(origin.url)/x", body: "made")] }
            for _ in 1...2 { try proxy.get("/x") }
            #expect(origin.count("/x") == 1)
            #expect(try proxy.send("POST", "/z", body: "a").status == 201)
            #expect(try proxy.get("/x").cacheStatus.contains("fwd=uri-miss"))
            #expect(origin.count("/x") == 2)
        }
    }

    @Test(.clientsInTheClear("the references are URLs of http"))
    func `a 304 changes the stored reference in the same way`() throws {
        try scenario(routes: Self.on) { origin, proxy in
            origin.on("/x") { request in
                let fields = [
                    "Cache-Control: max-age=0", "ETag: \"a\"", "Content-Location: \(origin.url)/\(request.number)",
                ]
                return request["if-none-match"] == nil
                    ? [.head(200, fields + ["Content-Length: 5"]), .text("hello")] : [.head(304, fields)]
            }
            #expect(try proxy.get("/x")["content-location"] == "http://\(proxy.host)/1")
            let confirmed = try proxy.get("/x")
            #expect(confirmed["content-location"] == "http://\(proxy.host)/2" && confirmed.text == "hello")
        }
    }
}
