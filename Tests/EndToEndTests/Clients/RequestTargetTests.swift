import Testing

/// What identifies the resource, and limits on what is asked for.
@Suite(.scenario) struct RequestTargetTests {
    @Test(.overHTTP1("it is about targets in absolute form"), .clientsInTheClear("it asks for a URL of http"))
    func `the absolute form takes precedence over Host`() throws {
        try scenario { origin, proxy in
            origin.on("*") { _ in [.answer(200, "Cache-Control: max-age=60", body: "x")] }
            let client = try proxy.connect()
            try client.send("GET http://one.example/x HTTP/1.1\r\nHost: two.example\r\n\r\n")
            let answer = try client.answer()
            // RFC 9112 §3.2.2 wants Host ignored; refusing is as safe. Believing it would poison the other's cache.
            if answer.status == 400 {
                #expect(origin.total == 0)
            } else {
                #expect(origin.requests("/x").map { $0["host"] } == ["one.example"])
            }
            #expect(try proxy.get("/x", "Host: two.example").cacheStatus.contains("hit") == false)
        }
    }

    @Test func `one path on two hosts is two resources`() throws {
        try scenario { origin, proxy in
            origin.on("/x") { [.answer(200, "Cache-Control: max-age=60", body: $0["host"] ?? "")] }
            for host in ["one.example", "two.example"] {
                let answer = try proxy.get("/x", "Host: \(host)")
                #expect(answer.text == host)
            }
            #expect(try proxy.get("/x", "Host: ONE.example").cacheStatus.contains("hit"))
        }
    }

    @Test func `a host that is not served gets 421`() throws {
        try scenario(.hosts(["one.example"])) { origin, proxy in
            origin.on("/x") { _ in [.answer(200, body: "x")] }
            let served = try proxy.get("/x", "Host: one.example"), other = try proxy.get("/x", "Host: two.example")
            #expect(served.status == 200 && other.status == 421)
            #expect(origin.total == 1)
        }
    }

    @Test func `a wildcard host serves and routes the names below`() throws {
        try scenario(.hosts(["\"*.one.example\""]), .other(section: "route", key: "host", value: "\"*.b.one.example\""))
        {
            origin, proxy in
            origin.on("/x") { [.answer(200, "Cache-Control: max-age=60", body: $0["host"] ?? "")] }
            for host in ["a.one.example", "a.b.one.example", "A.B.one.example"] {
                #expect(try proxy.get("/x", "Host: \(host)").text.lowercased() == host.lowercased())
            }
            let none = try proxy.get("/x", "Host: one.example")
            #expect(none.status == 421 && origin.total == 2, "each name has a key of its own")
        }
    }

    @Test func `the query is part of the key, and the target is forwarded unchanged`() throws {
        try scenario { origin, proxy in
            origin.on("/q") { [.answer(200, "Cache-Control: max-age=60", body: $0.target)] }
            for target in ["/q?b=2&a=1", "/q?a=1&b=2", "/q", "/q?", "/q?%61=1"] {
                let answers = try [proxy.get(target), proxy.get(target)]
                #expect(answers.map(\.text) == [target, target])
            }
            #expect(origin.total == 5)
        }
    }

    /// RFC 9110 §7.4: they name other resources than ours.
    @Test(
        .overHTTP1("it is about targets in absolute form"),
        .clientsInTheClear("http is the scheme that is served"),
        arguments: ["https://one.example/x", "HTTPS://one.example/x", "ftp://one.example/x", "wss://one.example"])
    func `a URL of another scheme gets 421`(_ target: String) throws {
        try scenario(.hosts(["one.example"])) { origin, proxy in
            origin.on("/x") { _ in [.answer(200, "Cache-Control: max-age=60", body: "x")] }
            let client = try proxy.connect()
            try client.send("GET HTTP://one.example/x HTTP/1.1\r\nHost: one.example\r\n\r\n")
            #expect(try client.answer().text == "x")
            try client.send("GET \(target) HTTP/1.1\r\nHost: one.example\r\n\r\n")
            let answer = try client.answer()
            #expect(answer.status == 421 && answer.text.contains("URLs of this scheme"))
            #expect(origin.total == 1)
        }
    }

    /// RFC 9931: what comes behind it may be somebody else's bytes.
    @Test(.overHTTP1("it is about CONNECT")) func `CONNECT is refused, and bytes behind it are not parsed`() throws {
        try scenario { origin, proxy in
            origin.on("*") { _ in [.answer(200)] }
            let client = try proxy.connect()
            try client.send("CONNECT a:443 HTTP/1.1\r\nHost: a:443\r\n\r\n" + proxy.request("GET", "/behind"))
            let answer = try client.answer()
            #expect(answer.status == 405 && answer["allow"] != nil && answer["connection"] == "close")
            #expect(client.isClosed())
            #expect(origin.total == 0)
        }
    }

    @Test func `a body over the limit gets 413`() throws {
        try scenario(.maxBodySize(1_000)) { origin, proxy in
            origin.on("/up") { _ in [.requestBody, .answer(200)] }
            #expect(try proxy.send("POST", "/up", body: String(repeating: "a", count: 1_000)).status == 200)
            let client = try proxy.connect()
            try client.send("POST /up HTTP/1.1\r\nHost: a\r\nContent-Length: 1001\r\n\r\n")
            #expect(try client.answer().status == 413)
            #expect(origin.total == 1)
        }
    }
}
