import Glibc
import Testing

@Suite(.scenario) struct AccessLogTests {
    @Test func `each request is one JSON line with its verdict, its role and the operation it led or joined`() throws {
        try scenario(.accessLog) { origin, proxy in
            let gate = Gate()
            origin.on("/x") { _ in [.gate(gate), .answer(200, "Cache-Control: max-age=60", body: "hello")] }
            let crowd = proxy.crowd(5, get: "/x?q=\"1\"", "User-Agent: test \\ \"quoted\"")
            try proxy.joined(5)
            gate.open()
            #expect(crowd.finished().allSatisfy { $0.status == 200 })
            try proxy.fetchesEnd(of: "/x")
            try proxy.get("/x?q=\"1\"")
            try eventually("six lines") { try proxy.accessLog.count == 6 }

            let lines = try proxy.accessLog
            #expect(lines.allSatisfy { $0["status"]?.number == 200 && $0["bytes"]?.number == 5 })
            #expect(lines.allSatisfy { $0["method"]?.string == "GET" && $0["target"]?.string == "/x?q=\"1\"" })
            #expect(lines.count { $0["role"]?.string == "led" } == 1)
            #expect(lines.count { $0["role"]?.string == "joined" } == 4)
            #expect(lines.count { $0["verdict"]?.string == "miss" } == 5)
            #expect(lines.count { $0["verdict"]?.string == "hit" && $0["role"]?.string == "none" } == 1)
            #expect(Set(lines.compactMap { $0["operation"]?.number }).count == 1)
            #expect(
                lines.count { ($0["upstream_duration"]?.number ?? 0) > 0 } == 5,
                "those the origin was asked for: \(lines)")
            #expect(lines.count { $0["user_agent"]?.string == "test \\ \"quoted\"" } == 5)
        }
    }

    @Test func `the logged client is the one that a trusted proxy names, whatever becomes of the request`() throws {
        let proxied = Setting.other(section: "clients", key: "trusted-proxies", value: "[127.0.0.0/8, \"::1\", unix]")
        try scenario(.accessLog, proxied) { origin, proxy in
            origin.on("/x") { _ in [.answer(200, "Cache-Control: max-age=60", body: "hello")] }
            origin.on("/y") { _ in [.answer(200, "Cache-Control: no-store", body: "hello")] }
            // A client's own word stands before what the proxy appended.
            let named = "X-Forwarded-For: 192.0.2.66, 203.0.113.9"
            try proxy.get("/x", named)
            try proxy.get("/x", named)
            try proxy.get("/y", named)
            try proxy.get("/x", named, "If-None-Match: *", "Expect: something")
            try proxy.get("/x", "X-Forwarded-For: nobody")
            try eventually("five lines") { try proxy.accessLog.count == 5 }
            let lines = try proxy.accessLog
            // Two workers write them, each in its own time.
            let clients = lines.map { "\($0["verdict"]?.string ?? "") \($0["client"]?.string ?? "")" }.sorted()
            #expect(
                clients == [
                    "hit 127.0.0.1", "hit 203.0.113.9", "miss 203.0.113.9", "miss 203.0.113.9", "refused 203.0.113.9",
                ])
            #expect(origin.requests("/x")[0]["x-forwarded-for"] == "192.0.2.66, 203.0.113.9, 127.0.0.1")
        }
    }

    @Test func `the identifier of a request is logged: its own, or the one that was made for the origin or the client`()
        throws
    {
        try scenario(
            routes: """
                  - {path: /rule, upstream: origin, response-headers: {set: {x-id: "${request-id}"}}}
                  - path: /own
                    redirect: {to: "http://b.example/${request-id}"}
                    response-headers: {set: {x-id: "${request-id}"}}
                  - {path: /, upstream: origin}
                """
        ) { origin, proxy in
            origin.on("*") { request in
                let size = request.path == "/rule/large" ? 300_000 : 5
                return [.answer(200, "Cache-Control: max-age=60", body: String(repeating: "x", count: size))]
            }
            var seen: [String: String] = [:]
            func ask(_ target: String, _ fields: String...) throws {
                let answer = try proxy.send("GET", target, fields)
                seen[target] = answer["x-id"] ?? "none"
                if let place = answer["location"] { #expect(place == "http://b.example/\(answer["x-id"] ?? "")") }
            }
            try ask("/plain?1", "X-Request-Id: mine.1")
            try ask("/plain?1", "X-Request-Id: mine.1")
            for target in ["/plain?2", "/rule", "/rule?1", "/rule/large", "/own"] { try ask(target) }
            // Hits.
            try proxy.get("/plain?2")
            let hits = try ["/rule", "/rule/large"].map { try proxy.get($0)["x-id"] ?? "none" }
            try eventually("ten lines") { try proxy.accessLog.count == 10 }
            let lines = try proxy.accessLog
            func logged(_ target: String, _ verdict: String) -> [String?] {
                lines.filter { $0["target"]?.string == target && $0["verdict"]?.string == verdict }.map {
                    $0["request_id"]?.string
                }
            }
            #expect(logged("/plain?1", "miss") == ["mine.1"] && logged("/plain?1", "hit") == ["mine.1"])
            #expect(logged("/plain?2", "miss") == [nil] && logged("/plain?2", "hit") == [nil])
            #expect(
                logged("/rule", "miss") == [seen["/rule"]] && logged("/rule/large", "miss") == [seen["/rule/large"]])
            #expect(logged("/rule", "hit") + logged("/rule/large", "hit") == hits)
            #expect(logged("/own", "synthetic") == [seen["/own"]])
            #expect(hits.allSatisfy { $0.count == 32 } && seen["/own"]?.count == 32 && seen["/rule"]?.count == 32)
            #expect(origin.requests("/rule")[0]["x-request-id"] == seen["/rule"])
        }
    }

    @Test func `the logged client of an untrusted peer is the peer`() throws {
        try scenario(.accessLog, .other(section: "clients", key: "trusted-proxies", value: "[203.0.113.0/24, unix]")) {
            origin, proxy in
            origin.on("/x") { _ in [.answer(200, "Cache-Control: max-age=60", body: "hello")] }
            try proxy.get("/x", "X-Forwarded-For: 203.0.113.9")
            try eventually("a line") { try proxy.accessLog.count == 1 }
            #expect(try proxy.accessLog[0]["client"]?.string == "127.0.0.1")
        }
    }

    @Test func `lines have the configured format and delay`() throws {
        try scenario(
            .accessLog, .other(section: "access-log", key: "format", value: "combined"),
            .other(section: "access-log", key: "flush-wait", value: "60s")
        ) { origin, proxy in
            origin.on("/x") { _ in [.answer(200, body: "hello")] }
            try proxy.get("/x", "User-Agent: me", "Referer: http://a.example/")
            try eventually("it is counted") { try proxy.metric(.requests) == 1 }
            try stays("nothing is written yet", for: .milliseconds(1500)) {
                System.contents(of: "\(proxy.folder)/access.log").isEmpty
            }
            proxy.terminate()
            #expect(try proxy.exited() == .code(0))
            let line = System.contents(of: "\(proxy.folder)/access.log")
            #expect(
                line.contains(
                    #/^127\.0\.0\.1 - - \[[^\]]+\] "GET \/x HTTP\/[12]\.[01]" 200 5 "http:\/\/a\.example\/" "me"/#)
                    && line.contains(" HTTP/\(Transport.current.version)\""),
                "\(line)")
        }
    }

    @Test(arguments: [SIGHUP, SIGUSR1])
    func `a rotated log is opened again`(_ signal: Int32) throws {
        try scenario(.accessLog) { origin, proxy in
            origin.on("*") { _ in [.answer(200, body: "x")] }
            let (path, old) = ("\(proxy.folder)/access.log", "\(proxy.folder)/access.log.1")
            try proxy.get("/before")
            try eventually("a line") { System.contents(of: path).contains("/before") }
            System.rename(path, to: old)
            proxy.signal(signal)
            try eventually("a new file") { System.exists(path) }
            try proxy.get("/after")
            try eventually("a line in it") { System.contents(of: path).contains("/after") }
            let former = System.contents(of: old)
            #expect(!former.contains("/after"))
        }
    }

    @Test func `a hit that the client does not read is logged as aborted, with the bytes sent`() throws {
        try withHalfSentHit { proxy, client, size in
            client.reset()
            try eventually("two lines") { try proxy.accessLog.count == 2 }
            // Lines of different workers come in any order.
            let line = try #require(try proxy.accessLog.first { $0["verdict"]?.string == "hit" })
            #expect(line["target"]?.string == "/x" && line["aborted"] == .bool(true))
            #expect((line["bytes"]?.number ?? 0) < Double(size))
            let hits = try proxy.metric(.hits)
            #expect(hits == 1)
        }
    }

    @Test func `a request whose client leaves before the response is logged as aborted, with its verdict`() throws {
        try scenario(.accessLog) { origin, proxy in
            let gate = Gate()
            origin.on("*") { _ in [.gate(gate), .answer(200, "Cache-Control: no-store", body: "x")] }
            let (leader, other, poster) = (try proxy.connect(), try proxy.connect(), try proxy.connect())
            try leader.send(proxy.request("GET", "/x"))
            try eventually("it leads") { origin.count("/x") == 1 }
            try other.send(proxy.request("GET", "/x"))
            try proxy.joined(2)
            try poster.send(proxy.request("POST", "/y", [], body: "y"))
            try eventually("it is asked") { origin.count("/y") == 1 }
            for client in [leader, other, poster] { client.reset() }
            try eventually("three lines") { try proxy.accessLog.count == 3 }
            gate.open()
            let lines = try proxy.accessLog
            #expect(lines.allSatisfy { $0["aborted"] == .bool(true) && $0["status"]?.number ?? 0 == 0 })
            #expect(lines.count { $0["verdict"]?.string == "miss" && $0["target"]?.string == "/x" } == 2)
            #expect(lines.count { $0["verdict"]?.string == "pass" && $0["target"]?.string == "/y" } == 1)
        }
    }

    @Test(.overHTTP1("that a connection is not read hides no end of a stream"))
    func `a response without content that the client did not get is logged as aborted`() throws {
        try scenario(.accessLog) { origin, proxy in
            let gate = Gate()
            origin.on("/x") { _ in [.gate(gate), .answer(200, "Cache-Control: no-store")] }
            let client = try proxy.connect()
            try client.send(proxy.request("GET", "/x"))
            // So much behind it that the connection is no longer read: that the client leaves is seen when it is
            // written to.
            for _ in 0..<3 {
                try client.send(proxy.request("GET", "/next", ["X-Much: " + String(repeating: "x", count: 8000)]))
            }
            try eventually("it is asked") { origin.count("/x") == 1 }
            client.reset()
            gate.open()
            try eventually("a line") { try !proxy.accessLog.isEmpty }
            let line = try proxy.accessLog[0]
            #expect(line["aborted"] == .bool(true) && line["status"]?.number == 0, "\(line)")
        }
    }

    @Test(.overHTTP1("half a head is no frame"))
    func `the time to the first byte of an error is its own, not that of the previous response`() throws {
        try scenario(.accessLog, .headTimeout(.milliseconds(500))) { origin, proxy in
            origin.on("/x") { _ in [.answer(200, "Cache-Control: no-store")] }
            let client = try proxy.connect()
            try client.send(proxy.request("GET", "/x"))
            #expect(try client.answer().status == 200)
            try client.send("GET /y HTTP/1.1\r\nHo")
            #expect(try client.answer().status == 408)
            try eventually("two lines") { try proxy.accessLog.count == 2 }
            let line = try #require(try proxy.accessLog.first { $0["status"]?.number == 408 })
            #expect((line["ttfb"]?.number ?? 0) > 0.4, "\(line)")
        }
    }

    @Test func `a hit that is read slowly is logged once, at its end`() throws {
        try withLargeHit { proxy, size in
            let answer = try proxy.get("/x")
            #expect(answer.body.length == size)
            try eventually("two lines") { try proxy.accessLog.count == 2 }
            // Lines of different workers come in any order.
            let line = try #require(try proxy.accessLog.first { $0["verdict"]?.string == "hit" })
            #expect(line["bytes"]?.number == Double(size) && line["aborted"] == nil)
            let hits = try proxy.metric(.hits)
            #expect(hits == 1)
        }
    }

    @Test func `a refused request is counted once`() throws {
        try scenario { origin, proxy in
            let answer = try proxy.send("TRACE", "/x")
            let counted = try proxy.metric(.requests)
            #expect(answer.status == 405 && counted == 1)
        }
    }

    @Test func `OPTIONS with Max-Forwards 0 is answered, not refused`() throws {
        try scenario(.accessLog) { origin, proxy in
            let answer = try proxy.send("OPTIONS", "/x", "Max-Forwards: 0")
            #expect(answer.status == 200 && origin.total == 0)
            try eventually("a line") { try proxy.accessLog.count == 1 }
            let line = try proxy.accessLog[0]
            #expect(line["verdict"]?.string == "synthetic" && line["status"]?.number == 200)
        }
    }

    @Test(.overHTTP1("the chunks are malformed"))
    func `a request that breaks off in its content is logged with its head`() throws {
        try scenario(.accessLog) { origin, proxy in
            origin.on("/up") { _ in [.requestBody, .answer(200)] }
            let client = try proxy.connect()
            try client.send("POST /up HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nnonsense\r\n")
            let answer = try client.answer()
            #expect(answer.status == 400)
            try eventually("a line") { try proxy.accessLog.count == 1 }
            let line = try proxy.accessLog[0]
            #expect(
                line["method"]?.string == "POST" && line["target"]?.string == "/up" && line["status"]?.number == 400)
        }
    }

    @Test func `a response that turns out too large to store is counted`() throws {
        try scenario(.maxObjectSize(64 << 10)) { origin, proxy in
            origin.on("/x") { _ in
                [
                    .head(200, "Cache-Control: max-age=60", "Transfer-Encoding: chunked"), .chunk(pattern: 0..<100_000),
                    .lastChunk(),
                ]
            }
            let answer = try proxy.get("/x")
            let counted = try proxy.metric(.tooLarge)
            #expect(answer.body.length == 100_000 && counted == 1)
        }
    }

    @Test func `a response that is not stored is logged with the reason in Cache-Status`() throws {
        try scenario(.accessLog) { origin, proxy in
            origin.on("/x") { _ in [.answer(200, "Cache-Control: no-store", body: "hello")] }
            origin.on("/stored") { _ in [.answer(200, "Cache-Control: max-age=60", body: "hello")] }
            let answer = try proxy.get("/x")
            #expect(answer["cache-status"]?.contains("detail=no-store") ?? false)
            try proxy.get("/stored")
            try proxy.get("/stored")
            try proxy.get("/nothing", "Cache-Control: only-if-cached")
            try eventually("four lines") { try proxy.accessLog.count == 4 }
            let lines = try proxy.accessLog
            #expect(lines.first { $0["target"]?.string == "/x" }?["detail"]?.string == "no-store")
            #expect(lines.first { $0["target"]?.string == "/nothing" }?["detail"]?.string == "only-if-cached")
            #expect(lines.count { $0["target"]?.string == "/stored" && $0["detail"] == nil } == 2)
        }
    }

    @Test func `an origin failure is logged with the failed server and its duration`()
        throws
    {
        try scenario(.accessLog, .firstByteTimeout(.seconds(2)), .overtakeAfter(.seconds(20))) { origin, proxy in
            let gate = Gate()
            origin.on("/mute") { _ in [.silence] }
            origin.on("/closed") { _ in [.gate(gate), .close] }
            let closed = proxy.crowd(3, get: "/closed")
            try proxy.joined(3)
            gate.open()
            #expect(closed.finished().allSatisfy { $0.status == 502 })
            let mute = proxy.crowd(5, get: "/mute").finished()
            #expect(mute.allSatisfy { $0.status == 504 })
            origin.goDown()
            let down = try proxy.get("/down")
            #expect(down.status == 502)
            try eventually("nine lines") { try proxy.accessLog.count == 9 }

            let lines = try proxy.accessLog
            #expect(lines.allSatisfy { $0["upstream"]?.string == "127.0.0.1:\(origin.port)" })
            #expect(lines.allSatisfy { ($0["upstream_duration"]?.number ?? 0) > 0 && $0["upstream_status"] == nil })
            #expect(
                lines.count { $0["detail"]?.string == "head-timeout" && ($0["upstream_duration"]?.number ?? 0) > 1.5 }
                    == 5)
            #expect(lines.count { $0["detail"]?.string == "closed" } == 3)
            #expect(lines.count { $0["detail"]?.string == "connect" && $0["target"]?.string == "/down" } == 1)
        }
    }

    @Test func `a client that leaves is logged as aborted`() throws {
        try scenario(.accessLog) { origin, proxy in
            origin.on("/x") { _ in [.head(200, "Content-Length: 100"), .text("part"), .silence] }
            let client = try proxy.connect()
            try client.send(proxy.request("GET", "/x"))
            try client.progress { $0.body.length > 0 }
            client.reset()
            try eventually("a line") { try proxy.accessLog.first?["aborted"] == .bool(true) }
        }
    }
}
