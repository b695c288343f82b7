import Testing

/// Who comes when the head is there and the body still arrives: what was made for somebody before is only for whom it
/// is fresh enough.
@Suite(.scenario) struct LateJoinerTests {
    /// The first response arrives half, and on when `rest` opens; the ones after it are whole.
    private static func script(_ origin: ScriptedOrigin, _ rest: Gate, _ fields: String...) {
        origin.on("/x") { request in
            request.number == 1
                ? [.head(200, fields + ["Content-Length: 4"]), .text("fi"), .gate(rest), .text("rs")]
                : [.head(200, fields + ["Content-Length: 4"]), .text("next")]
        }
    }

    private static func lead(_ proxy: Program) throws -> Conversation {
        let leader = try proxy.connect()
        try leader.send(proxy.request("GET", "/x"))
        try leader.progress { $0.body.length == 2 }
        return leader
    }

    @Test func `a late joiner gets Age, the leader does not`() throws {
        try scenario { origin, proxy in
            let rest = Gate()
            Self.script(origin, rest, "Cache-Control: max-age=100")
            let leader = try Self.lead(proxy)
            let late = try proxy.connect()
            try late.send(proxy.request("GET", "/x"))
            try late.progress { $0.body.length == 2 }
            rest.open()
            let (own, joined) = try (leader.answer(), late.answer())
            #expect(own.text == "firs" && own["age"] == nil)
            #expect(joined.text == "firs" && joined["age"].flatMap { Int($0) } != nil)
            #expect(origin.count("/x") == 1)
        }
    }

    @Test(arguments: ["no-cache", "max-age=10", "min-fresh=80"])
    func `a late joiner that wants a fresher response causes a fetch at once`(_ directive: String) throws {
        try scenario { origin, proxy in
            let rest = Gate()
            Self.script(origin, rest, "Cache-Control: max-age=100", "Age: 50")
            let leader = try Self.lead(proxy)
            #expect(
                try proxy.send("GET", "/x", "Cache-Control: \(directive)").text == "next", "before the first has ended")
            rest.open()
            #expect(try leader.answer().text == "firs")
        }
    }

    @Test(arguments: [
        "Cache-Control: no-cache", "Cache-Control: max-age=10", "Cache-Control: min-fresh=1", "Pragma: no-cache",
    ])
    func `a response without an age does not serve a late joiner that demands freshness`(_ wish: String) throws {
        try scenario { origin, proxy in
            let rest = Gate()
            Self.script(origin, rest, "Age: 50")
            let leader = try Self.lead(proxy)
            #expect(try proxy.get("/x", wish).text == "next", "before the first has ended")
            rest.open()
            #expect(try leader.answer().text == "firs")
        }
    }

    @Test(arguments: ["must-revalidate", "proxy-revalidate"])
    func `a response that must be validated and has no age serves only the waiters`(_ directive: String) throws {
        try scenario { origin, proxy in
            let rest = Gate()
            Self.script(origin, rest, "Cache-Control: \(directive)")
            let leader = try Self.lead(proxy)
            #expect(try proxy.get("/x").text == "next", "before the first has ended")
            rest.open()
            #expect(try leader.answer().text == "firs")
        }
    }

    @Test func `a response that is stale on arrival serves no late joiner`() throws {
        try scenario { origin, proxy in
            let rest = Gate()
            Self.script(origin, rest, "Cache-Control: max-age=0")
            let leader = try Self.lead(proxy)
            #expect(try proxy.get("/x").text == "next", "before the first has ended")
            rest.open()
            #expect(try leader.answer().text == "firs")
        }
    }

    @Test func `a response with no-cache is validated by each client, all at the same time`() throws {
        try scenario { origin, proxy in
            let answers = Gate()
            origin.on("/x") { request in
                request.number == 1
                    ? [.answer(200, "Cache-Control: no-cache", "ETag: \"a\"", body: "page")]
                    : [.gate(answers), .head(304, "Cache-Control: no-cache", "ETag: \"a\"")]
            }
            try proxy.get("/x")
            let crowd = proxy.crowd(10, get: "/x")
            try eventually("each has a validation of its own") { origin.count("/x") == 11 }
            answers.open()
            #expect(crowd.finished().allSatisfy { $0.status == 200 && $0.text == "page" })
        }
    }

    @Test func `a fetch whose response each client must validate takes no late joiner`() throws {
        try scenario(.unshareableTTL(.zero)) { origin, proxy in
            let rest = Gate()
            Self.script(origin, rest, "Cache-Control: no-cache", "ETag: \"a\"")
            let leader = try Self.lead(proxy)
            #expect(try proxy.send("GET", "/x").text == "next", "before the first has ended")
            #expect(try proxy.metric(.joinedLate) == 0)
            rest.open()
            #expect(try leader.answer().text == "firs")
        }
    }
}
