import Testing

/// The origin takes longer than clients wait for the fetch of another: they give up together, and fetch together. The
/// number of fetches follows from the time that passes, never from the number of clients.
@Suite(.scenario) struct SlowOriginTests {
    @Test func `waiters that give up together share the next fetch`() throws {
        try scenario(.workers(2), .waitTimeout(.seconds(2)), .whenExceeded("pass")) { origin, proxy in
            let (first, second) = (Gate(), Gate())
            origin.on("/x") { request in
                [
                    .gate(request.number == 1 ? first : second),
                    .answer(200, "Cache-Control: max-age=60", body: "\(request.number)"),
                ]
            }
            let leader = proxy.crowd(1, get: "/x")
            try eventually("it leads") { origin.count("/x") == 1 }
            let crowd = proxy.crowd(149, get: "/x")
            // Each of them twice.
            try proxy.joined(1 + 149 + 149)
            #expect(origin.count("/x") == 2)
            #expect(leader.pending == 1 && crowd.pending == 149)

            second.open()
            #expect(crowd.finished().allSatisfy { $0.isClean && $0.status == 200 && $0.text == "2" })
            first.open()
            #expect(leader.finished().allSatisfy { $0.isClean && $0.text == "1" })
            #expect(origin.count("/x") == 2)
            #expect(try proxy.metric(.requests) == 150)
            #expect(try proxy.metric(.alone) == 0)
            #expect(try proxy.metric(.overtaken) == 1)
        }
    }

    @Test func `the number of fetches follows from the time, also when fetches are overtaken`() throws {
        let pause = Duration.milliseconds(300)
        try scenario(
            .workers(2), .waitTimeout(.milliseconds(900)), .overtakeAfter(pause), .whenExceeded("pass"),
            .firstByteTimeout(.seconds(30))
        ) { origin, proxy in
            let gate = Gate()
            origin.on("/x") { _ in [.gate(gate), .answer(200, "Cache-Control: max-age=60", body: "x")] }
            let begin = Instant.now
            let crowds = try (1...17).map { round in
                let crowd = proxy.crowd(10, get: "/x")
                try proxy.joined(10 * round)
                return crowd
            }
            // All but those who lead have given up once.
            try eventually("they wait again") {
                try proxy.metric(.joined) + 2 * proxy.metric(.led) >= 2 * 170
            }
            let most = Int((Instant.now - begin) / pause) + 1
            note("fetches for 170 clients, of at most \(most)", origin.count("/x"))
            #expect(origin.count("/x") <= most)
            gate.open()
            #expect(crowds.flatMap { $0.finished() }.allSatisfy { $0.isClean && $0.text == "x" })
            #expect(try proxy.metric(.requests) == 170)
        }
    }

    @Test(.clientsInTheClear("150 handshakes take longer than the wait"))
    func `a second wait lasts as long as the fetch, and its waiters share the failure`() throws {
        try scenario(
            .workers(2), .waitTimeout(.milliseconds(300)), .whenExceeded("pass"), .firstByteTimeout(.seconds(2))
        ) { origin, proxy in
            origin.on("/mute") { _ in [.silence] }
            let answers = proxy.crowd(150, get: "/mute").finished()
            #expect(answers.allSatisfy { $0.isClean && $0.status == 504 && $0.took < .milliseconds(2300) + aStall })
            let requests = try proxy.metric(.requests)
            #expect(origin.count("/mute") == 2 && requests == 150)
        }
    }

    /// Those of other variants are released when the head says so, and share the fetch of their own.
    @Test func `waiters of several variants without leader fetch once, and then once for each variant`() throws {
        try scenario(.workers(2), .waitTimeout(.seconds(2)), .whenExceeded("pass")) { origin, proxy in
            let second = Gate()
            origin.on("/x") { request in
                [
                    request.number == 1 ? .silence : .gate(second),
                    .answer(
                        200, "Cache-Control: max-age=60", "Vary: Accept-Language",
                        body: request["accept-language"] ?? "none"),
                ]
            }
            let leader = proxy.crowd(1, get: "/x")
            try eventually("it leads") { origin.count("/x") == 1 }
            leader.leave(0)
            let crowds = ["en", "de", "fr"].map { ($0, proxy.crowd(50, get: "/x", "Accept-Language: \($0)")) }
            try proxy.joined(1 + 150 + 150)
            #expect(origin.count("/x") == 2)
            second.open()
            for (language, crowd) in crowds {
                #expect(crowd.finished().allSatisfy { $0.isClean && $0.text == language })
            }
            #expect(origin.count("/x") == 4)
        }
    }

    /// Another fetch would only stand further back in the line for a slot.
    @Test func `a waiter whose wait for a slot is over causes no other fetch`() throws {
        try scenario(
            .workers(2), .waitTimeout(.milliseconds(500)), .whenExceeded("pass"), .maxConcurrentFetches(1),
            .firstByteTimeout(.seconds(30))
        ) { origin, proxy in
            let gate = Gate()
            origin.on("/slow") { _ in [.gate(gate), .answer(200, body: "slow")] }
            let slow = proxy.crowd(1, get: "/slow")
            try eventually("it has the slot") { origin.count("/slow") == 1 }
            let answers = proxy.crowd(150, get: "/x").finished()
            #expect(
                answers.allSatisfy {
                    $0.isClean && $0.status == 503 && $0["retry-after"] != nil
                        && $0.cacheStatus.contains("detail=wait-timeout")
                })
            #expect(try proxy.metric(.alone) == 0)
            #expect(origin.count("/x") == 0)
            gate.open()
            #expect(slow.finished()[0].text == "slow")
        }
    }

    @Test func `a response stored meanwhile serves the next request, whatever requests still wait`() throws {
        try scenario(.workers(2), .waitTimeout(.seconds(2)), .whenExceeded("pass")) { origin, proxy in
            let (first, second) = (Gate(), Gate())
            origin.on("/x") { request in
                [
                    .gate(request.number == 1 ? first : second),
                    .answer(200, "Cache-Control: max-age=60", body: "\(request.number)"),
                ]
            }
            let leader = proxy.crowd(1, get: "/x")
            try eventually("it leads") { origin.count("/x") == 1 }
            let crowd = proxy.crowd(20, get: "/x")
            try proxy.joined(1 + 20 + 20)
            first.open()
            #expect(leader.finished()[0].text == "1")
            try eventually("it is stored") { try proxy.metric(.inFlight) == 1 }
            #expect(try proxy.send("GET", "/x").text == "1")
            second.open()
            #expect(crowd.finished().allSatisfy { $0.text == "2" })
            #expect(origin.count("/x") == 2)
        }
    }
}
