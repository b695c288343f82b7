import Testing

/// The harness against itself: its clients talk straight to its origin, so that a failing scenario can be believed.
@Suite(.scenario) struct HarnessTests {
    let origin: ScriptedOrigin
    init() throws { origin = try ScriptedOrigin() }

    @Test func `a scripted response arrives whole, and the request is kept`() throws {
        defer { origin.stop() }
        origin.on("/hello") { _ in [.answer(200, "X-A: 1", "X-A: 2", body: "hello")] }

        let answer = try origin.get("/hello?q=1", "X-Mine: yes")

        #expect(answer.status == 200)
        #expect(answer.isClean)
        #expect(answer.text == "hello")
        #expect(answer["x-a"] == "1, 2")
        #expect(origin.count("/hello") == 1)
        #expect(origin.requests("/hello")[0].target == "/hello?q=1")
        #expect(origin.requests("/hello")[0]["x-mine"] == "yes")
    }

    @Test func `a gate holds the body until the test opens it`() throws {
        defer { origin.stop() }
        let gate = Gate()
        origin.on("/slow") { _ in
            [.head(200, "Transfer-Encoding: chunked"), .chunk("one"), .gate(gate), .chunk("two"), .lastChunk("X-T: 1")]
        }

        let client = try origin.connect()
        try client.send(origin.request("GET", "/slow"))
        let half = try client.progress { $0.body.length == 3 }
        #expect(half.text == "one" && half.ending == .pending)
        gate.open()
        let whole = try client.answer()
        #expect(whole.text == "onetwo" && whole.isClean)
        #expect(whole.body.trailers == ["X-T: 1"])
    }

    @Test func `a thousand clients get a paced pattern intact`() throws {
        defer { origin.stop() }
        let length = 200_000
        origin.on("/p") { _ in
            [.head(200, "Content-Length: \(length)"), .pattern(length, over: .milliseconds(200), in: 4)]
        }

        let answers = origin.crowd(1_000, get: "/p").finished(within: .seconds(120))

        #expect(answers.allSatisfy { $0.isWhole(length) })
        #expect(origin.count("/p") == 1_000)
        #expect(answers.allSatisfy { $0.took > .milliseconds(140) })
    }

    @Test func `a wrong pattern is noticed`() throws {
        defer { origin.stop() }
        origin.on("/p") { _ in [.answer(200, pattern: 100_000, seed: 1)] }
        #expect(origin.crowd(1, get: "/p").finished().allSatisfy { $0.isClean && !$0.body.isIntact })
        #expect(origin.crowd(1, get: "/p", seed: 1).finished().allSatisfy { $0.isWhole(100_000) })
    }

    @Test(arguments: [
        [Step.head(200, "Content-Length: 10"), .text("12345"), .close],
        [.head(200, "Transfer-Encoding: chunked"), .chunk("12345"), .close],
        [.head(200, "Content-Length: 10"), .text("12345"), .wait(.milliseconds(20)), .reset],
        [.close],
    ])
    func `a cut-off response is not clean`(_ steps: [Step]) throws {
        defer { origin.stop() }
        origin.on("/cut") { _ in steps }
        let single = try origin.get("/cut")
        #expect(!single.isClean)
        #expect(origin.crowd(3, get: "/cut").finished().allSatisfy { $0.ending == .cutOff || $0.ending == .reset })
    }

    @Test func `pipelined requests are answered in order`() throws {
        defer { origin.stop() }
        origin.on("/a") { _ in [.wait(.milliseconds(20)), .answer(200, body: "a")] }
        origin.on("/b") { _ in [.answer(200, body: "bb")] }
        let client = try origin.connect()
        try client.send(origin.request("GET", "/a") + origin.request("HEAD", "/b") + origin.request("GET", "/b"))
        #expect(try client.answer().text == "a")
        #expect(try client.answer(to: "HEAD").body.length == 0)
        #expect(try client.answer().text == "bb")
        #expect(origin.requests("/b").map(\.ordinal) == [1, 2])
    }

    @Test func `a slow reader holds the origin back`() throws {
        defer { origin.stop() }
        let length = 20_000_000
        origin.on("/big") { _ in [.answer(200, pattern: length)] }
        let crowd = origin.crowd(1, get: "/big", pace: .slow(bytes: 4096, every: .milliseconds(20)))
        try eventually("something was read") { crowd.answers[0].body.length > 8192 }
        #expect(origin.requests("/big")[0].sent < length / 2)
        crowd.close()
        try eventually("the origin notices") { origin.requests("/big")[0].wasAbandoned }
    }

    @Test func `one client of a group can leave, and the others stay`() throws {
        defer { origin.stop() }
        let gate = Gate()
        origin.on("/g") { _ in [.head(200, "Content-Length: 2"), .text("a"), .gate(gate), .text("b")] }
        let crowd = try origin.crowd(3, get: "/g").gathered()
        try eventually("the heads are there") { crowd.answers.allSatisfy { $0.body.length == 1 } }
        crowd.leave(0)
        gate.open()
        #expect(crowd.finished().map(\.ending) == [.left, .clean, .clean])
    }

    @Test func `kept connections serve a second set of requests`() throws {
        defer { origin.stop() }
        origin.on("/k") { _ in [.answer(200, body: "k")] }
        let crowd = origin.crowd(50, get: "/k", keepsOpen: true)
        #expect(crowd.finished().allSatisfy { $0.isClean })
        crowd.again()
        #expect(crowd.finished().allSatisfy { $0.isClean })
        #expect(origin.count("/k") == 100)
        #expect(origin.acceptedConnections == 50)
        origin.closeIdleConnections()
        #expect(origin.openConnections == 0)
    }

    @Test func `request bodies arrive while they are sent`() throws {
        defer { origin.stop() }
        origin.on("/up") { _ in [.interim(100), .requestBody, .answer(201, body: "thanks")] }
        let client = try origin.connect()
        try client.send("POST /up HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n")
        try eventually("the first chunk is there") { origin.requests("/up").first?.body.text == "hello" }
        #expect(try client.progress { !$0.interim.isEmpty }.interim[0].status == 100)
        try client.send("0\r\n\r\n")
        #expect(try client.answer().status == 201)
    }

    @Test func `a tunnel echoes`() throws {
        defer { origin.stop() }
        origin.on("/ws") { _ in [.raw("HTTP/1.1 101 Switching\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n"), .echo] }
        let client = try origin.connect()
        try client.send(origin.request("GET", "/ws", ["Upgrade: x", "Connection: upgrade"]))
        #expect(try client.answer().status == 101)
        try client.send("ping")
        #expect(try client.bytes(4) == Array("ping".utf8))
    }

    @Test func `an origin that is down refuses connections`() throws {
        origin.goDown()
        #expect(throws: System.Failure.self) { try origin.get("/") }
        origin.stop()
    }
}
