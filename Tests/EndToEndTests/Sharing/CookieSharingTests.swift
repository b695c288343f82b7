import Testing

/// What has no lifetime is shared only among requests with the same cookies: it may be the page of one session, though
/// its origin, written for servers that share nothing of the kind, does not say so. What holds for cookies as for any
/// other field is in `PersonalPageTests`.
@Suite(.scenario) struct CookieSharingTests {
    @Test func `a validation is shared only among requests with the same cookies`() throws {
        try scenario { origin, proxy in
            let gate = Gate()
            origin.on("/page") { request in
                guard request.number > 1 else {
                    return Teller.cookie.page(request, ["Cache-Control: max-age=0", "ETag: \"a\""])
                }
                // To the first of the two sessions it has not changed.
                return request["cookie"] == "session=a"
                    ? [.gate(gate), .head(304, ["ETag: \"a\""])]
                    : [.gate(gate)] + Teller.cookie.page(request, ["ETag: \"b\""])
            }
            #expect(try proxy.get("/page", "Cookie: session=a").text == "session=a")
            let own = proxy.crowd(5, get: "/page", "Cookie: session=a")
            let other = proxy.crowd(5, get: "/page", "Cookie: session=b")
            // All of them, or one who comes after the end would ask about what the other session was told.
            try proxy.joined(11)
            try eventually("both sessions ask") { origin.count("/page") == 3 }
            gate.open()
            #expect(own.finished().allSatisfy { $0.text == "session=a" })
            #expect(other.finished().allSatisfy { $0.text == "session=b" })
        }
    }

    @Test(arguments: [[], ["Vary: Accept-Language"], ["No-Vary-Search: params=(\"a\")"]])
    func `a request with the same cookies joins while the page streams`(_ fields: [String]) throws {
        try scenario { origin, proxy in
            let gate = Gate()
            origin.on("/page") { _ in
                [.head(200, fields + ["Content-Length: 6"]), .text("own"), .gate(gate), .text("...")]
            }
            let (first, second) = try (proxy.connect(), proxy.connect())
            for client in [first, second] {
                try client.send(proxy.request("GET", "/page", ["Cookie: session=a"]))
                try client.progress { $0.body.length == 3 }
            }
            gate.open()
            let (own, joined) = try (first.answer(), second.answer())
            #expect(own.text == "own..." && joined.text == "own...")
            #expect(origin.count("/page") == 1)
        }
    }

    @Test func `sessions do not wait for one another's parts once responses are known to be personal`() throws {
        try scenario(.rangeMisses("part")) { origin, proxy in
            let gate = Gate()
            origin.on("/x") { request in
                (request.number == 1 ? [] : [.gate(gate)]) + [
                    .answer(206, "ETag: \"a\"", "Content-Range: bytes 2-3/10", body: "23")
                ]
            }
            try proxy.send("GET", "/x", "Range: bytes=2-3", "Cookie: session=a")
            let crowd = Crowd(
                at: proxy.endpoint, (0..<4).map { proxy.visitor("/x", ["Range: bytes=2-3", "Cookie: session=\($0)"]) })
            try eventually("each is at the origin") { origin.count("/x") == 5 }
            gate.open()
            #expect(crowd.finished().allSatisfy { $0.status == 206 })
        }
    }

    @Test(arguments: [[], ["Cache-Control: max-age=0"], ["Expires: 0"]])
    func `a session's page is not served stale to another session when the origin fails`(_ fields: [String]) throws {
        try scenario(.other(section: "caching", key: "stale-if-error", value: "1h")) { origin, proxy in
            origin.on("*") { Teller.cookie.page($0, fields + ["ETag: \"a\""]) }
            let answer1 = try proxy.get("/page", "Cookie: session=a")
            #expect(answer1.text == "session=a")
            let answer2 = try proxy.get("/anonymous")
            #expect(answer2.text == "anonymous")
            origin.on("*") { _ in [.answer(503, body: "down")] }
            for cookies in [["Cookie: session=b"], ["Cookie: session=a"], []] {
                let answer3 = try proxy.send("GET", "/page", cookies)
                #expect(answer3.status == 503)
                // What was fetched without cookies shows no session.
                let answer4 = try proxy.send("GET", "/anonymous", cookies)
                #expect(answer4.text == "anonymous")
            }
            origin.goDown()
            for cookies in [["Cookie: session=b"], []] {
                let answer5 = try proxy.send("GET", "/page", cookies)
                #expect(answer5.status == 502)
                let answer6 = try proxy.send("GET", "/anonymous", cookies)
                #expect(answer6.text == "anonymous")
            }
        }
    }

    @Test func `a session's page is not served stale to others although the operator or a client permits`() throws {
        try scenario(.other(section: "caching", key: "stale-while-revalidate", value: "1h")) { origin, proxy in
            origin.on("*") { Teller.cookie.page($0, ["ETag: \"\($0["cookie"] ?? "")\""]) }
            for session in ["session=a", "session=b", "session=a"] {
                let answer7 = try proxy.get("/page", "Cookie: \(session)")
                #expect(answer7.text == session)
                let answer8 = try proxy.get("/page", "Cookie: \(session)", "Cache-Control: max-stale")
                #expect(answer8.text == session)
            }
        }
    }

    @Test func `the date of a session's page is not sent beside the tag for another session`() throws {
        try scenario { origin, proxy in
            let fields = [
                "Cache-Control: max-age=0", "ETag: \"a\"", "Last-Modified: \(System.httpDate(-864_000))",
            ]
            // Against RFC 9110 §13.1.3, but there are such origins.
            origin.on("*") { request in
                request["if-modified-since"] == nil ? Teller.cookie.page(request, fields) : [.head(304, [fields[2]])]
            }
            for session in ["session=a", "session=b"] {
                let own = try proxy.get("/page", "Cookie: \(session)")
                #expect(own.text == session)
            }
        }
    }

    @Test func `the date of a page fetched without cookies is not sent for a request with cookies`() throws {
        try scenario { origin, proxy in
            let modified = "Last-Modified: \(System.httpDate(-864_000))"
            origin.on("*") { request in
                request["if-modified-since"] == nil
                    ? Teller.cookie.page(request, ["Cache-Control: max-age=0", modified]) : [.head(304, [])]
            }
            for cookies in [[], ["Cookie: session=a"], [], ["Cookie: session=b"]] {
                let own = try proxy.send("GET", "/page", cookies)
                #expect(own.text == (cookies.first.map { String($0.dropFirst(8)) } ?? "anonymous"))
            }
        }
    }

    @Test func `a page fetched without cookies is not served stale to others during its revalidation`() throws {
        try scenario(.other(section: "caching", key: "stale-while-revalidate", value: "1h")) { origin, proxy in
            origin.on("*") { Teller.cookie.page($0, ["ETag: \"\($0["cookie"] ?? "")\""]) }
            let first = try proxy.get("/page")
            #expect(first.text == "anonymous")
            let own = try proxy.get("/page", "Cookie: session=a")
            #expect(own.text == "session=a")
        }
    }

    @Test(arguments: ["GET", "HEAD"])
    func `fields sent to one session reach no other`(_ method: String) throws {
        try scenario { origin, proxy in
            origin.on("/page") { request in
                let own = request["cookie"].map { ["X-Token: \($0)"] } ?? []
                return request["if-none-match"] == nil
                    ? Teller.cookie.page(request, ["ETag: \"t\""]) : [.head(304, ["ETag: \"t\""] + own)]
            }
            #expect(try proxy.get("/page").text == "anonymous")
            let own = try proxy.send(method, "/page", ["Cookie: session=a"])
            #expect(own.head?["x-token"] == "session=a")
            #expect(try proxy.get("/page").head?["x-token"] == nil)
            origin.stop()
            let standIn = try proxy.get("/page")
            #expect(standIn.text == "anonymous")
            #expect(standIn.head?["x-token"] == nil)
        }
    }

    @Test(arguments: ["no-store", "private, max-age=0", "max-age=0", "max-age=0, must-revalidate"])
    func `a response that takes a page's lifetime away does so for all sessions`(_ directives: String) throws {
        try scenario { origin, proxy in
            origin.on("/page") { request in
                request.number == 1
                    ? [.answer(200, "Cache-Control: max-age=60", "Age: 100", "ETag: \"a\"", body: "old")]
                    : [.head(304, ["ETag: \"a\"", "Cache-Control: \(directives)"])]
            }
            let first = try proxy.get("/page")
            #expect(first.text == "old")
            let told = try proxy.get("/page", "Cookie: session=a")
            #expect(told.text == "old")
            origin.stop()
            let after = try proxy.get("/page")
            #expect(after.status == 502)
        }
    }

    @Test func `sessions do not wait for one another once a 304 has taken the lifetime away`() throws {
        try scenario { origin, proxy in
            let gate = Gate()
            origin.on("/page") { request in
                switch request.number {
                case 1: [.answer(200, "Cache-Control: max-age=60", "Age: 100", "ETag: \"a\"", body: "page")]
                case 2: [.head(304, ["ETag: \"a\"", "Cache-Control: max-age=0"])]
                default: [.gate(gate), .head(304, ["ETag: \"a\"", "Cache-Control: max-age=0"])]
                }
            }
            _ = try proxy.get("/page")
            _ = try proxy.get("/page", "Cookie: session=a")
            let crowds = ["a", "b", "c"].map { proxy.crowd(2, get: "/page", "Cookie: session=\($0)") }
            try eventually("all three sessions ask") { origin.count("/page") == 5 }
            gate.open()
            for crowd in crowds { #expect(crowd.finished().allSatisfy { $0.text == "page" }) }
        }
    }

    @Test func `a session's page that only a date could validate is not stored`() throws {
        try scenario { origin, proxy in
            let modified = "Last-Modified: \(System.httpDate(-864_000))"
            origin.on("*") { request in
                request["if-modified-since"] == nil
                    ? Teller.cookie.page(request, ["Cache-Control: max-age=0", modified]) : [.head(304, [])]
            }
            for session in ["session=a", "session=b"] {
                let answer9 = try proxy.get("/page", "Cookie: \(session)")
                #expect(answer9.text == session)
            }
        }
    }
}
