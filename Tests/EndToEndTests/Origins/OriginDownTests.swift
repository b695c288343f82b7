import Testing

@Suite(.scenario) struct OriginDownTests {
    @Test func `an origin that is down gives 502 at once, with Proxy-Status`() throws {
        try scenario { origin, proxy in
            origin.goDown()
            let answers = proxy.crowd(50, get: "/x").finished()
            #expect(answers.allSatisfy { $0.status == 502 && $0.isClean && !$0.text.isEmpty })
            #expect(answers.allSatisfy { $0["proxy-status"]?.contains("error=") ?? false })
            let slowest = answers.map(\.took).max()!
            note("502 for an origin that is down", slowest.rounded)
            #expect(slowest < aStall)
        }
    }

    @Test func `a silent origin gives 504 after the timeout, with Proxy-Status`() throws {
        try scenario(.firstByteTimeout(.milliseconds(500)), .overtakeAfter(.seconds(20))) { origin, proxy in
            origin.on("/mute") { _ in [.silence] }
            let answers = proxy.crowd(20, get: "/mute").finished()
            #expect(answers.allSatisfy { $0.status == 504 && $0["proxy-status"] != nil })
            #expect(answers.map(\.took).max()! < .milliseconds(500) + aStall)
            #expect(origin.count("/mute") <= 2)
        }
    }

    @Test func `an origin that comes back is used again`() throws {
        try scenario { origin, proxy in
            origin.goDown()
            #expect(try proxy.get("/x").status == 502)
            let again = try ScriptedOrigin(port: origin.port)
            defer { again.stop() }
            again.on("/x") { _ in [.answer(200, body: "back")] }
            try eventually("it is asked again", within: .seconds(20)) { try proxy.get("/x").text == "back" }
        }
    }

    @Test func `a proxy without descriptors does not report the origin as failing`() throws {
        try scenario(.workers(1), .other(section: "upstream", key: "max-failures", value: "1")) { origin, proxy in
            origin.on("/x") { _ in [.answer(200, "Cache-Control: no-store", body: "here")] }
            let client = try Conversation(with: proxy.endpoint)
            // Once it has an answer it was accepted, which takes a descriptor too.
            try client.send("GET /x HTTP/1.1\r\nHost: a\r\nCache-Control: only-if-cached\r\n\r\n")
            #expect(try client.answer().status == 504)
            let refused = try proxy.withoutDescriptors {
                try client.send("GET /x HTTP/1.1\r\nHost: a\r\n\r\n")
                return try client.answer()
            }
            #expect(refused.status == 503)
            #expect(refused["proxy-status"]?.contains("error=connection_limit_reached") ?? false)
            #expect(origin.count("/x") == 0)
            #expect(try proxy.get("/x").text == "here")
        }
    }
}
