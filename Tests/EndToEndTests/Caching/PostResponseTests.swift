import Testing

/// Answers to POST that are stored for GET (RFC 9110 §9.3.3), while others are at work on the same resource. What is
/// stored and what is not stands in `Conformance.Storing.methods`.
@Suite(.scenario) struct PostResponseTests {
    private static let fresh = "Cache-Control: max-age=100"

    @Test func `simultaneous POSTs are all forwarded`() throws {
        try scenario(.storesPostAnswers) { origin, proxy in
            let gate = Gate()
            origin.on("/p") { _ in [.gate(gate), .answer(200, Self.fresh, "Content-Location: /p", body: "made")] }
            let visitor = Visitor(request: Array(proxy.request("POST", "/p", body: "q").utf8), method: "POST")
            let crowd = Crowd(at: proxy.endpoint, Array(repeating: visitor, count: 20))
            try eventually("all of them are with the origin") { origin.count("/p") == 20 }
            gate.open()
            #expect(crowd.finished().allSatisfy { $0.text == "made" })
        }
    }

    @Test func `a POST whose response will be stored takes no joiner`() throws {
        try scenario(.storesPostAnswers) { origin, proxy in
            let gate = Gate()
            origin.on("/p") { request in
                request.method == "POST"
                    ? [
                        .head(200, Self.fresh, "Content-Location: /p", "Content-Length: 4"), .text("ma"), .gate(gate),
                        .text("de"),
                    ]
                    : [.answer(200, Self.fresh, body: "got")]
            }
            let post = try proxy.connect()
            try post.send(proxy.request("POST", "/p", body: "q"))
            try post.progress(to: "POST") { $0.body.length == 2 }
            #expect(try proxy.send("GET", "/p").text == "got")
            try eventually("it is stored") { try proxy.metric(.inFlight) == 1 }
            gate.open()
            #expect(try post.answer(to: "POST").text == "made")
            // It was made after the POST's head had come: what it shows is no older, and must not be overwritten.
            #expect(try proxy.get("/p").text == "got")
            #expect(origin.count("/p") == 2)
        }
    }

    @Test func `a response that another unsafe request overtook is not stored`() throws {
        try scenario(.storesPostAnswers) { origin, proxy in
            let gate = Gate()
            origin.on("/p") { request in
                switch request.method {
                case "POST": [.gate(gate), .answer(200, Self.fresh, "Content-Location: /p", body: "before or after?")]
                case "PUT": [.answer(204)]
                default: [.answer(200, Self.fresh, body: "put")]
                }
            }
            let post = try proxy.connect()
            try post.send(proxy.request("POST", "/p", body: "q"))
            try eventually("the origin has it") { origin.count("/p") == 1 }
            #expect(try proxy.send("PUT", "/p", body: "x").status == 204)
            gate.open()
            #expect(try post.answer(to: "POST").text == "before or after?")
            #expect(try proxy.get("/p").text == "put")
        }
    }

    @Test func `a response to a method override is not shared`() throws {
        try scenario(.storesPostAnswers) { origin, proxy in
            origin.on("/p") {
                [.answer(200, Self.fresh, "Content-Location: /p", body: $0["x-http-method-override"] ?? $0.method)]
            }
            let answer = try proxy.send("POST", "/p", "X-HTTP-Method-Override: PUT", body: "q")
            #expect(answer.text == "PUT", "it goes on")
            #expect(try proxy.get("/p").text == "GET")
        }
    }
}
