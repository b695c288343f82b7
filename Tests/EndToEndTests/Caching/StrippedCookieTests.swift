import Glibc
import Testing

/// Cookies that the operator takes out of requests: neither the cache nor the origin sees them.
@Suite(.scenario) struct StrippedCookieTests {
    static let setting = Setting.other(section: "caching", key: "strip-cookies", value: "[_ga, _ga_*, utm_*]")
    private static let fresh = "Cache-Control: max-age=60"

    /// Shows the cookies that the origin received.
    private static func page(_ request: Received) -> [Step] {
        [.answer(200, fresh, "Vary: Cookie", body: "\(request.number) \(request["cookie"] ?? "none")")]
    }

    @Test(arguments: [setting, .other(section: "route", key: "strip-cookies", value: "[_ga, _ga_*, utm_*]")])
    func `requests that differ in stripped cookies share one fetch, and the origin gets none of them`(
        _ setting: Setting
    ) throws {
        try scenario(setting) { origin, proxy in
            origin.on("/x", Self.page)
            #expect(try proxy.get("/x", "Cookie: _ga=1; theme=dark; utm_source=a").text == "1 theme=dark")
            for cookies in [
                "theme=dark", "theme=dark; _ga=2", "_ga_A=3;theme=dark;_ga=4", "_ga=5;; ; theme=dark ;utm_x",
            ] {
                let answer = try proxy.get("/x", "Cookie: \(cookies)")
                #expect(answer.text == "1 theme=dark" && answer.cacheStatus.contains("; hit"), "\(cookies)")
            }
            #expect(try proxy.get("/x", "Cookie: _ga=1", "Cookie: utm_a=2").text == "2 none")
            #expect(try proxy.get("/x").cacheStatus.contains("; hit"), "as without the field")
            #expect(try proxy.get("/x", "Cookie: _GA=1; theme=dark").text == "3 _GA=1; theme=dark")
            #expect(origin.count("/x") == 3)
            #expect(origin.requests("/x")[1].head.all("cookie").isEmpty)
        }
    }

    @Test func `simultaneous requests share a response without a lifetime as if they had no such cookies`() throws {
        try scenario(Self.setting) { origin, proxy in
            let first = Gate(), second = Gate()
            origin.on("/x") { request in
                [.gate(request.number == 1 ? first : second), .answer(200, body: request["cookie"] ?? "none")]
            }
            let leader = proxy.crowd(1, get: "/x", "Cookie: theme=0")
            try proxy.joined(1)
            let others = Crowd(
                at: proxy.endpoint,
                (0..<20).map { proxy.visitor("/x", ["Cookie: _ga=\($0); theme=\($0 % 2)"]) })
            try proxy.joined(21)
            first.open()
            // Ten are released, and share the next.
            try proxy.joined(31)
            second.open()
            #expect(leader.finished().allSatisfy { $0.text == "theme=0" })
            for (index, answer) in others.finished().enumerated() {
                #expect(answer.text == "theme=\(index % 2)")
            }
            #expect(origin.count("/x") == 2)
        }
    }

    @Test func `pass cookies and the cookies of a key are looked for among those that are left`() throws {
        let origin = try ScriptedOrigin()
        defer { origin.stop() }
        origin.on("*") { request in
            [.answer(200, Self.fresh, body: "\(request.number) \(request["cookie"] ?? "none")")]
        }
        let proxy = try Program.serve(
            file: """
                caching:
                  strip-cookies: [_ga]
                  pass-cookies: ["*"]
                upstreams:
                  - {name: shop, servers: ["\(origin.url)"]}
                routes:
                  - {upstream: shop, path: /key, pass-cookies: [], key: {cookies: [theme]}}

                """)
        defer { proxy.stop() }
        #expect(try proxy.get("/x", "Cookie: _ga=1").text == "1 none")
        #expect(try proxy.get("/x", "Cookie: _ga=2").cacheStatus.contains("; hit"))
        let passed = try proxy.get("/x", "Cookie: _ga=2; a=b")
        #expect(passed.text == "2 a=b" && passed.cacheStatus.contains("detail=pass-cookie"))
        // In the key a cookie counts with all bytes of its value.
        #expect(try proxy.get("/key", "Cookie: theme=dark; _ga=1").text == "1 theme=dark")
        #expect(try proxy.get("/key", "Cookie: _ga=2; theme=dark").text == "1 theme=dark")
        #expect(try proxy.get("/key", "Cookie: _ga=2; theme=light").text == "2 theme=light")
    }

    @Test func `every method and every kind of request loses the cookies`() throws {
        try scenario(Self.setting) { origin, proxy in
            origin.on("*") { request in
                [
                    .requestBody,
                    .answer(200, "Cache-Control: no-store", "Seen: \(request["cookie"] ?? "none")", body: "x"),
                ]
            }
            for method in ["GET", "HEAD", "DELETE", "OPTIONS"] {
                #expect(try proxy.send(method, "/x", "Cookie: _ga=1; a=2")["seen"] == "a=2", "\(method)")
                #expect(try proxy.send(method, "/x", "Cookie: _ga=1")["seen"] == "none", "\(method)")
            }
            let post = try proxy.send(
                "POST", "/x", "A: b", "Cookie: _ga=1; a=2", "Cookie: _ga=3", "C: d", body: "content")
            #expect(post["seen"] == "a=2")
            let received = try #require(origin.requests("/x").last)
            #expect(received["a"] == "b" && received["c"] == "d" && received["content-length"] == "7")
            #expect(try proxy.get("/x", "Cookie: a=2; _ga=1", "Range: bytes=0-0")["seen"] == "a=2")
        }
    }

    /// The bytes behind a head are another request's; a head that waits for the client is parsed again.
    @Test func `pipelined requests keep what belongs to them`() throws {
        try scenario(.workers(1), Self.setting) { origin, proxy in
            let length = 300_000
            origin.on("/large") { _ in [.answer(200, Self.fresh, pattern: length)] }
            origin.on("/x", Self.page)
            origin.on("/pass") { [.answer(200, "Cache-Control: no-store", body: $0["cookie"] ?? "none")] }
            try proxy.get("/large")
            try proxy.get("/x", "Cookie: theme=dark")
            func get(_ path: String, _ cookies: String) -> String {
                proxy.request("GET", path, ["A: b", "Cookie: \(cookies)", "C: d"])
            }
            let client = try proxy.connect()
            for _ in 0..<3 {
                var requests = ""
                for index in 0..<20 {
                    requests += get("/x", "_ga=\(index); theme=dark") + get("/large", "_ga=\(index)")
                    requests += get("/x", "theme=dark; utm_\(index)") + get("/pass", "_ga=\(index); own=\(index)")
                }
                try client.send(requests)
                for index in 0..<20 {
                    #expect(try client.answer().text == "1 theme=dark")
                    #expect(try client.answer().body.length == length)
                    #expect(try client.answer().text == "1 theme=dark")
                    #expect(try client.answer().text == "own=\(index)")
                }
            }
            #expect(origin.count("/x") == 1)
        }
    }

    /// Requests of one loop whose heads are the same bytes join without being looked up.
    @Test func `a request with other cookies follows no other request to its fetch`() throws {
        try scenario(.workers(1), Self.setting) { origin, proxy in
            let first = Gate(), second = Gate()
            origin.on("/x") { request in
                [.gate(request.number == 1 ? first : second), .answer(200, body: request["cookie"] ?? "none")]
            }
            // With spaces in the place of what is stripped, and with a field that has none left.
            let cookies = [
                "_ga=1; a=1", "a=1", "a=1       ", "_ga=1; b=1", "_ga=1", "     ", "_ga=2; a=1", "_ga=1; a=1", "_ga=1",
            ]
            let leader = proxy.crowd(1, get: "/x", "A: b", "Cookie: a=1", "C: d")
            try proxy.joined(1)
            let crowd = Crowd(
                at: proxy.endpoint,
                (0..<90).map { proxy.visitor("/x", ["A: b", "Cookie: \(cookies[$0 % cookies.count])", "C: d"]) })
            try proxy.joined(91)
            first.open()
            // Of each nine, one with `b=1` and three without a cookie are released.
            try proxy.joined(131)
            second.open()
            #expect(leader.finished().allSatisfy { $0.text == "a=1" })
            for (index, answer) in crowd.finished().enumerated() {
                let own = cookies[index % cookies.count].replacing(/_ga=.(; )?/, with: "").trimmed
                #expect(answer.text == (own.isEmpty ? "none" : own), "\(cookies[index % cookies.count])")
            }
            #expect(origin.count("/x") == 3)
        }
    }

    @Test func `a reload that strips a cookie holds for the next request`() throws {
        let origin = try ScriptedOrigin()
        defer { origin.stop() }
        origin.on("*") { [.answer(200, Self.fresh, "Vary: Cookie", body: $0["cookie"] ?? "none")] }
        func file(_ strips: String) -> String {
            """
            workers: 1
            caching:
              strip-cookies: \(strips)
            upstreams:
              - {name: shop, servers: ["\(origin.url)"]}

            """
        }
        let proxy = try Program.serve(file: file("[]"))
        defer { proxy.stop() }
        #expect(try proxy.get("/a", "Cookie: _ga=1; b=2").text == "_ga=1; b=2")
        try System.write(file("['*']"), to: proxy.configurationPath)
        proxy.signal(SIGHUP)
        try eventually("the new settings hold") { try proxy.get("/b", "Cookie: _ga=1; b=2").text == "none" }
        #expect(try proxy.get("/a", "Cookie: _ga=1; b=2").text == "none")
    }
}
