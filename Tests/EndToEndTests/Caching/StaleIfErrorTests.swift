import Testing

/// RFC 5861 §4 and RFC 9111 §4.2.4: a stale answer instead of an error, where that is allowed.
@Suite(.scenario) struct StaleIfErrorTests {
    private func page(_ cacheControl: String) -> ScriptedOrigin.Handler {
        {
            $0.number == 1
                ? [.answer(200, "Cache-Control: \(cacheControl)", "Age: 20", body: "stored")]
                : [.answer(503, body: "busy")]
        }
    }

    @Test func `fifty clients get a stale page in place of a 503`() throws {
        try scenario { origin, proxy in
            origin.on("/x", page("max-age=10, stale-if-error=600"))
            try proxy.get("/x")
            #expect(proxy.crowd(50, get: "/x").finished().allSatisfy { $0.status == 200 && $0.text == "stored" })
        }
    }

    @Test(arguments: ["max-age=10, stale-if-error=600", "max-age=10"])
    func `a page that is gone is not served stale when the origin fails`(_ cacheControl: String) throws {
        try scenario { origin, proxy in
            origin.on("/x") { request in
                switch request.number {
                case 1: [.answer(200, "Cache-Control: \(cacheControl)", "Age: 20", body: "stored")]
                case 2: [.answer(404, body: "gone")]
                default: [.answer(503, body: "busy")]
                }
            }
            try proxy.get("/x")
            #expect(try proxy.get("/x").text == "gone")
            #expect(try proxy.get("/x").text == "busy")
            origin.goDown()
            #expect(try proxy.get("/x").status == 502)
        }
    }

    @Test func `another response to a client with Authorization leaves the stale page for others`() throws {
        try scenario { origin, proxy in
            origin.on("/x") { request in
                switch request.number {
                case 1: [.answer(200, "Cache-Control: max-age=10, stale-if-error=600", "Age: 20", body: "stored")]
                case 2: [.answer(401, body: "not you")]
                default: [.answer(503, body: "busy")]
                }
            }
            try proxy.get("/x")
            #expect(try proxy.get("/x", "Authorization: Basic eA==").text == "not you")
            #expect(try proxy.get("/x").text == "stored")
        }
    }

    @Test func `a page for one client with Authorization serves it alone, also with must-revalidate`() throws {
        try scenario { origin, proxy in
            origin.on("/x") { request in
                switch request.number {
                case 1: [.answer(200, "Cache-Control: max-age=10, stale-if-error=600", "Age: 20", body: "stored")]
                case 2: [.answer(200, "Cache-Control: max-age=0, private, must-revalidate", body: "yours")]
                default: [.answer(503, body: "busy")]
                }
            }
            try proxy.get("/x")
            let own = try proxy.get("/x", "Authorization: Basic eA==")
            #expect(own.text == "yours" && own.cacheStatus.contains("detail=authorization"))
            #expect(try proxy.get("/x").text == "stored")
        }
    }

    /// A fetch with a key of its own asks for a while; meanwhile the others learn something else.
    @Test(
        arguments: [
            ("GET", [.answer(200, "Cache-Control: max-age=60", body: "new")], "new"),
            ("GET", [.answer(410, body: "gone")], "busy"),
            ("GET", [.answer(200, "Cache-Control: private", body: "yours")], "busy"),
            ("DELETE", [.answer(204)], "busy"),
        ] as [(String, [Step], String)])
    func `the stale response that is served is the one stored when the origin fails`(
        _ method: String, _ meanwhile: [Step], _ expected: String
    ) throws {
        try scenario { origin, proxy in
            let gate = Gate()
            origin.on("/x") { request in
                if request.number == 1 {
                    return [.answer(200, "Cache-Control: max-age=10, stale-if-error=600", "Age: 20", body: "old")]
                }
                return request.head["authorization"] == nil ? meanwhile : [.gate(gate), .answer(503, body: "busy")]
            }
            try proxy.get("/x")
            let late = proxy.crowd(1, get: "/x", "Authorization: Basic eA==")
            try eventually("it is asked for") { origin.count("/x") == 2 }
            try proxy.send(method, "/x")
            // Who comes now joins it.
            let later = proxy.crowd(1, get: "/x", "Authorization: Basic eA==")
            try proxy.joined(method == "DELETE" || expected == "new" ? 3 : 4)
            gate.open()
            let answers = late.finished() + later.finished()
            #expect(answers.allSatisfy { $0.text == expected }, "\(answers.map(\.text))")
        }
    }

    @Test func `a stale response served for a pass meets its conditions and its range`() throws {
        try scenario { origin, proxy in
            origin.on("/x") { request in
                switch request.number {
                case 1:
                    let lifetime = "Cache-Control: max-age=10, stale-if-error=600"
                    return [.answer(200, lifetime, "Age: 20", "ETag: \"v\"", body: "0123456789")]
                // The key is marked: its requests are passed.
                case 2: return [.answer(403, "Cache-Control: private", body: "not you")]
                default: return [.answer(503, body: "busy")]
                }
            }
            try proxy.get("/x")
            #expect(try proxy.get("/x").text == "not you")
            #expect(try proxy.get("/x", "If-None-Match: \"v\"").status == 304)
            let part = try proxy.get("/x", "Range: bytes=0-1")
            #expect(part.status == 206 && part.text == "01")
        }
    }

    @Test func `a fresh page keeps its lifetime, whatever response one client gets`() throws {
        try scenario { origin, proxy in
            origin.on("/x") { request in
                [
                    request.number == 1
                        ? .answer(200, "Cache-Control: max-age=60", body: "stored") : .answer(404, body: "gone")
                ]
            }
            try proxy.get("/x")
            #expect(try proxy.get("/x", "Cache-Control: no-cache").text == "gone")
            let other = try proxy.get("/x")
            #expect(other.text == "stored" && other.cacheStatus.contains("hit"))
        }
    }

    @Test func `a stale response is served when the origin is down`() throws {
        try scenario { origin, proxy in
            origin.on("/x", page("max-age=10, stale-if-error=600"))
            try proxy.get("/x")
            origin.goDown()
            let answer = try proxy.get("/x")
            #expect(answer.status == 200 && answer.text == "stored")
        }
    }

    @Test func `the operator can permit stale responses without stale-if-error`() throws {
        try scenario(.staleIfError(.seconds(600))) { origin, proxy in
            origin.on("/x", page("max-age=10"))
            try proxy.get("/x")
            #expect(try proxy.get("/x").text == "stored")
        }
    }

    @Test func `a stale response is served for a silent origin for an hour, or as long as configured`() throws {
        for (setting, status) in [("1h", 200), ("0s", 502)] {
            try scenario(.other(section: "caching", key: "stale-if-unreachable", value: setting)) { origin, proxy in
                origin.on("/x") { _ in
                    [.answer(200, "Cache-Control: max-age=10", "Age: 20", "ETag: \"a\"", body: "stored")]
                }
                try proxy.get("/x")
                origin.goDown()
                #expect(try proxy.get("/x").status == status)
            }
        }
    }

    @Test func `an origin with an invalid response counts as failing, not as silent`() throws {
        for (directive, status) in [("max-age=10", 502), ("max-age=10, stale-if-error=600", 200)] {
            try scenario { origin, proxy in
                origin.on("/x") { request in
                    request.number == 1
                        ? [.answer(200, "Cache-Control: \(directive)", "Age: 20", "ETag: \"a\"", body: "stored")]
                        : [.bytes(Array("HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n".utf8)), .close]
                }
                try proxy.get("/x")
                #expect(try proxy.get("/x").status == status)
            }
        }
    }

    @Test func `s-maxage forbids stale responses, unless the operator permits them`() throws {
        for (setting, body) in [("true", ""), ("false", "stored")] {
            try scenario(.other(section: "caching", key: "s-maxage-forbids-stale", value: setting)) { origin, proxy in
                origin.on("/x", page("s-maxage=10, stale-if-error=600"))
                try proxy.get("/x")
                let answer = try proxy.get("/x")
                #expect(body.isEmpty ? answer.status == 503 : answer.text == body)
            }
        }
    }

    @Test(arguments: [400, 403, 429])
    func `a refusal of one client leaves the stale response for others`(_ status: Int) throws {
        try scenario { origin, proxy in
            origin.on("/x") { request in
                request.number == 1
                    ? [
                        .answer(
                            200, "Cache-Control: max-age=10, stale-if-error=600", "Age: 20", "ETag: \"a\"",
                            body: "stored")
                    ]
                    : request["x-bot"] != nil ? [.answer(status)] : [.answer(503, body: "busy")]
            }
            try proxy.get("/x")
            let refused = try proxy.get("/x", "Cache-Control: no-cache", "X-Bot: 1")
            let other = try proxy.get("/x")
            #expect(refused.status == status && other.text == "stored")
        }
    }

    /// What a leader and one who joined it get when the origin is busy, each by its own words.
    private func pair(_ cacheControl: String, leader: [String], joiner: [String]) throws -> (
        led: Answer, joined: Answer
    ) {
        var answers: (led: Answer, joined: Answer)?
        try scenario { origin, proxy in
            let busy = Gate()
            origin.on("/x") { request in
                request.number == 1
                    ? [.answer(200, "Cache-Control: \(cacheControl)", "Age: 20", "ETag: \"a\"", body: "stored")]
                    : [.gate(busy), .answer(503, body: "busy")]
            }
            try proxy.get("/x")
            let (first, second) = try (proxy.connect(), proxy.connect())
            try first.send(proxy.request("GET", "/x", leader))
            try eventually("the origin is asked") { origin.count("/x") == 2 }
            try second.send(proxy.request("GET", "/x", joiner))
            try proxy.joined(3)
            busy.open()
            answers = try (first.answer(), second.answer())
        }
        return try #require(answers)
    }

    @Test func `the leader's stale-if-error does not apply to requests that joined`() throws {
        let answers = try pair("max-age=10", leader: ["Cache-Control: stale-if-error=600"], joiner: [])
        #expect(answers.led.text == "stored" && answers.joined.status == 503)
    }

    @Test func `a request that joined with no-cache gets the error`() throws {
        let answers = try pair("max-age=10, stale-if-error=600", leader: [], joiner: ["Cache-Control: no-cache"])
        #expect(answers.led.text == "stored" && answers.joined.status == 503)
    }

    @Test func `a leader with no-cache leaves the stale response to requests that joined`() throws {
        let answers = try pair("max-age=10, stale-if-error=600", leader: ["Cache-Control: no-cache"], joiner: [])
        #expect(answers.led.status == 503 && answers.joined.text == "stored")
        #expect(
            answers.joined.cacheStatus.contains("collapsed")
                && answers.joined.cacheStatus.contains("detail=stale-if-error"))
    }

    @Test func `a leader whose origin closes leaves the stale response to requests that joined`() throws {
        try scenario { origin, proxy in
            let closes = Gate()
            origin.on("/x") { request in
                request.number == 1
                    ? [.answer(200, "Cache-Control: max-age=10", "Age: 20", "ETag: \"a\"", body: "stored")]
                    : [.gate(closes), .close]
            }
            try proxy.get("/x")
            let (leader, joiner) = try (proxy.connect(), proxy.connect())
            try leader.send(proxy.request("GET", "/x", ["Cache-Control: no-cache"]))
            try eventually("the origin is asked") { origin.count("/x") == 2 }
            try joiner.send(proxy.request("GET", "/x"))
            try proxy.joined(3)
            closes.open()
            let (led, joined) = try (leader.answer(), joiner.answer())
            #expect(led.status == 502 && joined.text == "stored")
        }
    }

    @Test(arguments: ["max-age=10", "max-age=10, stale-if-error=5", "max-age=10, stale-if-error=600, must-revalidate"])
    func `the error is sent where a stale response is not permitted`(_ cacheControl: String) throws {
        try scenario { origin, proxy in
            origin.on("/x", page(cacheControl))
            try proxy.get("/x")
            #expect(try proxy.get("/x").status == 503)
        }
    }
}
