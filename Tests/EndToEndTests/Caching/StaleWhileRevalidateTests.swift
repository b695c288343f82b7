import Testing

/// RFC 5861 §3. The origin sends `Age`, so that a response is stale when it comes and no test waits for the clock.
@Suite(.scenario) struct StaleWhileRevalidateTests {
    /// The first response is stale when it comes; the next waits at the gate.
    private static func script(_ origin: ScriptedOrigin, _ refresh: Gate) {
        origin.on("/s") { request in
            [
                .gate(request.number == 1 ? .opened : refresh),
                .answer(
                    200, "Cache-Control: max-age=10, stale-while-revalidate=600",
                    request.number == 1 ? "Age: 15" : "Age: 0", body: "version \(request.number)"),
            ]
        }
    }

    @Test func `two hundred clients get the stale response at once, and one refresh runs`() throws {
        try scenario { origin, proxy in
            let refresh = Gate()
            Self.script(origin, refresh)
            try proxy.get("/s")
            // The refresh stands at its gate meanwhile: nobody waits for it.
            let answers = proxy.crowd(200, get: "/s").finished()

            #expect(answers.allSatisfy { $0.text == "version 1" && $0.isClean })
            note("stale answers to 200 clients", answers.map(\.took).max()!.rounded)
            try eventually("the refresh runs") { origin.count("/s") == 2 }
            refresh.open()
            try eventually("the new version is served") { try proxy.get("/s").text == "version 2" }
            #expect(origin.count("/s") == 2)
        }
    }

    @Test func `a refresh goes on when the client that caused it leaves`() throws {
        try scenario(.whenLastLeaves("cancel")) { origin, proxy in
            let refresh = Gate()
            Self.script(origin, refresh)
            try proxy.get("/s")
            let client = try proxy.connect()
            try client.send(proxy.request("GET", "/s"))
            #expect(try client.answer().text == "version 1")
            try eventually("the refresh runs") { origin.count("/s") == 2 }
            client.reset()
            try eventually("nobody is there") { try proxy.metric(.openClients) == 0 }
            refresh.open()
            try eventually("the new version is served") { try proxy.get("/s").text == "version 2" }
            #expect(!origin.requests("/s")[1].wasAbandoned)
        }
    }

    private static let other: [Step] = [
        .answer(404, body: "gone"), .answer(200, "Cache-Control: private", body: "gone"),
        .answer(200, "Cache-Control: no-store", body: "gone"),
        .answer(302, "Location: /login", body: "gone"),
    ]

    @Test(arguments: 0..<other.count)
    func `a refresh with another response that is not stored ends the use of the stale page`(
        _ index: Int
    ) throws {
        try scenario { origin, proxy in
            origin.on("/s") { request in
                [
                    request.number == 1
                        ? .answer(
                            200, "Cache-Control: max-age=10, stale-while-revalidate=600", "ETag: \"a\"", "Age: 15",
                            body: "page")
                        : Self.other[index]
                ]
            }
            try proxy.get("/s")
            #expect(try proxy.get("/s").text == "page")
            try eventually("the refresh is over") { try origin.count("/s") == 2 && proxy.metric(.inFlight) == 0 }
            for _ in 1...2 { #expect(try proxy.get("/s").text == "gone") }
            origin.goDown()
            #expect(try proxy.get("/s").status == 502)
        }
    }

    @Test func `a refresh with Vary ends the use of the stale page for other clients`() throws {
        try scenario { origin, proxy in
            origin.on("/s") { request in
                [
                    request.number == 1
                        ? .answer(200, "Cache-Control: max-age=10, stale-while-revalidate=600", "Age: 15", body: "page")
                        : .answer(
                            200, "Cache-Control: max-age=60", "Vary: Accept-Language",
                            body: request["accept-language"] ?? "none")
                ]
            }
            try proxy.get("/s")
            let stale = try proxy.get("/s", "Accept-Language: en")
            #expect(stale.text == "page")
            try eventually("the refresh is over") { try origin.count("/s") == 2 && proxy.metric(.inFlight) == 0 }
            for language in ["de", "en", "de"] {
                let answer = try proxy.get("/s", "Accept-Language: \(language)")
                #expect(answer.text == language)
            }
            #expect(origin.count("/s") == 3)
        }
    }

    @Test(arguments: [429, 500])
    func `a refresh with an error of an overloaded origin keeps the stale page`(_ status: Int) throws {
        try scenario { origin, proxy in
            origin.on("/s") { request in
                [
                    request.number == 1
                        ? .answer(200, "Cache-Control: max-age=10, stale-while-revalidate=600", "Age: 15", body: "page")
                        : .answer(status)
                ]
            }
            try proxy.get("/s")
            try proxy.get("/s")
            try eventually("the refresh is over") { try origin.count("/s") == 2 && proxy.metric(.inFlight) == 0 }
            #expect(try proxy.get("/s").text == "page")
        }
    }

    @Test func `a stale response past its window is not served`() throws {
        try scenario { origin, proxy in
            origin.on("/s") { request in
                [
                    .answer(
                        200, "Cache-Control: max-age=10, stale-while-revalidate=10",
                        request.number == 1 ? "Age: 30" : "Age: 0", body: "version \(request.number)")
                ]
            }
            try proxy.get("/s")
            #expect(try proxy.get("/s").text == "version 2")
        }
    }
}
