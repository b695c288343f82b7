import Testing

/// Never shared by mistake.
@Suite(.scenario) struct SharingConversationTests {
    struct Case: Sendable, CustomTestStringConvertible {
        let fields: [String]
        let isShared: Bool
        var asks: [String] = []
        var status = 200
        var testDescription: String { "\(asks) → \(status) \(fields): \(isShared ? "shared" : "not shared")" }
    }

    static let cases: [Case] = [
        Case(fields: ["Cache-Control: max-age=60"], isShared: true),
        Case(fields: ["Cache-Control: s-maxage=60, max-age=0"], isShared: true),
        Case(fields: ["Cache-Control: max-age=60, s-maxage=0"], isShared: false),
        Case(fields: ["Expires: \(System.httpDate(600))"], isShared: true),
        Case(fields: ["Expires: 0"], isShared: false),
        Case(fields: ["Last-Modified: \(System.httpDate(-864_000))"], isShared: true),
        Case(fields: [], isShared: false),
        Case(fields: ["Cache-Control: no-store"], isShared: false),
        Case(fields: ["Cache-Control: max-age=60, no-store"], isShared: false),
        Case(fields: ["Cache-Control: max-age=60, private"], isShared: false),
        Case(fields: ["Cache-Control: MAX-AGE=60, PRIVATE"], isShared: false),
        Case(fields: ["Cache-Control: max-age=60", "Cache-Control: no-cache"], isShared: false),
        Case(fields: ["Cache-Control: max-age=60", "Set-Cookie: a=b"], isShared: false),
        Case(fields: ["Cache-Control: max-age=60, public", "Set-Cookie: a=b"], isShared: true),
        Case(fields: ["Cache-Control: max-age=60"], isShared: false, asks: ["Authorization: Basic eA=="]),
        Case(fields: ["Cache-Control: max-age=60, public"], isShared: true, asks: ["Authorization: Basic eA=="]),
        Case(fields: ["Cache-Control: s-maxage=60"], isShared: true, asks: ["Authorization: Basic eA=="]),
        Case(
            fields: ["Cache-Control: max-age=60, must-revalidate"], isShared: true, asks: ["Authorization: Basic eA=="]),
        Case(fields: ["Cache-Control: max-age=60"], isShared: true, status: 404),
        Case(fields: ["Cache-Control: max-age=60", "Location: /y"], isShared: true, status: 301),
        Case(fields: ["Cache-Control: max-age=60"], isShared: true, asks: ["Cookie: a=b"]),
    ]

    @Test func `each response is reused, or not, as RFC 9111 says`() throws {
        try scenario { origin, proxy in
            for (index, row) in Self.cases.enumerated() {
                origin.on("/\(index)") { request in
                    let body = "\(request.number)"
                    return [.head(row.status, row.fields + ["Content-Length: \(body.utf8.count)"]), .text(body)]
                }
                let client = try proxy.connect()
                var texts: [String] = []
                for _ in 1...2 {
                    try client.send(proxy.request("GET", "/\(index)", row.asks))
                    let answer = try client.answer()
                    #expect(answer.status == row.status, "\(row.testDescription)")
                    texts.append(answer.text)
                }
                #expect(texts == ["1", row.isShared ? "1" : "2"], "\(row.testDescription)")
            }
        }
    }

    @Test(arguments: ["no-store", "private", "no-cache", "max-age=60|Set-Cookie: a=b"])
    func `waiters do not get an unshareable response of another client`(_ fields: String) throws {
        try scenario { origin, proxy in
            let gate = Gate()
            let lines = ("Cache-Control: " + fields).split(separator: "|").map(String.init)
            origin.on("/me") { request in
                let body = "response \(request.number)"
                return [.gate(gate), .head(200, lines + ["Content-Length: \(body.utf8.count)"]), .text(body)]
            }
            let crowd = proxy.crowd(20, get: "/me")
            try proxy.joined(20)
            gate.open()
            #expect(Set(crowd.finished().map(\.text)).count == 20)
        }
    }

    @Test func `each response to Authorization goes to its own client`() throws {
        try scenario { origin, proxy in
            origin.on("/me") { [.answer(200, "Cache-Control: max-age=60", body: $0["authorization"] ?? "nobody")] }
            let crowd = Crowd(
                at: proxy.endpoint, (0..<20).map { proxy.visitor("/me", ["Authorization: Bearer \($0)"]) })
            try crowd.gathered()
            #expect(crowd.finished().map(\.text) == (0..<20).map { "Bearer \($0)" })
            #expect(try proxy.get("/me").text == "nobody")
        }
    }

    @Test func `a response that is stale at once still serves the waiters`() throws {
        try scenario { origin, proxy in
            let gate = Gate()
            origin.on("/now") { [.gate(gate), .answer(200, "Cache-Control: max-age=0", body: "\($0.number)")] }
            let crowd = proxy.crowd(50, get: "/now")
            try proxy.joined(50)
            gate.open()
            #expect(crowd.finished().allSatisfy { $0.text == "1" })
            #expect(origin.count("/now") == 1)
            #expect(try proxy.get("/now").text == "2")
        }
    }

    @Test func `a request without Authorization does not wait for a response to one with Authorization`() throws {
        try scenario { origin, proxy in
            let gate = Gate()
            origin.on("/me") { request in
                guard let who = request["authorization"] else {
                    return [.answer(200, "Cache-Control: max-age=60", body: "nobody")]
                }
                return [.gate(gate), .answer(200, "Cache-Control: max-age=60", body: who)]
            }
            let own = proxy.crowd(1, get: "/me", "Authorization: Bearer 1")
            try eventually("it is under way") { origin.count("/me") == 1 }
            #expect(try proxy.send("GET", "/me").text == "nobody")
            gate.open()
            #expect(own.finished().map(\.text) == ["Bearer 1"])
        }
    }
}
