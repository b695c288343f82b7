import Glibc
import Testing

/// Requests with a cookie that the operator named go past the cache.
@Suite(.scenario) struct PassCookieTests {
    private static let setting = Setting.other(
        section: "caching", key: "pass-cookies", value: "[sessionid, wordpress_logged_in_*]")
    private static let member = "Cookie: theme=dark; sessionid=1"
    private static let fresh = "Cache-Control: public, max-age=60"

    /// Says to whom it answers, and how often it was asked.
    private static func page(_ request: Received) -> [Step] {
        [
            .answer(
                200, fresh, "ETag: \"a\"",
                body: "\(request["cookie"]?.contains("sessionid=") == true ? "member" : "public") \(request.number)")
        ]
    }

    @Test(arguments: [
        Setting.other(section: "caching", key: "pass-cookies", value: "sessionid"),
        .other(section: "route", key: "pass-cookies", value: "[admin, sessionid]"),
    ])
    func `a request with a pass cookie is forwarded, and its response is not shared`(
        _ setting: Setting
    ) throws {
        try scenario(setting) { origin, proxy in
            origin.on("/x", Self.page)
            let first = try proxy.get("/x", Self.member)
            #expect(first.text == "member 1")
            #expect(first.cacheStatus.contains("fwd=bypass") && first.cacheStatus.contains("detail=pass-cookie"))
            #expect(!first.cacheStatus.contains("stored"), "\(first.cacheStatus)")
            #expect(origin.requests("/x")[0]["cookie"] == "theme=dark; sessionid=1")
            let other = try proxy.get("/x", "Cookie: theme=dark; session=1")
            #expect(other.text == "public 2" && other.cacheStatus.contains("stored"))
            #expect(try proxy.get("/x").text == "public 2")
            #expect(try proxy.get("/x", "Cookie: theme=dark").cacheStatus.contains("; hit"))
            let again = try proxy.get("/x", "Cookie: theme=dark", "Cookie: sessionid=\"\"")
            #expect(again.text == "member 3")
            #expect(try proxy.get("/x").text == "public 2", "what is stored stays")
        }
    }

    @Test(arguments: [
        (Setting.other(section: "caching", key: "pass-cookies", value: "['*']"), "Cookie: abc"),
        (.other(section: "caching", key: "pass-cookies", value: "[sessionid]"), "Cookie: a=b; sessionid"),
    ])
    func `a pass cookie without a value counts too`(_ setting: Setting, _ cookie: String) throws {
        try scenario(setting) { origin, proxy in
            origin.on("/x") { [.answer(200, Self.fresh, body: $0["cookie"] ?? "public")] }
            let own = try proxy.get("/x", cookie)
            #expect(own.cacheStatus.contains("fwd=bypass") && !own.cacheStatus.contains("stored"))
            let other = try proxy.get("/x")
            #expect(other.text == "public")
        }
    }

    @Test func `a prefix selects the names of pass cookies if the operator says so`() throws {
        try scenario(Self.setting) { origin, proxy in
            origin.on("/x", Self.page)
            try proxy.get("/x")
            #expect(try proxy.get("/x", "Cookie: wordpress_logged_in_0a1b=me").text == "public 2")
            #expect(try proxy.get("/x", "Cookie: wordpress_test_cookie=1").text == "public 1")
            #expect(try proxy.get("/x", "Cookie: sessionids=1").text == "public 1")
        }
    }

    /// `isLate`: the head of the response is there before the reload.
    @Test(arguments: [false, true])
    func `a reload that names a pass cookie applies to fetches in flight`(isLate: Bool) throws {
        let origin = try ScriptedOrigin()
        defer { origin.stop() }
        let gate = Gate()
        for path in ["/joined", "/stored"] {
            origin.on(path) { request in
                let page = request["cookie"] ?? "public"
                guard request.number == 1 else { return [.answer(200, Self.fresh, body: page)] }
                let head = Step.head(200, Self.fresh, "Content-Length: \(page.utf8.count)")
                return (isLate ? [head, .gate(gate)] : [.gate(gate), head]) + [.text(page)]
            }
        }
        origin.on("/") { _ in [.answer(200)] }
        func file(_ hosts: String, _ cookies: String) -> String {
            """
            workers: 1
            hosts: \(hosts)
            caching:
              pass-cookies: \(cookies)
            upstreams:
              - {name: shop, servers: ["\(origin.url)"]}

            """
        }
        let proxy = try Program.serve(file: file("[]", "[]"))
        defer { proxy.stop() }
        var members: [Conversation] = []
        for path in ["/joined", "/stored"] {
            let member = try proxy.connect()
            try member.send(proxy.request("GET", path, ["Cookie: sessionid=1"]))
            if isLate {
                _ = try member.progress { $0.status == 200 }
            } else {
                try eventually("it is at the origin") { origin.count(path) == 1 }
            }
            members.append(member)
        }
        try System.write(file("[127.0.0.1]", "[sessionid]"), to: proxy.configurationPath)
        proxy.signal(SIGHUP)
        try eventually("the new settings hold") { try proxy.get("/", "Host: elsewhere").status == 421 }
        let others = proxy.crowd(3, get: "/joined")
        // Once its head is there they do not wait for it: they have theirs while it streams.
        let early = isLate ? others.finished() : []
        if !isLate { try proxy.joined(5) }
        gate.open()
        let answers = isLate ? early : others.finished()
        #expect(answers.map(\.text) == ["public", "public", "public"])
        #expect(origin.count("/joined") == 2)
        for member in members {
            let page = try member.answer()
            #expect(page.text == "sessionid=1")
        }
        for path in ["/joined", "/stored"] {
            let page = try proxy.get(path)
            #expect(page.text == "public")
        }
    }

    @Test func `a route may have pass cookies of its own, or none`() throws {
        let origin = try ScriptedOrigin()
        defer { origin.stop() }
        origin.on("*") { request in [.answer(200, Self.fresh, body: "\(request.number)")] }
        let proxy = try Program.serve(
            file: """
                caching:
                  pass-cookies: sessionid
                upstreams:
                  - {name: shop, servers: ["\(origin.url)"]}
                routes:
                  - {upstream: shop, path: /static, pass-cookies: []}
                  - {upstream: shop, path: /admin, pass-cookies: [admin]}

                """)
        defer { proxy.stop() }
        for (path, cookie, isPassed) in [
            ("/", "sessionid=1", true), ("/", "admin=1", false), ("/static/a", "sessionid=1", false),
            ("/admin", "sessionid=1", false), ("/admin", "admin=1", true),
        ] {
            try proxy.get(path)
            let status = try proxy.get(path, "Cookie: \(cookie)").cacheStatus
            #expect(status.contains("detail=pass-cookie") == isPassed, "\(path) \(cookie): \(status)")
            #expect(status.contains("; hit") != isPassed, "\(path) \(cookie): \(status)")
        }
    }

    @Test func `requests with a pass cookie neither wait for others nor delay others`() throws {
        try scenario(Self.setting) { origin, proxy in
            let gate = Gate()
            origin.on("/x") { request in [.gate(gate)] + Self.page(request) }
            let others = proxy.crowd(5, get: "/x")
            try proxy.joined(5)
            let members = proxy.crowd(5, get: "/x", Self.member)
            try eventually("each of them is at the origin") { origin.count("/x") == 6 }
            let more = proxy.crowd(5, get: "/x")
            try proxy.joined(10)
            gate.open()
            let answers = members.finished()
            #expect(answers.allSatisfy { $0.text.hasPrefix("member") }, "\(answers.map(\.text))")
            #expect(Set(answers.map(\.text)).count == 5)
            #expect((others.finished() + more.finished()).allSatisfy { $0.text == "public 1" })
            #expect(origin.count("/x") == 6)
        }
    }

    @Test func `a response to a request with a pass cookie does not affect sharing`() throws {
        try scenario(Self.setting) { origin, proxy in
            let gate = Gate()
            origin.on("/x") { request in
                request["cookie"] != nil
                    ? [.answer(200, "Cache-Control: private", "Set-Cookie: a=b", "Vary: *", body: "mine")]
                    : [.gate(gate), .answer(200, Self.fresh, body: "ours")]
            }
            let mine = try proxy.get("/x", Self.member)
            #expect(mine.text == "mine" && mine["set-cookie"] == "a=b")
            #expect(mine.cacheStatus.contains("detail=pass-cookie"), "\(mine.cacheStatus)")
            let crowd = proxy.crowd(5, get: "/x")
            try proxy.joined(5)
            gate.open()
            #expect(crowd.finished().allSatisfy { $0.text == "ours" })
            #expect(origin.count("/x") == 2)
        }
    }

    @Test(arguments: [304, 206, 412])
    func `the conditions and ranges of a pass are forwarded, and so is the response`(status: Int) throws {
        try scenario(Self.setting) { origin, proxy in
            origin.on("/x") { request in
                guard request["cookie"] != nil else { return Self.page(request) }
                return switch status {
                case 304: [.head(304, "ETag: \"b\"")]
                case 206: [.answer(206, Self.fresh, "ETag: \"a\"", "Content-Range: bytes 0-1/8", body: "me")]
                default: [.answer(412, body: "no")]
                }
            }
            try proxy.get("/x")
            let asked = status == 304 ? "If-None-Match: \"b\"" : status == 206 ? "Range: bytes=0-1" : "If-Match: \"c\""
            let answer = try proxy.get("/x", Self.member, asked)
            #expect(answer.status == status && answer.cacheStatus.contains("detail=pass-cookie"))
            #expect(answer["content-range"] == (status == 206 ? "bytes 0-1/8" : nil))
            let sent = origin.requests("/x")[1]
            let field = asked.split(separator: ":")[0].lowercased()
            #expect(sent[field].map { asked.hasSuffix($0) } == true)
            let stored = try proxy.get("/x")
            #expect(stored.text == "public 1" && stored.cacheStatus.contains("; hit"), "\(stored.cacheStatus)")
            let part = try proxy.get("/x", "Range: bytes=0-5")
            #expect(part.status == 206 && part.text == "public")
        }
    }

    @Test func `HEAD with a pass cookie neither uses nor changes the stored response`() throws {
        try scenario(Self.setting) { origin, proxy in
            origin.on("/x") { request in
                request.method == "HEAD"
                    ? [.head(200, Self.fresh, "ETag: \"b\"", "Content-Length: 99")] : Self.page(request)
            }
            try proxy.get("/x")
            let head = try proxy.send("HEAD", "/x", Self.member)
            #expect(head["content-length"] == "99" && head.cacheStatus.contains("detail=pass-cookie"))
            let stored = try proxy.get("/x")
            #expect(stored.text == "public 1" && stored["etag"] == "\"a\"" && stored.cacheStatus.contains("; hit"))
        }
    }

    @Test func `an unsafe request with a pass cookie invalidates like any other`() throws {
        try scenario(Self.setting, .storesPostAnswers) { origin, proxy in
            origin.on("/x") { request in
                request.method == "POST"
                    ? [.answer(200, Self.fresh, "Content-Location: /x", body: "posted")] : Self.page(request)
            }
            try proxy.get("/x")
            let post = try proxy.send("POST", "/x", Self.member, "Content-Length: 0")
            #expect(post.text == "posted" && post.cacheStatus.contains("fwd=method"), "\(post.cacheStatus)")
            #expect(!post.cacheStatus.contains("stored"), "\(post.cacheStatus)")
            #expect(try proxy.get("/x").text == "public 3")
        }
    }

    @Test func `a pass gets no stale response when the origin fails, and causes no refresh`() throws {
        let stale = Setting.other(section: "caching", key: "stale-while-revalidate", value: "60s")
        try scenario(Self.setting, .staleIfError(.seconds(60)), stale) { origin, proxy in
            origin.on("/x") { request in
                request["cookie"] != nil
                    ? [.answer(503, body: "down")]
                    : [.answer(200, "Cache-Control: max-age=10", "Age: 20", body: "\(request.number)")]
            }
            try proxy.get("/x")
            let failed = try proxy.get("/x", Self.member)
            #expect(failed.status == 503 && failed.text == "down")
            #expect(origin.count("/x") == 2, "nothing was refreshed")
            origin.goDown()
            #expect(try proxy.get("/x", Self.member).status == 502)
            #expect(try proxy.get("/x").text == "1", "while others still get it")
        }
    }

    @Test func `a pass with only-if-cached gets 504`() throws {
        try scenario(Self.setting) { origin, proxy in
            origin.on("/x", Self.page)
            try proxy.get("/x")
            #expect(try proxy.get("/x", Self.member, "Cache-Control: only-if-cached").status == 504)
            #expect(origin.count("/x") == 1)
        }
    }

    @Test func `the access log reports a pass as fetched alone`() throws {
        try scenario(Self.setting, .accessLog) { origin, proxy in
            origin.on("/x", Self.page)
            try proxy.get("/x", Self.member)
            try eventually("a line") { try proxy.accessLog.count == 1 }
            let line = try proxy.accessLog[0]
            #expect(line["verdict"]?.string == "pass" && line["role"]?.string == "alone")
            #expect(line["detail"]?.string == "pass-cookie")
        }
    }
}
