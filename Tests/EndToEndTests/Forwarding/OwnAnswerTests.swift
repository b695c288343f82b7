import Testing

/// What a route answers by itself: redirects, and responses that are in the configuration.
@Suite(.scenario) struct OwnAnswerTests {
    private static let redirect = """
        - {path: /old, redirect: {to: "https://${host}${target}"}}
        - {upstream: origin}
        """

    @Test func `a redirect is made of the request, is cached by nobody, and asks no origin`() throws {
        try scenario(routes: Self.redirect) { origin, proxy in
            let answer = try proxy.get("/old/a?b=c")
            #expect(answer.status == 308 && answer.isClean && answer["location"] == "https://127.0.0.1/old/a?b=c")
            #expect(answer["cache-control"] == "no-store" && answer["cache-status"] == nil)
            #expect(answer.text == "308 Permanent Redirect\n")
            #expect(answer["content-type"] == "text/plain; charset=utf-8" && answer["date"] != nil)
            #expect(try proxy.get("/old//evil.example/")["location"] == "https://127.0.0.1/old//evil.example/")
            let named = try proxy.get("/old?%0d%0aa", "Host: a.example:81")
            #expect(named["location"] == "https://a.example/old?%0d%0aa")
            #expect(origin.count("/old/a") == 0 && origin.count("/old") == 0)
            try eventually("three lines") { try proxy.accessLog.count == 3 }
            #expect(try proxy.accessLog.allSatisfy { $0["verdict"]?.string == "synthetic" })
            #expect(try proxy.accessLog.first?["status"]?.number == 308)
            #expect(try proxy.metric(.ownAnswers) == 3 && proxy.metric(.requests) == 3)
        }
    }

    @Test func `no rule for fields lets a cache keep a redirect, or leads it elsewhere`() throws {
        let rules =
            "set: {cache-control: \"public, max-age=31536000\", cdn-cache-control: max-age=9, location: /evil, x-own: a}"
        try scenario(routes: Self.redirect, more: "response-headers: {\(rules)}") { _, proxy in
            let answer = try proxy.get("/old/a")
            #expect(answer.status == 308 && answer["location"] == "https://127.0.0.1/old/a")
            #expect(answer["cache-control"] == "no-store" && answer["cdn-cache-control"] == nil)
            #expect(answer["x-own"] == "a")
        }
    }

    @Test func `a constant redirect may be cached, and has the status that the route says`() throws {
        let routes = [301, 302, 303, 307].map {
            "- {path: /\($0), redirect: {to: https://www.example.com/, status: \($0)}}"
        }
        try scenario(routes: routes.joined(separator: "\n")) { _, proxy in
            for status in [301, 302, 303, 307] {
                let answer = try proxy.get("/\(status)/a?b")
                #expect(answer.status == status && answer["location"] == "https://www.example.com/")
                #expect(answer["cache-control"] == nil)
            }
        }
    }

    @Test(.overHTTP1("some are targets in absolute form"), .clientsInTheClear("the scheme is http"))
    func `every variable of a redirect has its value`() throws {
        let target = "https://x.example/?s=${scheme}&h=${host}&p=${path}&q=${query}&c=${client}"
        try scenario(routes: "- {redirect: {to: '\(target)', status: 302}}") { _, proxy in
            let (relative, absolute) = (
                try proxy.get("/a/b?c=d", "Host: a.example"), try proxy.get("http://b.example", "Host: a.example")
            )
            #expect(
                relative["location"]
                    == "https://x.example/?s=http&h=a.example&p=/a/b&q=c=d&c=127.0.0.1")
            #expect(
                absolute["location"]
                    == "https://x.example/?s=http&h=b.example&p=/&q=&c=127.0.0.1")
        }
    }

    @Test func `a response from the configuration comes with its status, its content and its type`() throws {
        let large = String(repeating: "0123456789abcdef", count: 20_000)
        let routes = #"""
            - {path: /down, respond: {status: 503, body: "back\nsoon"}}
            - {path: /type, respond: {status: 200, body: '{}', type: application/json}}
            - {path: /robots.txt, respond: {status: 200, file: PAGES/robots.txt}}
            - {path: /large, respond: {status: 200, file: PAGES/large}}
            - {path: /gone, respond: {status: 410}}
            - {path: /nothing, respond: {status: 204}}
            - {path: /empty, respond: {status: 200, body: ''}}
            - {upstream: origin}
            """#
        try scenario(routes: routes, pages: ["robots.txt": "User-agent: *\n", "large": large]) { origin, proxy in
            let down = try proxy.get("/down")
            #expect(down.status == 503 && down.text == "back\nsoon" && down["retry-after"] == nil)
            #expect(down["content-type"] == "text/plain; charset=utf-8")
            let typed = try proxy.get("/type")
            #expect(typed.status == 200 && typed.text == "{}" && typed["content-type"] == "application/json")
            let robots = try proxy.get("/robots.txt")
            #expect(robots.text == "User-agent: *\n" && robots["content-type"] == "text/plain; charset=utf-8")
            let whole = try proxy.get("/large")
            #expect(whole.text == large && whole.isClean && whole["content-type"] == "text/html; charset=utf-8")
            #expect(try proxy.get("/gone").text == "410 Gone\n")
            let nothing = try proxy.get("/nothing")
            #expect(nothing.status == 204 && nothing["content-length"] == nil && nothing["content-type"] == nil)
            let empty = try proxy.get("/empty")
            #expect(empty.isClean && empty["content-length"] == "0" && empty["content-type"] == nil)
            #expect(origin.count("/down") == 0)
        }
    }

    @Test func `conditions and ranges do not matter to a response from the configuration`() throws {
        try scenario(routes: "- {respond: {status: 200, body: hello}}") { _, proxy in
            for line in ["If-None-Match: *", "Range: bytes=0-0", "If-Match: \"a\"", "Cache-Control: only-if-cached"] {
                let answer = try proxy.get("/x", line)
                #expect(answer.status == 200 && answer.text == "hello", "\(line)")
            }
        }
    }

    @Test func `HEAD gets the length without the content`() throws {
        let routes = """
            - {path: /old, redirect: {to: "https://${host}${target}"}}
            - {respond: {status: 404, body: nothing here}}
            """
        try scenario(routes: routes) { _, proxy in
            for path in ["/old/a", "/x"] {
                let (head, get) = (try proxy.send("HEAD", path), try proxy.get(path))
                #expect(head.isClean && head.body.length == 0 && head.status == get.status)
                #expect(head["content-length"] == "\(get.body.length)" && get.body.length > 0)
                #expect(head["location"] == get["location"])
            }
        }
    }

    @Test(.overHTTP1("one is CONNECT")) func `every method is answered, and request content ends the connection`()
        throws
    {
        try scenario(routes: Self.redirect) { origin, proxy in
            for method in ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "PROPFIND", "ABC"] {
                let answer = try proxy.send(method, "/old")
                #expect(answer.status == 308 && answer["connection"] == nil, "\(method)")
            }
            for method in ["CONNECT", "TRACE"] { #expect(try proxy.send(method, "/old").status >= 400, "\(method)") }
            let posted = try proxy.send("POST", "/old", body: "hello")
            #expect(posted.status == 308 && posted["connection"] == "close" && posted.isClean)
            let client = try proxy.connect()
            try client.send(
                "POST /old HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nExpect: 100-continue\r\n\r\n")
            let refused = try client.answer(to: "POST")
            #expect(refused.status == 308 && refused.interim.isEmpty)
            client.finishSending()
            #expect(client.isClosed())
            #expect(origin.count("/old") == 0)
        }
    }

    @Test func `OPTIONS for the server as a whole is not redirected`() throws {
        try scenario(routes: "- {redirect: {to: 'https://${host}${target}'}}") { _, proxy in
            let answer = try proxy.send("OPTIONS", "*")
            #expect(answer.status == 200 && answer["location"] == nil && answer["allow"] != nil)
        }
    }

    @Test func `pipelined requests are answered in their order, whoever answers`() throws {
        try scenario(routes: Self.redirect) { origin, proxy in
            origin.on("/x") { _ in [.answer(200, "Cache-Control: max-age=60", body: "hello")] }
            origin.on("/y") { _ in [.answer(200, "Cache-Control: no-store", body: "other")] }
            try proxy.get("/x")
            let targets = ["/old/1", "/x", "/old/2", "/y", "/old/3", "/x", "/x", "/old/4"]
            let client = try proxy.connect()
            try client.send(targets.map { proxy.request("GET", $0) }.joined())
            for target in targets {
                let answer = try client.answer()
                #expect(answer.status == (target.hasPrefix("/old") ? 308 : 200), "\(target)")
                #expect(answer["location"] == (target.hasPrefix("/old") ? "https://127.0.0.1\(target)" : nil))
            }
        }
    }

    @Test func `access rules go before the route's answer, and count it once`() throws {
        let routes = """
            - {path: /denied, deny: [127.0.0.0/8], respond: {status: 200}}
            - {path: /limited, rate-limit: {rate: 2/h}, respond: {status: 200}}
            """
        try scenario(routes: routes) { _, proxy in
            let denied = try proxy.get("/denied")
            let limited = try (1...3).map { _ in try proxy.get("/limited").status }
            #expect(denied.status == 403 && limited == [200, 200, 429])
        }
    }

    @Test func `a reload reads the file of a response again, and a missing one is a mistake`() throws {
        let route = "- {respond: {status: 200, file: PAGES/page.html}}"
        try scenario(routes: route, pages: ["page.html": "one"]) { _, proxy in
            let file = System.contents(of: proxy.configurationPath)
            let page = try #require(file.firstMatch(of: #/file: ([^}]+)\}/#).map { String($0.1) })
            #expect(try proxy.get("/").text == "one")
            try System.write("two", to: page)
            #expect(try proxy.command("reload").exit == .code(0))
            #expect(try proxy.get("/").text == "two")
            try System.write(file.replacing("page.html", with: "none.html"), to: proxy.configurationPath)
            let failed = try proxy.command("reload")
            #expect(failed.exit == .code(78) && failed.everything.contains("none.html` cannot be read: No such file"))
            #expect(try proxy.get("/").text == "two")
        }
    }
}

/// Routes for one scheme.
@Suite(.scenario) struct RouteSchemeTests {
    private static let trusting = "clients: {trusted-proxies: [127.0.0.1]}"

    @Test(.clientsInTheClear("the scheme is told by a proxy in front"))
    func `requests for http are redirected to https, and those for https are forwarded`() throws {
        let routes = """
            - {scheme: http, redirect: {to: "https://${host}${target}"}}
            - {upstream: origin}
            """
        try scenario(routes: routes, more: Self.trusting) { origin, proxy in
            origin.on("/x") { _ in [.answer(200, "Cache-Control: max-age=60", body: "hello")] }
            for _ in 1...2 {
                let (plain, secure) = (try proxy.get("/x"), try proxy.get("/x", "X-Forwarded-Proto: https"))
                #expect(plain.status == 308 && secure.text == "hello")
            }
            #expect(origin.count("/x") == 1)
        }
    }

    @Test(.clientsInTheClear("the scheme is told by a proxy in front"))
    func `a purge finds the route and the key of each scheme`() throws {
        let routes = """
            - {scheme: https, path: /x, upstream: origin, key: {query: none}}
            - {scheme: http, path: /x, upstream: origin, key: {sort-query: true}}
            """
        try scenario(routes: routes, more: Self.trusting) { origin, proxy in
            origin.on("/x") { _ in [.answer(200, "Cache-Control: max-age=60", body: "hello")] }
            let secure = "X-Forwarded-Proto: https"
            for _ in 1...2 {
                let answers = (try proxy.get("/x?b&a", secure), try proxy.get("/x?b&a"))
                #expect(answers.0.status == 200 && answers.1.status == 200)
            }
            #expect(origin.count("/x") == 2)
            #expect(try proxy.get("/x?c", secure).cacheStatus.contains("hit"))
            #expect(try proxy.purge("http://\(proxy.host)/x?b&a").text.contains("purged 2 stored responses"))
            #expect(try proxy.get("/x?a&b").status == 200 && proxy.get("/x?c", secure).status == 200)
            #expect(origin.count("/x") == 4)
        }
    }
}
