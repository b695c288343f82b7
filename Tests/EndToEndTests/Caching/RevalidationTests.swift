import Testing

/// Stored, stale, with a validator (RFC 9111 §4.3).
@Suite(.scenario) struct RevalidationTests {
    @Test func `two hundred clients of an expired page cause one conditional request`() throws {
        try scenario { origin, proxy in
            let gate = Gate()
            origin.on("/e") { request in
                request["if-none-match"] == nil
                    ? [.answer(200, "Cache-Control: max-age=10", "Age: 20", "ETag: \"v1\"", pattern: 30_000)]
                    : [.gate(gate), .answer(304, "Cache-Control: max-age=600", "ETag: \"v1\"")]
            }
            try proxy.get("/e")
            let crowd = proxy.crowd(200, get: "/e")
            try proxy.joined(201)
            gate.open()
            let answers = crowd.finished()

            #expect(answers.allSatisfy { $0.status == 200 && $0.isWhole(30_000) })
            #expect(origin.count("/e") == 2)
            #expect(origin.requests("/e")[1]["if-none-match"] == "\"v1\"")
            try proxy.fetchesEnd(of: "/e")
            #expect(try proxy.get("/e").cacheStatus.contains("hit"), "the 304 has made it fresh")
            #expect(origin.count("/e") == 2)
        }
    }

    @Test func `Last-Modified validates a stale page`() throws {
        try scenario { origin, proxy in
            let date = System.httpDate(-86_400)
            origin.on("/m") { request in
                request["if-modified-since"] == nil
                    ? [.answer(200, "Cache-Control: max-age=10", "Age: 20", "Last-Modified: \(date)", body: "same")]
                    : [.answer(304, "Cache-Control: max-age=600")]
            }
            try proxy.get("/m")
            #expect(try proxy.get("/m").text == "same")
            #expect(origin.requests("/m").last?["if-modified-since"] == date)
            #expect(try proxy.get("/m").cacheStatus.contains("hit"))
        }
    }

    @Test(arguments: ["ETag: v2", "ETag: v1", "Last-Modified: Sun, 06-Nov-22"])
    func `a 304 with another validator than was sent confirms nothing, readable or not`(_ told: String) throws {
        try scenario { origin, proxy in
            origin.on("/m") { request in
                request["if-none-match"] == nil
                    ? [
                        .answer(
                            200, "Cache-Control: max-age=60", request.number == 1 ? "Age: 60" : "Age: 0",
                            "ETag: \"v1\"", body: "\(request.number)")
                    ]
                    : [.answer(304, "Cache-Control: max-age=600", told)]
            }
            try proxy.get("/m")
            #expect(try proxy.get("/m").text == "3")
            #expect(origin.requests("/m").map { $0["if-none-match"] != nil } == [false, true, false])
        }
    }

    @Test func `a changed page replaces the stored one for all waiters`() throws {
        try scenario { origin, proxy in
            let gate = Gate()
            origin.on("/c") { request in
                request.number == 1
                    ? [.answer(200, "Cache-Control: max-age=10", "Age: 20", "ETag: \"v1\"", body: "old")]
                    : [.gate(gate), .answer(200, "Cache-Control: max-age=600", "ETag: \"v2\"", body: "new")]
            }
            try proxy.get("/c")
            let crowd = proxy.crowd(50, get: "/c")
            try proxy.joined(51)
            gate.open()
            #expect(crowd.finished().allSatisfy { $0.text == "new" && $0["etag"] == "\"v2\"" })
            #expect(origin.count("/c") == 2)
        }
    }

    @Test func `a response with no-cache is stored, and validated every time`() throws {
        try scenario { origin, proxy in
            origin.on("/n") { request in
                request["if-none-match"] == "\"v1\""
                    ? [.answer(304, "ETag: \"v1\"", "Cache-Control: no-cache")]
                    : [.answer(200, "ETag: \"v1\"", "Cache-Control: no-cache", body: "checked")]
            }
            for _ in 1...3 {
                let answer = try proxy.get("/n")
                #expect(answer.text == "checked")
            }
            #expect(origin.count("/n") == 3)
        }
    }

    @Test(arguments: ["no-cache", "private"])
    func `a 304 that forbids sharing serves its client, and each other waiter requests alone`(_ directive: String)
        throws
    {
        try scenario { origin, proxy in
            let gate = Gate()
            origin.on("/e") { request in
                if request.number == 1 {
                    return [.answer(200, "Cache-Control: max-age=0", "ETag: \"v1\"", body: "stored")]
                }
                let answer: Step =
                    request["if-none-match"] != nil
                    ? .answer(304, "Cache-Control: \(directive)", "ETag: \"v1\"")
                    : .answer(200, "Cache-Control: \(directive)", "ETag: \"v1\"", body: "stored")
                return [.gate(gate), answer]
            }
            try proxy.get("/e")
            let crowd = proxy.crowd(5, get: "/e")
            try proxy.joined(6)
            gate.open()
            #expect(crowd.finished().allSatisfy { $0.status == 200 && $0.text == "stored" })
            #expect(origin.count("/e") == 6)
        }
    }

    @Test(arguments: ["no-store", "private", "max-age=60"])
    func `Cache-Status has stored only if the 304 permits storing`(_ directive: String) throws {
        try scenario { origin, proxy in
            origin.on("/e") { request in
                request["if-none-match"] == nil
                    ? [.answer(200, "Cache-Control: max-age=10", "Age: 20", "ETag: \"v1\"", body: "\(request.number)")]
                    : [.answer(304, "Cache-Control: \(directive)", "ETag: \"v1\"")]
            }
            try proxy.get("/e")
            let isStored = directive == "max-age=60"
            let answer = try proxy.get("/e")
            #expect(answer.text == "1" && answer.cacheStatus.contains("; stored") == isStored)
            #expect(try proxy.get("/e").text == (isStored ? "1" : "3"))
        }
    }

    @Test func `a 304 that selects no stored response is followed by a request for the full response`() throws {
        try scenario { origin, proxy in
            origin.on("/e") { request in
                if request.number == 1 {
                    return [.answer(200, "Cache-Control: max-age=0", "ETag: \"v1\"", body: "old")]
                }
                return request["if-none-match"] != nil
                    ? [.answer(304, "Cache-Control: max-age=60", "ETag: \"v2\"")]
                    : [.answer(200, "Cache-Control: max-age=60", "ETag: \"v2\"", body: "new")]
            }
            try proxy.get("/e")
            let answer = try proxy.get("/e")
            #expect(answer.status == 200 && answer.text == "new")
            #expect(origin.requests("/e").map { $0["if-none-match"] } == [nil, "\"v1\"", nil])
        }
    }
}
