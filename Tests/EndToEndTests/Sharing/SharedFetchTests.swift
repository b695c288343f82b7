import Testing

/// What one client's request must not do to the fetch that others share, or to what is stored.
@Suite(.scenario) struct SharedFetchTests {
    @Test func `a HEAD that finds a stale response causes a refresh by GET`() throws {
        try scenario { origin, proxy in
            let refresh = Gate()
            origin.on("/x") { request in
                request.number == 1
                    ? [.answer(200, "Cache-Control: max-age=10, stale-while-revalidate=100", "Age: 20", body: "old")]
                    : [.gate(refresh), .answer(200, "Cache-Control: max-age=100", body: "newer")]
            }
            try proxy.get("/x")
            #expect(try proxy.send("HEAD", "/x").status == 200)
            try eventually("the refresh runs") { origin.count("/x") == 2 }
            #expect(origin.requests("/x")[1].method == "GET")
            let joiner = proxy.crowd(1, get: "/x", "Cache-Control: no-cache")
            try proxy.joined(2)
            refresh.open()
            #expect(joiner.finished().allSatisfy { $0.text == "newer" && $0.isClean })
        }
    }

    @Test func `a connection is reused after a validation`() throws {
        try scenario(.workers(1)) { origin, proxy in
            origin.on("/x") { request in
                request["if-none-match"] == nil
                    ? [.answer(200, "Cache-Control: max-age=0", "ETag: \"a\"", body: "x")]
                    : [.head(304, "Cache-Control: max-age=0", "ETag: \"a\"")]
            }
            try proxy.get("/x")
            for _ in 0..<9 { #expect(try proxy.get("/x").text == "x") }
            #expect(origin.count("/x") == 10)
            #expect(origin.acceptedConnections == 1)
        }
    }

    @Test func `a cookie in an interim response goes to the leader alone`() throws {
        try scenario { origin, proxy in
            let interim = Gate(), head = Gate()
            origin.on("/x") { request in
                request.number == 1
                    ? [
                        .gate(interim), .interim(103, "Set-Cookie: sid=leader"), .gate(head),
                        .answer(200, "Cache-Control: private", body: "own"),
                    ]
                    : [.answer(200, "Cache-Control: private", body: "own")]
            }
            let leader = try proxy.connect()
            try leader.send(proxy.request("GET", "/x"))
            try eventually("it leads") { origin.count("/x") == 1 }
            let before = proxy.crowd(1, get: "/x")
            try proxy.joined(2)
            interim.open()
            _ = try leader.progress { !$0.interim.isEmpty }
            let after = proxy.crowd(1, get: "/x")
            try proxy.joined(3)
            head.open()
            #expect(try leader.answer().text == "own")
            #expect((before.finished() + after.finished()).allSatisfy { $0.interim.isEmpty && $0.text == "own" })
        }
    }

    @Test(arguments: [
        ("GET", "Authorization: Basic YTph"), ("HEAD", "Authorization: Basic YTph"), ("GET", "Cookie: sid=a"),
    ])
    func `an interim response to a request with credentials or cookies goes to the leader alone`(
        method: String, credentials: String
    )
        throws
    {
        try scenario { origin, proxy in
            let interim = Gate(), head = Gate()
            origin.on("/x") { request in
                [
                    .gate(interim), .interim(103, "Link: </secret/\(request.number).css>; rel=preload"), .gate(head),
                    .answer(200, "Cache-Control: private", body: "own"),
                ]
            }
            let leader = try proxy.connect()
            try leader.send(proxy.request(method, "/x", [credentials]))
            try eventually("it leads") { origin.count("/x") == 1 }
            // A HEAD without Authorization shares the key of one with it.
            let others = try (0..<2).map { _ in try proxy.connect() }
            let theirs = method == "HEAD" ? [] : [credentials + "x"]
            try others[0].send(proxy.request(method, "/x", theirs))
            try proxy.joined(2)
            interim.open()
            try leader.progress(to: method) { $0.interim.count == 1 }
            try others[1].send(proxy.request(method, "/x", theirs))
            try proxy.joined(3)
            head.open()
            _ = try leader.answer(to: method)
            let hints = try others.map { try $0.answer(to: method).interim.compactMap { $0["link"] } }
            // One without credentials may be told what the next of them is.
            #expect(hints.allSatisfy { !$0.isEmpty && !$0.contains("</secret/1.css>; rel=preload") })
        }
    }

    /// It is perhaps what that very fetch asked for: an upstream that leads back here.
    @Test func `a request that looped back does not wait for the fetch of another`() throws {
        try scenario { origin, proxy in
            let gate = Gate()
            origin.on("/x") { request in
                [.gate(gate), .answer(200, "Cache-Control: max-age=60", body: request["via"] ?? "none")]
            }
            let first = proxy.crowd(1, get: "/x")
            try eventually("it leads") { origin.count("/x") == 1 }
            let again = try proxy.connect()
            try again.send(proxy.request("GET", "/x", ["Via: 1.1 coalesced"]))
            try eventually("it leads another") { origin.count("/x") == 2 }
            let others = proxy.crowd(3, get: "/x")
            try proxy.joined(5)
            gate.open()
            #expect(try again.answer().text == "1.1 coalesced, \(Transport.current.version) coalesced")
            #expect(
                (first.finished() + others.finished()).allSatisfy {
                    $0.text == "\(Transport.current.version) coalesced"
                })
            #expect(origin.count("/x") == 2)
        }
    }

    @Test func `an overtaken fetch does not replace a later response`() throws {
        try scenario(.overtakeAfter(.milliseconds(300)), .noProgressTimeout(.seconds(20))) { origin, proxy in
            let rest = Gate()
            origin.on("/x") { request in
                request.number == 1
                    ? [
                        .head(200, "Cache-Control: max-age=60", "Content-Length: 3", "Date: \(System.httpDate(-5))"),
                        .text("o"), .gate(rest), .text("ld"),
                    ]
                    : [.answer(200, "Cache-Control: max-age=60", body: "new")]
            }
            let stuck = proxy.crowd(1, get: "/x")
            try eventually("it was overtaken") { try proxy.metric(.overtaken) == 1 }
            #expect(try proxy.send("GET", "/x").text == "new")
            try eventually("it is stored") { try proxy.metric(.inFlight) == 1 }
            rest.open()
            #expect(stuck.finished().allSatisfy { $0.text == "old" })
            #expect(try proxy.get("/x").text == "new")
        }
    }

    @Test func `a response to one client's precondition is not shared`() throws {
        try scenario { origin, proxy in
            origin.on("/x") { request in
                request["if-match"] == nil
                    ? [.answer(200, "Cache-Control: max-age=60", body: "whole")]
                    : [.answer(412, "Cache-Control: max-age=60", body: "no")]
            }
            let own = try proxy.get("/x", "If-Match: \"z\"")
            #expect(own.status == 412)
            #expect(try proxy.get("/x").text == "whole")
        }
    }

    @Test func `a large response that is not stored leaves memory for others`() throws {
        try scenario(.memory(mebibytes: 16)) { origin, proxy in
            origin.on("/big") { _ in [.answer(200, "Cache-Control: max-age=0", pattern: 40_000_000)] }
            origin.on("/small") { _ in [.answer(200, "Cache-Control: no-store", body: "fits")] }
            let slow = proxy.crowd(1, get: "/big", pace: .stuck)
            try eventually("it has begun") { origin.count("/big") == 1 }
            for _ in 0..<10 { #expect(try proxy.get("/small").text == "fits") }
            slow.close()
        }
    }

    @Test(.overHTTP1("one request is of HTTP/1.0")) func `each waiter gets the head that its own request asks for`()
        throws
    {
        try scenario(.workers(1)) { origin, proxy in
            let head = Gate()
            origin.on("/x") { _ in
                [.gate(head), .answer(200, "Cache-Control: max-age=60", "ETag: \"a\"", body: "0123456789")]
            }
            var members: [Conversation] = []
            func ask(_ request: String) throws {
                let member = try proxy.connect()
                try member.send(request)
                members.append(member)
                try proxy.joined(members.count)
            }
            let plain = proxy.request("GET", "/x")
            try ask(plain)
            try ask(plain)
            try ask(proxy.request("GET", "/x", ["Connection: close"]))
            try ask(plain)
            try ask(proxy.request("GET", "/x", ["Range: bytes=2-4"]))
            try ask(plain)
            try ask(proxy.request("GET", "/x", ["If-None-Match: \"a\""]))
            try ask(plain)
            try ask("GET /x HTTP/1.0\r\nHost: \(proxy.host)\r\nConnection: keep-alive\r\n\r\n")
            try ask(plain)
            head.open()
            let answers = try members.map { try $0.answer() }
            #expect(answers.map(\.status) == [200, 200, 200, 200, 206, 200, 304, 200, 200, 200])
            #expect(
                answers.map { $0.head?["connection"] ?? "" } == ["", "", "close", "", "", "", "", "", "keep-alive", ""])
            let whole = "0123456789"
            #expect(answers.map(\.text) == [whole, whole, whole, whole, "234", whole, "", whole, whole, whole])
            let collapsed = answers.map { $0.cacheStatus.contains("collapsed") }
            #expect(collapsed == [false] + Array(repeating: true, count: 9))
            #expect(origin.count("/x") == 1)
        }
    }
}
