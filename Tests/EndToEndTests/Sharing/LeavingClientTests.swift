import Testing

/// The first client resets: nobody else notices.
@Suite(.scenario) struct LeavingClientTests {
    @Test func `the other clients get the response if the leader leaves before the head`() throws {
        try scenario { origin, proxy in
            let gate = Gate()
            origin.on("/x") { _ in [.gate(gate), .answer(200, "Cache-Control: max-age=60", pattern: 100_000)] }
            let first = try proxy.connect()
            try first.send(proxy.request("GET", "/x"))
            try eventually("it leads") { origin.count("/x") == 1 }
            let others = proxy.crowd(50, get: "/x")
            try proxy.joined(51)
            first.reset()
            try eventually("the program has seen it go") { try proxy.metric(.openClients) <= 50 }
            gate.open()

            #expect(others.finished().allSatisfy { $0.isWhole(100_000) })
            #expect(origin.count("/x") == 1)
        }
    }

    @Test func `the other clients get the response if the leader leaves after the head`() throws {
        try scenario { origin, proxy in
            let gate = Gate()
            origin.on("/x") { _ in
                [
                    .head(200, "Cache-Control: max-age=60", "Content-Length: 100000"), .pattern(0..<50_000),
                    .gate(gate),
                    .pattern(50_000..<100_000),
                ]
            }
            let first = try proxy.connect()
            try first.send(proxy.request("GET", "/x"))
            try first.progress { $0.body.length > 0 }
            let others = proxy.crowd(50, get: "/x")
            try eventually("the others stream along") { others.answers.allSatisfy { $0.body.length == 50_000 } }
            first.reset()
            try eventually("the program has seen it go") { try proxy.metric(.openClients) <= 50 }
            gate.open()

            #expect(others.finished().allSatisfy { $0.isWhole(100_000) })
            #expect(origin.count("/x") == 1)
        }
    }

    @Test func `the other clients get the response if some leave in the middle`() throws {
        try scenario { origin, proxy in
            let gate = Gate()
            origin.on("/x") { _ in [.gate(gate), .answer(200, "Cache-Control: max-age=60", pattern: 100_000)] }
            let crowd = proxy.crowd(60, get: "/x")
            try proxy.joined(60)
            for index in stride(from: 0, to: 60, by: 2) { crowd.leave(index) }
            gate.open()

            let answers = crowd.finished()
            #expect(answers.count { $0.isWhole(100_000) } == 30)
            #expect(answers.count { $0.ending == .left } == 30)
            #expect(origin.count("/x") == 1)
        }
    }

    @Test func `when all clients have left, the fetch goes on and its response is stored`() throws {
        try scenario(.whenLastLeaves("finish")) { origin, proxy in
            let gate = Gate()
            origin.on("/x") { _ in [.gate(gate), .answer(200, "Cache-Control: max-age=60", body: "kept")] }
            let crowd = proxy.crowd(5, get: "/x")
            try proxy.joined(5)
            for index in 0..<5 { crowd.leave(index) }
            try eventually("the program has seen them go") { try proxy.metric(.openClients) == 0 }
            gate.open()
            try eventually("it is stored") { try proxy.get("/x").cacheStatus.contains("hit") }
            #expect(origin.count("/x") == 1)
        }
    }

    @Test func `when all clients have left, the fetch is cut off if the operator says so`() throws {
        try scenario(.whenLastLeaves("cancel")) { origin, proxy in
            origin.on("/x") { request in request.number == 1 ? [.silence] : [.answer(200, body: "second")] }
            let crowd = proxy.crowd(5, get: "/x")
            try proxy.joined(5)
            for index in 0..<5 { crowd.leave(index) }
            try eventually("the origin is spared") { origin.requests("/x")[0].wasAbandoned }
            #expect(try proxy.get("/x").text == "second")
        }
    }

    @Test func `the bytes that arrived before the cut are kept, and only the rest is requested`() throws {
        try scenario(.whenLastLeaves("cancel")) { origin, proxy in
            let fields = ["Cache-Control: max-age=60", "ETag: \"v1\""]
            origin.on("/x") { request in
                request.number == 1
                    ? [.head(200, fields + ["Content-Length: 20000"]), .pattern(0..<5_000), .silence]
                    : [
                        .head(206, fields + ["Content-Length: 15000", "Content-Range: bytes 5000-19999/20000"]),
                        .pattern(5_000..<20_000),
                    ]
            }
            let crowd = proxy.crowd(3, get: "/x")
            try eventually("they have what there is") { crowd.answers.allSatisfy { $0.body.length == 5_000 } }
            for index in 0..<3 { crowd.leave(index) }
            try eventually("the origin is spared") { origin.requests("/x")[0].wasAbandoned }
            let whole = try proxy.get("/x")
            #expect(whole.status == 200 && whole.isWhole(20_000))
            #expect(origin.requests("/x").map { $0["range"] ?? "" } == ["", "bytes=5000-"])
        }
    }

    @Test func `when all clients that wait for a slot have left, the origin gets no request`() throws {
        try scenario(.whenLastLeaves("finish"), .maxConcurrentFetches(1)) { origin, proxy in
            let gate = Gate()
            origin.on("/slow") { _ in [.gate(gate), .answer(200, body: "slow")] }
            origin.on("/x") { _ in [.answer(200, "Cache-Control: max-age=60", body: "x")] }
            let slow = proxy.crowd(1, get: "/slow")
            try eventually("it has the only place") { origin.count("/slow") == 1 }
            let crowd = proxy.crowd(5, get: "/x")
            try proxy.joined(6)
            for index in 0..<5 { crowd.leave(index) }
            try eventually("the program has seen them go") { try proxy.metric(.openClients) == 1 }
            gate.open()
            #expect(slow.finished()[0].text == "slow")
            #expect(try proxy.get("/slow").text == "slow")
            #expect(origin.count("/x") == 0)
        }
    }
}
