import Testing

@Suite(.scenario) struct AccessRuleTests {
    private static let trustsLoopback = Setting.other(
        section: "clients", key: "trusted-proxies", value: "[127.0.0.1, unix]")

    @Test func `a client that the route denies gets 403 in plain text, for a hit as for a miss`() throws {
        try scenario(
            Self.trustsLoopback, .other(section: "route", key: "allow", value: "[10.0.0.0/8, 127.0.0.1]"),
            .other(section: "route", key: "deny", value: "[10.1.0.0/16]"),
            .accessLog
        ) { origin, proxy in
            origin.on("/x") { _ in [.answer(200, "Cache-Control: max-age=60", body: "hello")] }
            for client in ["10.1.2.3", "192.0.2.1"] {
                let answer = try proxy.get("/x", "X-Forwarded-For: \(client)")
                #expect(answer.status == 403 && answer.text.hasPrefix("403 Forbidden\n"))
                #expect(answer["content-type"] == "text/plain; charset=utf-8")
            }
            #expect(origin.count("/x") == 0)
            #expect(try proxy.get("/x", "X-Forwarded-For: 10.2.0.1").status == 200)
            #expect(try proxy.get("/x").status == 200, "the peer itself, since no client is named")
            #expect(try proxy.get("/x", "X-Forwarded-For: 10.1.0.1").status == 403)
            #expect(try proxy.send("POST", "/x", "X-Forwarded-For: 10.1.0.1", body: "a").status == 403)
            #expect(origin.count("/x") == 1)
            #expect(try proxy.metric(.denied) == 4)
            #expect(proxy.diagnostics.contains("10.1.2.3 may not use route /, answered 403"))
            try eventually("six lines") { try proxy.accessLog.count == 6 }
            #expect(try proxy.accessLog.count { $0["verdict"]?.string == "refused" } == 4)
        }
    }

    @Test func `a client cannot name another address if its peer is not trusted`() throws {
        try scenario(.other(section: "route", key: "deny", value: "[127.0.0.0/8]")) { _, proxy in
            let answer = try proxy.get("/x", "X-Forwarded-For: 192.0.2.1")
            #expect(answer.status == 403)
        }
    }

    @Test func `a rate limit counts hits, misses and passes, and each client apart`() throws {
        try scenario(
            Self.trustsLoopback, .other(section: "route", key: "rate-limit", value: "{rate: 2/h, burst: 5}"),
            .other(section: "clients", key: "max-connections", value: "1000")
        ) { origin, proxy in
            origin.on("/x") { _ in [.answer(200, "Cache-Control: max-age=60", body: "hello")] }
            origin.on("/y") { _ in [.answer(200, "Cache-Control: no-store", body: "hello")] }
            let client = "X-Forwarded-For: 192.0.2.1"
            for path in ["/x", "/x", "/y", "/x"] { #expect(try proxy.get(path, client).status == 200) }
            #expect(try proxy.send("POST", "/y", client, body: "a").status == 200)
            let refused = try proxy.get("/x", client)
            #expect(refused.status == 429 && refused.text.hasPrefix("429 Too Many Requests\n"))
            #expect(Int(refused["retry-after"] ?? "").map { $0 > 1_700 && $0 <= 1_800 } == true)
            #expect(refused["ratelimit-policy"] == "\"requests\";q=5;w=9000")
            #expect(refused["ratelimit"]?.hasPrefix("\"requests\";r=0;t=1") == true)
            #expect(refused["cache-status"] == nil)
            #expect(try proxy.get("/y", client).status == 429)
            #expect(try proxy.get("/x", "X-Forwarded-For: 192.0.2.2").status == 200)
            #expect(try proxy.metric(.limited) == 2)
            #expect(proxy.diagnostics.contains("192.0.2.1 has used up rate-limit of route /, answered 429"))
        }
    }

    @Test func `requests that wait for one fetch are counted one by one`() throws {
        try scenario(.workers(1), .other(section: "route", key: "rate-limit", value: "{rate: 1/h, burst: 20}")) {
            origin, proxy in
            let gate = Gate()
            origin.on("/x") { _ in [.gate(gate), .answer(200, "Cache-Control: max-age=60", body: "hello")] }
            let crowd = proxy.crowd(30, get: "/x")
            try eventually("ten are refused") { try proxy.metric(.limited) == 10 }
            gate.open()
            let answers = crowd.finished()
            #expect(answers.count { $0.status == 200 } == 20 && answers.count { $0.status == 429 } == 10)
            #expect(origin.count("/x") == 1)
        }
    }

    @Test func `a limit goes on over a reload that does not change it`() throws {
        let limit = Setting.other(section: "route", key: "rate-limit", value: "{rate: 1/h}")
        try scenario(limit) { origin, proxy in
            origin.on("/x") { _ in [.answer(200, "Cache-Control: max-age=60", body: "hello")] }
            #expect(try proxy.get("/x").status == 200)
            try proxy.rewriteConfiguration(upstream: origin.url, limit, .hosts([]))
            #expect(try proxy.command("reload").exit == .code(0))
            #expect(try proxy.get("/x").status == 429)
            try proxy.rewriteConfiguration(
                upstream: origin.url, .other(section: "route", key: "rate-limit", value: "{rate: 2/h}"))
            #expect(try proxy.command("reload").exit == .code(0))
            #expect(try proxy.get("/x").status == 200)
        }
    }

    @Test func `a limit by field counts each value, and the others not at all`() throws {
        try scenario(.other(section: "route", key: "rate-limit", value: "{rate: 1/h, key: {header: x-api-key}}")) {
            origin, proxy in
            origin.on("/x") { _ in [.answer(200, "Cache-Control: max-age=60", body: "hello")] }
            let keys = ["X-Api-Key: a", "X-Api-Key: a", "X-Api-Key: b", "Accept: */*", "Accept: */*"]
            let statuses = try keys.map { key in try proxy.get("/x", key).status }
            #expect(statuses == [200, 429, 200, 200, 200])
        }
    }

    @Test func `a request costs one token, also if its client has yet to take the hits before it`() throws {
        // More than the sockets hold.
        let rounds = 500
        try scenario(
            routes: """
                  - {path: /limited, upstream: origin, rate-limit: {rate: 1/h, burst: \(rounds)}}
                  - {path: /, upstream: origin}
                """, more: "clients: {idle-timeout: 1m}"
        ) { origin, proxy in
            let page = String(repeating: "x", count: 2000)
            origin.on("/hit") { _ in [.answer(200, "Cache-Control: max-age=600", body: page)] }
            origin.on("/limited") { _ in [.answer(200, "Cache-Control: no-store", body: "one")] }
            try proxy.get("/hit")
            let client = try proxy.connect()
            let hits = String(repeating: proxy.request("GET", "/hit"), count: 7)
            try client.send(String(repeating: hits + proxy.request("GET", "/limited"), count: rounds))
            var statuses: [Int?: Int] = [:]
            for _ in 0..<rounds {
                for _ in 0..<7 { #expect(try client.answer().text.utf8.count == 2000) }
                statuses[try client.answer().status, default: 0] += 1
            }
            #expect(statuses == [200: rounds])
            #expect(try proxy.get("/limited").status == 429)
            #expect(try proxy.metric(.limited) == 1)
        }
    }

    @Test func `a limit by Cookie counts the cookies that are left`() throws {
        try scenario(
            StrippedCookieTests.setting,
            .other(section: "route", key: "rate-limit", value: "{rate: 1/h, burst: 2, key: {header: cookie}}")
        ) { origin, proxy in
            origin.on("/x") { _ in [.answer(200, "Cache-Control: max-age=60", body: "hello")] }
            let statuses = try (1...3).map { try proxy.get("/x", "Cookie: user=a; _ga=\($0)").status }
            #expect(statuses == [200, 200, 429], "a miss, a hit, and neither")
        }
    }

    private static let spellings = [
        "//w", "/./w", "/%77", "/a/../w", "/%2e/w", "/a/%2e%2E/w/x", "//w//x", "/a//../w", "/%2fw", "/a%2f../%77/",
        "http://HOST//w",
    ]

    @Test(.overHTTP1("some are targets in absolute form"), .clientsInTheClear("some are URLs of http"))
    func `other spellings of a path are refused as the path itself, whatever is stored`() throws {
        try scenario(
            routes: """
                  - {path: /w, upstream: origin, deny: [127.0.0.0/8]}
                  - {path: /open/, upstream: origin, allow: [127.0.0.0/8]}
                """, more: "clients: {trusted-proxies: [127.0.0.1]}"
        ) { origin, proxy in
            origin.on("*") { _ in [.answer(200, "Cache-Control: max-age=60", body: "hello")] }
            let friend = "X-Forwarded-For: 192.0.2.1"
            for path in Self.spellings.map({ $0.replacing("HOST", with: proxy.host) }) + ["/w"] {
                for _ in 1...2 { #expect(try proxy.get(path, friend).status == 200, "\(path)") }
                let refused = try proxy.get(path)
                #expect(refused.status == 403 && refused.text.hasPrefix("403 Forbidden\n"), "\(path)")
                #expect(try proxy.send("POST", path, body: "a").status == 403, "\(path)")
            }
            #expect(proxy.diagnostics.contains("127.0.0.1 may not use route /w, answered 403"))
            for path in ["/x//y", "/wx", "/%77x", "/.w", "/x/%2e%2e/y", "/a%2fw", "/%41?/w", "/x?//w"] {
                #expect(try proxy.get(path).status == 200, "\(path)")
            }
            // The route of the path as it was sent counts as before.
            #expect(try proxy.get("/w/../x").status == 403)
            #expect(try proxy.get("/open/a/../b%20c", friend).status == 403)
            #expect(try proxy.get("/open/a/../b%20c").status == 200)
            #expect(try proxy.get("/open/../x").status == 200)
        }
    }

    @Test func `a route for an encoded path guards it in each spelling`() throws {
        try scenario(
            routes: """
                  - {host: a.example, path: "/b%20c", upstream: origin, deny: [127.0.0.0/8]}
                  - {path: "/d%2fe", upstream: origin, deny: [127.0.0.0/8]}
                  - {path: /, upstream: origin}
                """
        ) { origin, proxy in
            origin.on("*") { _ in [.answer(200, "Cache-Control: max-age=60", body: "hello")] }
            for path in ["/b%20c", "/./b%20c", "/%62%20c/x"] {
                let statuses = try ["a.example", "b.example"].map { try proxy.get(path, "Host: \($0)").status }
                #expect(statuses == [403, 200], "\(path)")
            }
            let statuses = try ["/d%2fe", "/d%2Fe", "//d%2fe"].map { try proxy.get($0).status }
            #expect(statuses == [403, 403, 403])
        }
    }

    @Test func `a request in another spelling takes a token of the path's limit, and waits for a fetch like others`()
        throws
    {
        try scenario(
            routes: """
                  - {path: /w, upstream: origin, rate-limit: {rate: 1/h, burst: 8}}
                """, more: "clients: {max-connections: 1000}"
        ) { origin, proxy in
            let gate = Gate()
            origin.on("*") { _ in [.gate(gate), .answer(200, "Cache-Control: max-age=60", body: "hello")] }
            let crowd = proxy.crowd(10, get: "//w")
            try eventually("two are refused") { try proxy.metric(.limited) == 2 }
            gate.open()
            let answers = crowd.finished()
            #expect(answers.count { $0.status == 200 } == 8 && answers.count { $0.status == 429 } == 2)
            #expect(origin.count("//w") == 1)
            #expect(try proxy.get("/w").status == 429)
            #expect(try proxy.get("//w").status == 429)
            #expect(try proxy.get("//x").status == 200)
        }
    }
}

@Suite(.scenario) struct ConnectionsPerClientTests {
    private static let limit = Setting.other(section: "clients", key: "max-connections-per-client", value: "3")

    @Test(
        .overHTTP1("the response comes before the client has said its version"),
        .clientsInTheClear("without a handshake there are no words"))
    func `a client with its most connections gets 429, until it closes one`() throws {
        try scenario(Self.limit) { origin, proxy in
            origin.on("/x") { _ in [.answer(200, "Cache-Control: max-age=60", body: "hello")] }
            let open = try (1...3).map { _ in try proxy.connect() }
            for client in open {
                try client.send(proxy.request("GET", "/x"))
                #expect(try client.answer().status == 200)
            }
            let refused = try proxy.get("/x")
            #expect(refused.status == 429 && refused["connection"] == "close")
            #expect(try proxy.metric(.limitedClients) == 1)
            #expect(proxy.diagnostics.contains("127.0.0.1 has 3 connections; new ones get 429"))
            open[0].close()
            try eventually("there is room") { try proxy.get("/x").status == 200 }
            for client in open.dropFirst() { client.close() }
            try eventually("all are gone") { try proxy.metric(.openClients) == 0 }
            let again = try (1...3).map { _ in try proxy.connect() }
            for client in again {
                try client.send(proxy.request("GET", "/x"))
                #expect(try client.answer().status == 200)
            }
        }
    }

    @Test func `the connections of a trusted proxy are not counted`() throws {
        try scenario(Self.limit, .other(section: "clients", key: "trusted-proxies", value: "[127.0.0.1]")) {
            origin, proxy in
            origin.on("/x") { _ in [.answer(200, "Cache-Control: max-age=60", body: "hello")] }
            let crowd = proxy.crowd(10, get: "/x", keepsOpen: true)
            #expect(crowd.finished().allSatisfy { $0.status == 200 })
        }
    }
}
