import Testing

/// The origin falls silent: nobody is stuck.
@Suite(.scenario) struct SilentUpstreamTests {
    private func halfThenSilence(_ request: Received) -> [Step] {
        request.number == 1
            ? [.head(200, "Cache-Control: max-age=60", "Content-Length: 10000"), .pattern(0..<5_000), .silence]
            : [.answer(200, "Cache-Control: max-age=60", pattern: 10_000)]
    }

    @Test func `a response that falls silent after half the body is given up after the timeout`() throws {
        try scenario(.noProgressTimeout(.seconds(3)), .overtakeAfter(.seconds(2))) { origin, proxy in
            origin.on("/half") { [self] in halfThenSilence($0) }
            let answers = proxy.crowd(20, get: "/half").finished()

            #expect(answers.allSatisfy { $0.ending == .cutOff || $0.ending == .reset })
            #expect(answers.allSatisfy { $0.body.length == 5_000 && $0.body.isIntact })
            let longest = answers.map(\.took).max()!
            note("given up after (set to 3 s)", longest.rounded)
            #expect(longest < .seconds(3) + aStall)
            try eventually("the origin is left alone") { origin.requests("/half")[0].wasAbandoned }
        }
    }

    @Test func `new clients do not wait behind a body that stalls`() throws {
        try scenario(.noProgressTimeout(.seconds(20)), .overtakeAfter(.milliseconds(300))) { origin, proxy in
            origin.on("/half") { [self] in halfThenSilence($0) }
            let stuck = proxy.crowd(1, get: "/half")
            try eventually("it has half") { stuck.answers[0].body.length == 5_000 }
            try eventually("it is overtaken") { try proxy.metric(.overtaken) >= 1 }

            let answers = proxy.crowd(20, get: "/half").finished(within: .seconds(10))
            #expect(answers.allSatisfy { $0.isWhole(10_000) })
            #expect(origin.count("/half") == 2)
        }
    }

    @Test func `new clients do not wait behind a head that does not arrive`() throws {
        try scenario(.firstByteTimeout(.seconds(20)), .overtakeAfter(.milliseconds(300))) { origin, proxy in
            origin.on("/mute") { request in
                request.number == 1 ? [.silence] : [.answer(200, "Cache-Control: max-age=60", pattern: 10_000)]
            }
            let stuck = proxy.crowd(1, get: "/mute")
            try eventually("it has been asked") { origin.count("/mute") == 1 }
            try eventually("it is overtaken") { try proxy.metric(.overtaken) >= 1 }

            #expect(proxy.crowd(20, get: "/mute").finished(within: .seconds(10)).allSatisfy { $0.isWhole(10_000) })
            #expect(origin.count("/mute") == 2)
            stuck.close()
        }
    }

    @Test func `a waiter whose wait is over causes the next fetch`() throws {
        try scenario(.waitTimeout(.milliseconds(300)), .whenExceeded("pass"), .overtakeAfter(.seconds(20))) {
            origin, proxy in
            origin.on("/mute") { $0.number == 1 ? [.silence] : [.answer(200, body: "next")] }
            let leader = proxy.crowd(1, get: "/mute")
            try eventually("it leads") { origin.count("/mute") == 1 }
            let waiter = try proxy.get("/mute")
            #expect(waiter.text == "next")
            #expect(waiter.took > .milliseconds(250))
            leader.close()
        }
    }

    @Test func `a waiter of a silent origin gets a permitted stale response when its wait is over`() throws {
        try scenario(.waitTimeout(.milliseconds(300)), .whenExceeded("pass"), .overtakeAfter(.seconds(20))) {
            origin, proxy in
            for path in ["/mute", "/strict"] {
                let directives = path == "/mute" ? "max-age=0" : "max-age=0, must-revalidate"
                origin.on(path) { request in
                    request.number == 2
                        ? [.silence]
                        : [
                            .answer(
                                200, "Cache-Control: \(directives)", "ETag: \"a\"",
                                body: request.number == 1 ? "stored" : "own")
                        ]
                }
                try proxy.get(path)
                let leader = proxy.crowd(1, get: path)
                try eventually("it leads") { origin.count(path) == 2 }
                let waiter = try proxy.send("GET", path)
                // What can never be fresh and must not be stale is validated by each for itself: it does not wait.
                #expect(path == "/strict" || waiter.took > .milliseconds(250))
                #expect(waiter.text == (path == "/mute" ? "stored" : "own"))
                #expect(origin.count(path) == (path == "/mute" ? 2 : 3))
                if path == "/mute" { #expect(waiter["cache-status"]?.contains("detail=wait-timeout") == true) }
                leader.close()
            }
        }
    }

    @Test func `a waiter whose wait is over gets 503 if the operator says so`() throws {
        try scenario(.waitTimeout(.milliseconds(300)), .whenExceeded("503"), .overtakeAfter(.seconds(20))) {
            origin, proxy in
            origin.on("/mute") { _ in [.silence] }
            let leader = proxy.crowd(1, get: "/mute")
            try eventually("it leads") { origin.count("/mute") == 1 }
            let waiter = try proxy.get("/mute")
            #expect(waiter.status == 503)
            #expect(waiter["retry-after"] != nil)
            #expect(origin.count("/mute") == 1)
            leader.close()
        }
    }
}
