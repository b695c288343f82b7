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

    @Test func `who joins late is told the age, who led is not`() throws {
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
    func `who comes late and wants it fresher has it fetched at once`(_ directive: String) throws {
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
    func `nor is what says nothing of its age for who comes late and wants it anew`(_ wish: String) throws {
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
    func `what must be validated and says nothing of its age is for those who waited`(_ directive: String) throws {
        try scenario { origin, proxy in
            let rest = Gate()
            Self.script(origin, rest, "Cache-Control: \(directive)")
            let leader = try Self.lead(proxy)
            #expect(try proxy.get("/x").text == "next", "before the first has ended")
            rest.open()
            #expect(try leader.answer().text == "firs")
        }
    }

    @Test func `what is stale on arrival is not for who comes after its head`() throws {
        try scenario { origin, proxy in
            let rest = Gate()
            Self.script(origin, rest, "Cache-Control: max-age=0")
            let leader = try Self.lead(proxy)
            #expect(try proxy.get("/x").text == "next", "before the first has ended")
            rest.open()
            #expect(try leader.answer().text == "firs")
        }
    }

    @Test func `what says no-cache is validated by each, and all at the same time`() throws {
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

    @Test func `nobody joins what each must validate, even where that is not remembered`() throws {
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
