import Testing

/// The origin closes in the middle of a body: never a lie.
@Suite(.scenario) struct CutOffUpstreamTests {
    private func body(chunked: Bool, then gate: Gate, _ end: Step) -> [Step] {
        chunked
            ? [
                .head(200, "Cache-Control: max-age=60", "Transfer-Encoding: chunked"), .chunk(pattern: 0..<5_000),
                .gate(gate), end,
            ]
            : [.head(200, "Cache-Control: max-age=60", "Content-Length: 10000"), .pattern(0..<5_000), .gate(gate), end]
    }

    @Test(arguments: [true, false])
    func `a response cut off by the origin never ends cleanly and is not stored`(chunked: Bool) throws {
        try scenario { origin, proxy in
            let gate = Gate()
            origin.on("/cut") { [self] _ in body(chunked: chunked, then: gate, .close) }
            let crowd = proxy.crowd(50, get: "/cut")
            try eventually("all have half") { crowd.answers.allSatisfy { $0.body.length == 5_000 } }
            gate.open()

            let answers = crowd.finished(within: .seconds(10))
            #expect(answers.allSatisfy { $0.ending == .cutOff || $0.ending == .reset })
            #expect(answers.allSatisfy { $0.body.isIntact })
            #expect(origin.count("/cut") <= 2)

            let before = origin.count("/cut")
            #expect(try !proxy.get("/cut").isClean)
            #expect(origin.count("/cut") > before, "what was cut off must not come from the store")
        }
    }

    @Test(arguments: [true, false])
    func `a response reset by the origin never ends cleanly`(chunked: Bool) throws {
        try scenario { origin, proxy in
            let gate = Gate()
            origin.on("/cut") { [self] _ in body(chunked: chunked, then: gate, .reset) }
            let crowd = proxy.crowd(10, get: "/cut")
            try eventually("all have half") { crowd.answers.allSatisfy { $0.body.length == 5_000 } }
            gate.open()
            #expect(crowd.finished(within: .seconds(10)).allSatisfy { $0.ending == .cutOff || $0.ending == .reset })
            #expect(origin.count("/cut") <= 2)
        }
    }

    @Test func `the log distinguishes an origin that broke off from a client that left`() throws {
        try scenario(.accessLog, .noProgressTimeout(.seconds(2))) { origin, proxy in
            let never = Gate()
            origin.on("/cut") { [self] _ in body(chunked: true, then: .opened, .close) }
            origin.on("/long") { _ in [.head(200, "Content-Length: 10000"), .pattern(0..<5_000), .close] }
            origin.on("/slow") { _ in [.head(200, "Content-Length: 10000"), .pattern(0..<5_000), .silence] }
            origin.on("/left") { [self] _ in body(chunked: true, then: never, .close) }
            for path in ["/cut", "/long", "/slow"] { _ = try proxy.get(path) }
            let client = try proxy.connect()
            try client.send(proxy.request("GET", "/left"))
            try client.progress { $0.body.length == 5_000 }
            client.reset()
            try eventually("four lines") { try proxy.accessLog.count == 4 }
            let lines = try proxy.accessLog
            #expect(lines.allSatisfy { $0["aborted"] == .bool(true) })
            for (path, detail) in [("/cut", "body"), ("/long", "body"), ("/slow", "body-timeout"), ("/left", nil)]
                as [(String, String?)]
            {
                let line = lines.first { $0["target"]?.string == path }
                #expect(line?["detail"]?.string == detail, "\(path)")
            }
        }
    }

    @Test func `a malformed chunk cuts the response off`() throws {
        try scenario { origin, proxy in
            origin.on("/bad") { _ in
                [
                    .head(200, "Cache-Control: max-age=60", "Transfer-Encoding: chunked"), .chunk("good"),
                    .raw("nonsense\r\n"),
                ]
            }
            let answers = try [proxy.get("/bad"), proxy.get("/bad")]
            #expect(answers.allSatisfy { !$0.isClean })
            #expect(origin.count("/bad") >= 2)
        }
    }

    @Test func `a body that ends with the connection is complete and may be stored`() throws {
        try scenario { origin, proxy in
            origin.on("/until-close") { _ in [.head(200, "Cache-Control: max-age=60"), .text("to the end"), .close] }
            let answer = try proxy.get("/until-close")
            #expect(answer.isClean && answer.text == "to the end")
        }
    }
}
