import Testing

/// RFC 5861 §4 and RFC 9111 §4.2.4: a stale answer instead of an error, where that is allowed.
@Suite(.scenario) struct StaleIfErrorTests {
    private func page(_ cacheControl: String) -> ScriptedOrigin.Handler {
        { $0.number == 1 ? [.answer(200, "Cache-Control: \(cacheControl)", "Age: 20", body: "stored")] : [.answer(503, body: "busy")] }
    }

    @Test func `a 503 is hidden behind a stale page for fifty clients`() throws {
        try scenario { origin, proxy in
            origin.on("/x", page("max-age=10, stale-if-error=600"))
            try proxy.get("/x")
            #expect(proxy.crowd(50, get: "/x").finished().allSatisfy { $0.status == 200 && $0.text == "stored" })
        }
    }

    @Test func `so is an origin that is down`() throws {
        try scenario { origin, proxy in
            origin.on("/x", page("max-age=10, stale-if-error=600"))
            try proxy.get("/x")
            origin.goDown()
            let answer = try proxy.get("/x")
            #expect(answer.status == 200 && answer.text == "stored")
        }
    }

    @Test func `the operator can allow it for responses that do not say`() throws {
        try scenario(.staleIfError(.seconds(600))) { origin, proxy in
            origin.on("/x", page("max-age=10"))
            try proxy.get("/x")
            #expect(try proxy.get("/x").text == "stored")
        }
    }

    @Test func `an origin that does not answer is covered for an hour, or as long as the operator says`() throws {
        for (setting, status) in [("1h", 200), ("0s", 502)] {
            try scenario(.other(section: "caching", key: "stale-if-unreachable", value: setting)) { origin, proxy in
                origin.on("/x") { _ in [.answer(200, "Cache-Control: max-age=10", "Age: 20", "ETag: \"a\"", body: "stored")] }
                try proxy.get("/x")
                origin.goDown()
                #expect(try proxy.get("/x").status == status)
            }
        }
    }

    @Test func `s-maxage forbids stale answers, unless the operator knows better`() throws {
        for (setting, body) in [("true", ""), ("false", "stored")] {
            try scenario(.other(section: "caching", key: "s-maxage-forbids-stale", value: setting)) { origin, proxy in
                origin.on("/x", page("s-maxage=10, stale-if-error=600"))
                try proxy.get("/x")
                let answer = try proxy.get("/x")
                #expect(body.isEmpty ? answer.status == 503 : answer.text == body)
            }
        }
    }

    @Test(arguments: ["max-age=10", "max-age=10, stale-if-error=5", "max-age=10, stale-if-error=600, must-revalidate"])
    func `where it is not allowed the error shows`(_ cacheControl: String) throws {
        try scenario { origin, proxy in
            origin.on("/x", page(cacheControl))
            try proxy.get("/x")
            #expect(try proxy.get("/x").status == 503)
        }
    }
}
