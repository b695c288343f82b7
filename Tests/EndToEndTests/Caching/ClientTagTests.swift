import Testing

/// A client asks about a tag that is not stored, while others wait for the same (RFC 9111 §4.3.2).
@Suite(.scenario) struct ClientTagTests {
    /// The first answer is stale at once and has the tag "a"; by now the origin has "c".
    private static func script(_ origin: ScriptedOrigin, _ path: String, _ first: Gate, _ second: Gate = .opened) {
        origin.on(path) { request in
            if request.number == 1 { return [.answer(200, "Cache-Control: max-age=0", "ETag: \"a\"", body: "old")] }
            if request["if-none-match"]?.contains("\"c\"") ?? false {
                return [.gate(first), .answer(304, "Cache-Control: max-age=60", "ETag: \"c\"")]
            }
            return [.gate(second), .answer(200, "Cache-Control: max-age=60", "ETag: \"c\"", body: "new")]
        }
    }

    private static func lead(_ proxy: Program, _ origin: ScriptedOrigin, _ path: String) throws -> Conversation {
        let leader = try proxy.connect()
        try leader.send(proxy.request("GET", path, ["If-None-Match: \"c\""]))
        try eventually("it leads") { origin.count(path) == 2 }
        return leader
    }

    @Test func `a 304 with a client's tag serves that client, and the other waiters share one more fetch`() throws {
        try scenario { origin, proxy in
            let gate = Gate()
            Self.script(origin, "/t", gate)
            try proxy.get("/t")
            let leader = try Self.lead(proxy, origin, "/t")
            let crowd = proxy.crowd(100, get: "/t")
            try proxy.joined(102)
            gate.open()

            let own = try leader.answer()
            #expect(own.status == 304 && own.text.isEmpty && own["etag"] == "\"c\"")
            #expect(crowd.finished().allSatisfy { $0.status == 200 && $0.text == "new" })
            #expect(origin.requests("/t").map { $0["if-none-match"] } == [nil, "\"a\", \"c\"", nil])
            #expect(try proxy.metric(.released) == 0, "nobody had to look again")
            try proxy.fetchesEnd(of: "/t")
            #expect(try proxy.get("/t").cacheStatus.contains("hit"))
        }
    }

    @Test func `waiters that all have the tag share one more fetch`() throws {
        try scenario { origin, proxy in
            let gate = Gate()
            Self.script(origin, "/t", gate)
            try proxy.get("/t")
            let leader = try Self.lead(proxy, origin, "/t")
            let crowd = proxy.crowd(100, get: "/t", "If-None-Match: \"c\"")
            try proxy.joined(102)
            gate.open()

            #expect(try leader.answer().status == 304)
            #expect(crowd.finished().allSatisfy { $0.status == 304 && $0["etag"] == "\"c\"" })
            #expect(origin.count("/t") == 3)
        }
    }

    @Test func `a request that arrives during the second fetch joins it`() throws {
        try scenario { origin, proxy in
            let (first, second) = (Gate(), Gate())
            Self.script(origin, "/t", first, second)
            try proxy.get("/t")
            let leader = try Self.lead(proxy, origin, "/t")
            let early = proxy.crowd(10, get: "/t")
            try proxy.joined(12)
            first.open()
            #expect(try leader.answer().status == 304)
            try eventually("the whole is asked for") { origin.count("/t") == 3 }
            let late = proxy.crowd(10, get: "/t")
            try proxy.joined(22)
            second.open()

            #expect((early.finished() + late.finished()).allSatisfy { $0.text == "new" })
            #expect(origin.count("/t") == 3)
        }
    }

    @Test func `a 304 with a client's tag causes no second fetch if no other request waits`() throws {
        try scenario { origin, proxy in
            Self.script(origin, "/t", .opened)
            try proxy.get("/t")
            #expect(try proxy.get("/t", "If-None-Match: \"c\"").status == 304)
            #expect(try proxy.get("/t", "If-None-Match: \"c\"").status == 304)
            #expect(origin.count("/t") == 3)
            #expect(try proxy.get("/t").text == "new")
            #expect(origin.requests("/t").last?["if-none-match"] == "\"a\"", "the 304 was not about what is stored")
        }
    }

    @Test func `the waiters get the full response if the client with the tag leaves`() throws {
        try scenario { origin, proxy in
            let gate = Gate()
            Self.script(origin, "/t", gate)
            try proxy.get("/t")
            let leader = try Self.lead(proxy, origin, "/t")
            let crowd = proxy.crowd(20, get: "/t")
            try proxy.joined(22)
            leader.reset()
            try eventually("the program has seen it go") { try proxy.metric(.openClients) <= 20 }
            gate.open()

            #expect(crowd.finished().allSatisfy { $0.text == "new" })
            #expect(origin.count("/t") == 3)
        }
    }

    @Test func `a 304 without a tag confirms neither the stored nor the client's response`() throws {
        try scenario { origin, proxy in
            origin.on("/t") { request in
                switch request["if-none-match"] {
                case nil: [.answer(200, "Cache-Control: max-age=0", "ETag: \"a\"", body: "old")]
                case "\"a\"": [.answer(304, "Cache-Control: max-age=60")]
                default: [.answer(304)]
                }
            }
            try proxy.get("/t")
            let answer = try proxy.get("/t", "If-None-Match: \"c\"")
            #expect(answer.status == 200 && answer.text == "old")
            #expect(origin.requests("/t").map { $0["if-none-match"] } == [nil, "\"a\", \"c\"", "\"a\""])
        }
    }

    @Test func `a connection is reused after a 304 with a client's tag`() throws {
        try scenario(.workers(1)) { origin, proxy in
            Self.script(origin, "/t", .opened)
            try proxy.get("/t")
            for _ in 1...5 { #expect(try proxy.get("/t", "If-None-Match: \"c\"").status == 304) }
            #expect(Set(origin.requests("/t").map(\.connection)).count == 1)
        }
    }
}
