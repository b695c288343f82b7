import Glibc
import Testing

/// `request-headers` and `response-headers`, on each kind of response: what the drawing in docs/rules.md says.
@Suite(.scenario) struct FieldRuleTests {
    private static func topRequests(_ rules: String) -> Setting {
        .other(section: "", key: "request-headers", value: rules)
    }
    private static func topResponses(_ rules: String) -> Setting {
        .other(section: "", key: "response-headers", value: rules)
    }
    private static func route(_ key: String, _ value: String) -> Setting {
        .other(section: "route", key: key, value: value)
    }

    /// Constant lines, a line with variables, and fields that are taken away.
    private static let responses: [Setting] = [
        topResponses(
            "{set: {x-top: all, X-Both: top, x-told: \"${status} ${cache} ${path}\"}, remove: [server, x-secret]}"),
        route("response-headers", "{set: {x-both: route}, add: {x-more: \"1\"}, remove: [x-powered-by]}"),
    ]

    private static let sent = [
        "Cache-Control: max-age=60", "ETag: \"a\"", "Server: origin/1", "X-Secret: s", "X-Powered-By: php",
        "X-More: 0", "X-Both: origin",
    ]

    private func expectRules(
        on answer: Answer, told: String, more: [String] = ["0", "1"], sourceLocation: SourceLocation = #_sourceLocation
    ) {
        let head = answer.head
        #expect(head?.all("x-top") == ["all"], sourceLocation: sourceLocation)
        #expect(head?.all("x-both") == ["route"], sourceLocation: sourceLocation)
        #expect(head?.all("x-told") == [told], sourceLocation: sourceLocation)
        #expect(head?.all("x-more") == more, sourceLocation: sourceLocation)
        #expect(head?["server"] == nil && head?["x-secret"] == nil, sourceLocation: sourceLocation)
        #expect(head?["x-powered-by"] == nil, sourceLocation: sourceLocation)
    }

    @Test func `response rules act on misses, hits, ranges, parts of hits and 304s to clients`() throws {
        try scenario(settings: Self.responses) { origin, proxy in
            origin.on("/x") { _ in
                [.answer(200, Self.sent + ["Content-Type: text/plain"], body: "0123456789")]
            }
            expectRules(on: try proxy.get("/x"), told: "200 miss /x")
            let client = try proxy.connect()
            for (fields, told) in [
                ([], "200 hit /x"), (["Range: bytes=0-3"], "206 hit /x"),
                (["Range: bytes=0-3,5-6"], "206 hit /x"), (["If-None-Match: \"a\""], "304 hit /x"),
                (["Range: bytes=99-"], "416 hit /x"), (["TE: trailers", "Connection: TE"], "200 hit /x"),
            ] {
                try client.send(proxy.request("GET", "/x", fields))
                let answer = try client.answer()
                #expect(answer.isClean && answer.cacheStatus.contains("; hit"))
                expectRules(on: answer, told: told)
            }
            try client.send(proxy.request("HEAD", "/x"))
            expectRules(on: try client.answer(to: "HEAD"), told: "200 hit /x")
            #expect(origin.count("/x") == 1)
        }
    }

    @Test func `response rules act on passes, whatever their status`() throws {
        try scenario(settings: Self.responses) { origin, proxy in
            for (status, fields) in [
                (200, Self.sent), (404, Self.sent), (500, Self.sent), (304, Self.sent), (204, Self.sent),
            ] {
                origin.on("/x") { _ in [.answer(status, fields, body: "")] }
                let answer = try proxy.send("POST", "/x", body: "a")
                #expect(answer.status == status)
                expectRules(on: answer, told: "\(status) pass /x")
            }
        }
    }

    @Test func `response rules act on errors and answers of the proxy itself`() throws {
        try scenario(settings: Self.responses + [.maxBodySize(5), .headTimeout(.milliseconds(500))]) { origin, proxy in
            origin.on("/cut") { _ in [.close] }
            expectRules(on: try proxy.get("/cut"), told: "502 synthetic /cut", more: ["1"])
            let expired = try proxy.get("/x", "Cache-Control: only-if-cached")
            #expect(expired.status == 504)
            expectRules(on: expired, told: "504 synthetic /x", more: ["1"])
            let options = try proxy.send("OPTIONS", "/o", "Max-Forwards: 0")
            #expect(options.status == 200)
            expectRules(on: options, told: "200 synthetic /o", more: ["1"])
            origin.goDown()
            expectRules(on: try proxy.get("/down"), told: "502 synthetic /down", more: ["1"])
        }
    }

    @Test(.overHTTP1("some heads are malformed, or incomplete"))
    func `a response without a route has the constant rules of the top`() throws {
        try scenario(settings: Self.responses + [.hosts(["a.example"]), .headTimeout(.milliseconds(500))]) { _, proxy in
            func expect(_ answer: Answer, _ status: Int) {
                #expect(answer.status == status && answer["x-top"] == "all" && answer["x-both"] == "top")
                #expect(answer["x-told"] == nil && answer["x-more"] == nil)
            }
            expect(try proxy.get("/x", "Host: b.example"), 421)
            let client = try proxy.connect()
            try client.send("nonsense\r\n\r\n")
            expect(try client.answer(), 400)
            let slow = try proxy.connect()
            try slow.send("GET / HTTP/1.1\r\n")
            expect(try slow.answer(), 408)
            let host = "Host: a.example"
            expect(try proxy.send("TRACE", "/x", host), 405)
            expect(try proxy.send("GET", "/x", host, "Expect: tea"), 417)
            let visits = Array(repeating: "1.1 coalesced", count: 4).joined(separator: ", ")
            expect(try proxy.send("GET", "/x", host, "Via: \(visits)"), 508)
            expect(try proxy.send("PURGE", "/x", host), 403)
        }
    }

    @Test func `content that is too large gets a response with the rules of its route`() throws {
        let limit = Setting.other(section: "clients", key: "max-body-size", value: "10B")
        try scenario(settings: Self.responses + [limit]) { _, proxy in
            let answer = try proxy.send("POST", "/x", body: "more than ten bytes")
            #expect(answer.status == 413)
            expectRules(on: answer, told: "413 refused /x", more: ["1"])
        }
    }

    @Test(.overHTTP1("it is about an upgrade")) func `response rules act on a 101`() throws {
        try scenario(settings: Self.responses) { origin, proxy in
            origin.on("/ws") { _ in
                [
                    .raw(
                        "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\nServer: a\r\nX-More: 0\r\n\r\nfirst"
                    ), .echo,
                ]
            }
            let client = try proxy.connect()
            try client.send(proxy.request("GET", "/ws", ["Connection: Upgrade", "Upgrade: x"]))
            let answer = try client.answer()
            #expect(answer.status == 101 && answer["upgrade"] == "x" && answer["connection"] == "Upgrade")
            expectRules(on: answer, told: "101 pass /ws")
            #expect(try client.bytes(5) == Array("first".utf8))
        }
    }

    @Test func `a 304 of the origin gets the rules, and added lines stay`() throws {
        try scenario(settings: Self.responses) { origin, proxy in
            origin.on("/x") { request in
                request.number == 1
                    ? [
                        .answer(
                            200, Self.sent.map { $0 == "Cache-Control: max-age=60" ? "Cache-Control: max-age=0" : $0 },
                            body: "x")
                    ]
                    : [
                        .answer(
                            304,
                            ["ETag: \"a\"", "Server: new", "X-Secret: t", "X-Both: new", "Cache-Control: max-age=60"])
                    ]
            }
            expectRules(on: try proxy.get("/x"), told: "200 miss /x")
            expectRules(on: try proxy.get("/x"), told: "200 revalidated /x")
            expectRules(on: try proxy.get("/x"), told: "200 hit /x")
            #expect(origin.count("/x") == 2)
            // A 304 with the name of an added line: its lines take the place of the stored ones, and the line is added again.
            origin.on("/x") { _ in [.answer(304, ["ETag: \"a\"", "X-More: 5", "Cache-Control: max-age=60"])] }
            expectRules(
                on: try proxy.get("/x", "Cache-Control: no-cache"), told: "200 revalidated /x", more: ["5", "1"])
            expectRules(on: try proxy.get("/x"), told: "200 hit /x", more: ["5", "1"])
        }
    }

    @Test func `response rules act on streamed responses, on fetched parts and on what only the leader gets`() throws {
        try scenario(settings: Self.responses + [.rangeMisses("part")]) { origin, proxy in
            origin.on("/large") { _ in [.answer(200, Self.sent, body: String(repeating: "x", count: 100_000))] }
            origin.on("/chunked") { _ in
                [.head(200, Self.sent + ["Transfer-Encoding: chunked"]), .chunk("body"), .lastChunk("X-Secret: t")]
            }
            origin.on("/own") { _ in
                [
                    .answer(
                        200, Self.sent.map { $0.replacing("60", with: "60, private=\"x-own\"") } + ["X-Own: a"],
                        body: "x")
                ]
            }
            for path in ["/large", "/chunked", "/own"] {
                for verdict in ["miss", "hit"] {
                    let answer = try proxy.get(path)
                    expectRules(on: answer, told: "200 \(verdict) \(path)")
                    #expect(path != "/own" || (answer["x-own"] == "a") == (verdict == "miss"))
                }
            }
            origin.on("/part") { request in
                let range = request["range"] == "bytes=0-4" ? "0-4" : "5-9"
                return [.answer(206, Self.sent + ["Content-Range: bytes \(range)/10"], body: "01234")]
            }
            for (range, told) in [("0-4", "206 miss"), ("5-9", "206 miss"), ("2-7", "206 hit")] {
                expectRules(on: try proxy.get("/part", "Range: bytes=\(range)"), told: "\(told) /part")
            }
            // A response to HEAD updates the stored one (RFC 9111 §4.3.5).
            origin.on("/large") { _ in
                [.head(200, Self.sent.map { $0 == "X-More: 0" ? "X-More: 7" : $0 } + ["Content-Length: 100000"])]
            }
            let head = try proxy.send("HEAD", "/large", "Cache-Control: no-cache")
            expectRules(on: head, told: "200 pass /large", more: ["7", "1"])
            expectRules(on: try proxy.get("/large"), told: "200 hit /large", more: ["7", "1"])
        }
    }

    @Test func `rules for what the cache reads act only on what clients see`() throws {
        try scenario(
            Self.topResponses(
                "{set: {cache-control: no-store, expires: 'Thu, 01 Jan 1970 00:00:00 GMT', set-cookie: a=b}, remove: [pragma]}"
            )
        ) { origin, proxy in
            origin.on("/x") { _ in [.answer(200, ["Cache-Control: max-age=60", "Pragma: x"], body: "x")] }
            origin.on("/no") { _ in [.answer(200, ["Cache-Control: no-store"], body: "x")] }
            origin.on("/error") { _ in [.answer(500, ["Cache-Control: max-age=5"], body: "x")] }
            for number in 1...2 {
                let answer = try proxy.get("/x")
                #expect(answer.cacheStatus.contains(number == 1 ? "stored" : "; hit"))
                #expect(answer["cache-control"] == "no-store" && answer["pragma"] == nil)
                #expect(answer["expires"] == "Thu, 01 Jan 1970 00:00:00 GMT" && answer["set-cookie"] == "a=b")
            }
            // What must not be stored still is not; and a failure keeps what was said of it.
            _ = try (1...2).map { _ in try proxy.get("/no") }
            #expect(origin.count("/no") == 2)
            let error = try proxy.get("/error")
            #expect(error["cache-control"] == "max-age=5" && error["set-cookie"] == "a=b")
        }
    }

    @Test func `after a reload a stored response keeps its constant lines until it is validated`() throws {
        try scenario(Self.topResponses("{set: {x-a: old}}")) { origin, proxy in
            origin.on("/x") { request in
                request["if-none-match"] == nil
                    ? [.answer(200, ["Cache-Control: max-age=60", "ETag: \"a\""], body: "x")]
                    : [.answer(304, ["ETag: \"a\""])]
            }
            #expect(try proxy.get("/x")["x-a"] == "old")
            try proxy.rewriteConfiguration(
                upstream: origin.url, Self.topResponses("{set: {x-a: new, x-b: \"${path}\"}}"))
            proxy.signal(SIGHUP)
            try eventually("the new rules act") { try proxy.get("/x")["x-b"] == "/x" }
            let kept = try proxy.get("/x")
            #expect(kept["x-a"] == "old" && kept["x-b"] == "/x" && kept.cacheStatus.contains("; hit"))
            #expect(try proxy.get("/x", "Cache-Control: no-cache")["x-a"] == "new")
            #expect(try proxy.get("/x")["x-a"] == "new")
        }
    }

    // MARK: Requests

    @Test(.clientsInTheClear("the scheme is http")) func `request rules act last, and on the request only`() throws {
        try scenario(
            Self.topRequests("{set: {x-from: proxy, X-Forwarded-Proto: https}, remove: [x-debug]}"),
            Self.route(
                "request-headers",
                "{set: {x-url: \"${scheme}://${host}${target}\", authorization: Basic eA==}, add: {x-list: b}, remove: [x-from, cookie]}"
            )
        ) { origin, proxy in
            origin.on("/x") { _ in [.answer(200, ["Cache-Control: max-age=60"], body: "x")] }
            try proxy.get(
                "/x?y=%20z", "X-Debug: 1", "x-from: client", "X-List: a", "X-List: a2", "Cookie: a=b",
                "Host: a.example:81",
                "X-URL: evil")
            let asked = try #require(origin.requests("/x").first?.head)
            #expect(asked["x-debug"] == nil && asked["x-from"] == nil && asked["cookie"] == nil)
            #expect(asked.all("x-list") == ["a", "a2", "b"])
            #expect(asked.all("x-url") == ["http://a.example/x?y=%20z"])
            #expect(asked.all("x-forwarded-proto") == ["https"])
            #expect(asked.all("authorization") == ["Basic eA=="])
            // The credentials are the operator's: the response is for all.
            #expect(try proxy.get("/x?y=%20z", "Host: a.example:81").cacheStatus.contains("; hit"))
        }
    }

    @Test(.overHTTP1("one asks for an upgrade"))
    func `request rules act on conditional, upgraded and content requests, and on trailers`() throws {
        try scenario(Self.topRequests("{set: {x-a: rule}, remove: [x-b]}")) { origin, proxy in
            origin.on("*") { _ in [.requestBody, .answer(200, ["ETag: \"a\"", "Cache-Control: max-age=0"], body: "x")] }
            origin.on("/ws") { _ in
                [.raw("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n"), .echo]
            }
            try proxy.get("/x", "X-B: 1")
            try proxy.get("/x", "X-B: 1", "X-A: 2")
            #expect(origin.requests("/x")[1]["if-none-match"] == "\"a\"")
            let client = try proxy.connect()
            try client.send(proxy.request("GET", "/ws", ["Connection: Upgrade", "Upgrade: x", "X-B: 1"]))
            #expect(try client.answer().status == 101)
            let uploading = try proxy.connect()
            try uploading.send(
                proxy.request("POST", "/up", ["Transfer-Encoding: chunked", "X-B: 1"])
                    + "1\r\nx\r\n0\r\nX-B: 2\r\nX-C: 3\r\n\r\n")
            #expect(try uploading.answer().status == 200)
            #expect(origin.requests("/up")[0].body.trailers == ["X-C: 3"])
            for request in origin.requests("/x") + origin.requests("/ws") + origin.requests("/up") {
                #expect(request.head.all("x-a") == ["rule"] && request["x-b"] == nil, "\(request.path)")
            }
        }
    }

    @Test func `a client does not get past a rule by another spelling of the name`() throws {
        try scenario(
            .other(section: "forwarding", key: "odd-field-names", value: "true"),
            Self.topRequests("{set: {x-user: nobody}, remove: [x-role]}")
        ) { origin, proxy in
            origin.on("/x") { _ in [.answer(200, body: "x")] }
            try proxy.get("/x", "X_User: root", "x.user: root", "X_Role: root", "X_Other: a")
            let asked = try #require(origin.requests("/x").first?.head)
            #expect(asked["x-user"] == "nobody" && asked["x_other"] == "a")
            #expect(asked["x_user"] == nil && asked["x.user"] == nil && asked["x_role"] == nil)
        }
    }

    @Test func `trailers of a response lose what the rules take away`() throws {
        try scenario(Self.topResponses("{set: {x-told: \"${status}\"}, remove: [x-secret]}")) {
            origin, proxy in
            origin.on("/t") { _ in
                [
                    .head(200, "Cache-Control: max-age=60", "Transfer-Encoding: chunked"), .chunk("body"),
                    .lastChunk("X-Secret: a", "X-Told: b", "X-Sum: 42"),
                ]
            }
            for _ in 1...2 {
                let answer = try proxy.get("/t", "TE: trailers", "Connection: TE")
                #expect(answer.body.trailers == ["X-Sum: 42"] && answer["x-told"] == "200")
            }
        }
    }

    // MARK: Sharing

    @Test func `Vary does not compare a field that is the same for all`() throws {
        try scenario(Self.topRequests("{set: {accept-language: en}, remove: [user-agent, accept-encoding]}")) {
            origin, proxy in
            origin.on("/x") { _ in
                [
                    .answer(
                        200, ["Cache-Control: max-age=60", "Vary: Accept-Language, User-Agent, Accept-Encoding"],
                        body: "x")
                ]
            }
            try proxy.get("/x", "Accept-Language: de", "User-Agent: a", "Accept-Encoding: gzip")
            #expect(
                try proxy.get("/x", "Accept-Language: fr", "User-Agent: b").cacheStatus.contains("; hit"))
            #expect(origin.count("/x") == 1)
        }
    }

    @Test(arguments: [
        "{set: {x-peer: \"${client}\"}}", "{add: {x-peer: \"${client}\"}}", "{set: {x-peer: \"${request-id}\"}}",
    ])
    func `a response that varies by a field with something of the client is not shared`(rule: String) throws {
        try scenario(Self.topRequests(rule)) { origin, proxy in
            origin.on("/x") { [.answer(200, ["Cache-Control: max-age=60", "Vary: X-Peer"], body: "\($0.number)")] }
            origin.on("/y") { [.answer(200, ["Cache-Control: max-age=60"], body: "\($0.number)")] }
            let texts = try ["/x", "/x", "/y", "/y"].map { try proxy.get($0).text }
            #expect(texts == ["1", "2", "1", "1"])
        }
    }

    // MARK: Variables

    @Test(.clientsInTheClear("the scheme is http")) func `the client is the one that the access log shows`() throws {
        try scenario(
            .other(section: "clients", key: "trusted-proxies", value: "[127.0.0.1]"),
            Self.topRequests("{set: {x-client: \"${client}\"}}"),
            Self.topResponses("{set: {x-client: \"${client} ${scheme}\"}}")
        ) { origin, proxy in
            origin.on("*") { _ in [.answer(200, ["Cache-Control: max-age=60"], body: "x")] }
            for (fields, client) in [
                ([], "127.0.0.1 http"), (["X-Forwarded-For: 192.0.2.9, 192.0.2.7"], "192.0.2.7 http"),
                (["X-Forwarded-For: a\"b"], "127.0.0.1 http"),
                (["X-Forwarded-For: 2001:db8::1", "X-Forwarded-Proto: https"], "2001:db8::1 https"),
            ] {
                let path = "/\(client.replacing(" ", with: "-"))"
                for number in 1...2 {
                    let client_ = try proxy.connect()
                    try client_.send(proxy.request("GET", path, fields))
                    let answer = try client_.answer()
                    #expect(answer["x-client"] == client, "\(fields), \(number)")
                }
                #expect(origin.requests(path)[0]["x-client"] == client.split(separator: " ").first.map(String.init))
            }
        }
    }

    @Test func `a client's identifier passes if it is valid, and is replaced if it is not`() throws {
        try scenario { origin, proxy in
            origin.on("*") { _ in [.answer(200, body: "x")] }
            for (number, (id, passes)) in [("a-Z_0.9", true), ("a b", false), ("", false), ("<b>", false)].enumerated()
            {
                try proxy.get("/\(number)", "X-Request-Id: \(id)")
                let sent = origin.requests("/\(number)")[0].head.all("x-request-id")
                #expect(passes ? sent == [id] : sent.count == 1 && Self.isMade(sent[0]), "\(id): \(sent)")
            }
            try proxy.get("/two", "X-Request-Id: a", "X-Request-Id: b")
            #expect(origin.requests("/two")[0].head.all("x-request-id").map(Self.isMade) == [true])
            try proxy.get("/none")
            #expect(origin.requests("/none")[0]["x-request-id"] == nil)
        }
    }

    @Test(arguments: [
        [Setting.other(section: "forwarding", key: "request-id", value: "make")],
        [topResponses("{set: {x-id: \"${request-id}\"}}")],
    ])
    func `a request without an identifier gets one where it is wanted, the same in all places`(settings: [Setting])
        throws
    {
        try scenario(
            settings: settings + [Self.route("response-headers", "{set: {x-id: \"${request-id}\"}}")]
        ) { origin, proxy in
            origin.on("*") { _ in [.answer(200, ["Cache-Control: max-age=60"], body: "x")] }
            let answers = try ["/a", "/b", "/b"].map { try proxy.get($0) }
            let ids = answers.map { $0["x-id"] ?? "" }
            #expect(ids.allSatisfy(Self.isMade) && Set(ids).count == 3)
            #expect(["/a", "/b"].map { origin.requests($0)[0]["x-request-id"] } == [ids[0], ids[1]])
            #expect(try proxy.get("/b", "X-Request-Id: own")["x-id"] == "own")
            #expect(try proxy.get("/c", "X-Request-Id: own")["x-id"] == "own")
            #expect(origin.requests("/c")[0].head.all("x-request-id") == ["own"])
        }
    }

    private static func isMade(_ id: String) -> Bool { id.wholeMatch(of: /[0-9a-f]{32}/) != nil }

    @Test func `clients that wait for one fetch each get their own variables`() throws {
        try scenario(.workers(1), Self.topResponses("{set: {x-q: \"${request-id}\"}}")) { origin, proxy in
            let gate = Gate()
            origin.on("/x") { _ in [.gate(gate), .answer(200, ["Cache-Control: max-age=60"], body: "x")] }
            let crowd = Crowd(
                at: proxy.endpoint, (1...10).map { proxy.visitor("/x", ["X-Request-Id: \($0)"]) })
            try proxy.joined(10)
            gate.open()
            #expect(Set(crowd.finished().map { $0["x-q"] }) == Set((1...10).map { "\($0)" }))
            #expect(origin.count("/x") == 1)
        }
    }
}
