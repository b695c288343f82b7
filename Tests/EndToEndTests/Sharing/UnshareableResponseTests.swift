import Testing

/// 100 clients, a response that is for one of them only.
@Suite(.scenario) struct UnshareableResponseTests {
    @Test func `a hundred clients of a private page get a response each, fetched at the same time`() throws {
        try scenario { origin, proxy in
            origin.on("/me") { request in
                [.wait(.milliseconds(300)), .answer(200, "Cache-Control: private", body: "response \(request.number)")]
            }
            let first = try proxy.crowd(100, get: "/me").gathered().finished()
            #expect(Set(first.map(\.text)).count == 100)
            #expect(first.allSatisfy { $0.status == 200 && $0.isClean })
            #expect(origin.count("/me") == 100)
            let slowest = first.map(\.took).max()!
            note("100 clients of a private page, origin 300 ms (promised 750 ms)", slowest.rounded)
            #expect(slowest < .milliseconds(750) + aStall)

            let next = proxy.crowd(100, get: "/me").finished()
            #expect(Set(next.map(\.text)).count == 100)
            let slowestNext = next.map(\.took).max()!
            note("the next burst (promised 450 ms)", slowestNext.rounded)
            #expect(slowestNext < .milliseconds(450) + aStall)
        }
    }

    @Test func `waiters for an unshareable response are released together, and the next burst never waits`() throws {
        try scenario { origin, proxy in
            let leader = Gate(), others = Gate(), burst = Gate()
            origin.on("/me") { request in
                let gate = request.number == 1 ? leader : request.number <= 50 ? others : burst
                return [.gate(gate), .answer(200, "Cache-Control: private", body: "response \(request.number)")]
            }
            let crowd = proxy.crowd(50, get: "/me")
            try proxy.joined(50)
            try eventually("the leader has asked") { origin.count("/me") == 1 }
            leader.open()
            // Nobody has been answered but the leader: the 49 are all at the origin at once.
            try eventually("all the others fetch for themselves") { origin.count("/me") == 50 }
            #expect(try proxy.metric(.released) == 49)
            others.open()
            #expect(Set(crowd.finished().map(\.text)).count == 50)

            let next = proxy.crowd(50, get: "/me")
            try eventually("the next burst is at the origin before any answer") { origin.count("/me") == 100 }
            burst.open()
            #expect(Set(next.finished().map(\.text)).count == 50)
        }
    }

    /// What comes without the field says nothing of what comes with it; and HEAD nothing of GET.
    @Test(arguments: ["HEAD", "GET"])
    func `requests with Authorization stay parallel after a response to one without`(_ method: String) throws {
        try scenario { origin, proxy in
            let burst = Gate()
            origin.on("/me") { request in
                guard request["authorization"] != nil else {
                    // Stored, and stale at once; or told to whoever comes while it arrives.
                    return [
                        .answer(
                            200, "Cache-Control: max-age=60", "ETag: \"a\"", "Age: \(method == "GET" ? 60 : 0)",
                            body: "for all")
                    ]
                }
                return (request.number == 1 ? [] : [.gate(burst)]) + [.answer(200, "ETag: \"a\"", body: "own")]
            }
            try proxy.get("/me", "Authorization: Basic eA==")
            try proxy.send(method, "/me")
            let crowd = proxy.crowd(5, get: "/me", "Authorization: Basic eA==")
            try eventually("all are at the origin before any answer") { origin.count("/me") == 7 }
            burst.open()
            #expect(crowd.finished().allSatisfy { $0.text == "own" })
        }
    }

    @Test func `an unrequested 206 serves one client, and the next clients do not wait for one another`() throws {
        try scenario { origin, proxy in
            let leader = Gate(), others = Gate(), burst = Gate()
            origin.on("/pages") { request in
                let gate = request.number == 1 ? leader : request.number <= 20 ? others : burst
                return [
                    .gate(gate),
                    .answer(
                        206, "Cache-Control: max-age=60", "Content-Range: 0-9/100", body: "response \(request.number)"),
                ]
            }
            let crowd = proxy.crowd(20, get: "/pages")
            try proxy.joined(20)
            leader.open()
            try eventually("all the others fetch for themselves") { origin.count("/pages") == 20 }
            others.open()
            let answers = crowd.finished()
            #expect(
                Set(answers.map(\.text)).count == 20
                    && answers.allSatisfy { $0.status == 206 && $0["content-range"] == "0-9/100" })

            let next = proxy.crowd(20, get: "/pages")
            try eventually("the next burst is at the origin before any answer") { origin.count("/pages") == 40 }
            burst.open()
            #expect(Set(next.finished().map(\.text)).count == 20)
        }
    }

    @Test func `the origin's limit applies to released waiters`() throws {
        try scenario(.maxConcurrentFetches(5)) { origin, proxy in
            let leader = Gate(), others = Gate()
            origin.on("/me") { request in
                [.gate(request.number == 1 ? leader : others), .answer(200, "Cache-Control: private", body: "mine")]
            }
            let crowd = proxy.crowd(20, get: "/me")
            try proxy.joined(20)
            leader.open()
            try eventually("five are fetched") { origin.count("/me") == 6 }
            try stays("only five are fetched", for: .milliseconds(100)) { origin.count("/me") == 6 }
            others.open()
            #expect(crowd.finished().allSatisfy { $0.status == 200 })
            #expect(origin.count("/me") == 20)
        }
    }

    @Test func `a shareable response makes the key shareable again`() throws {
        try scenario { origin, proxy in
            let gate = Gate()
            origin.on("/turn") { request in
                request.number == 1
                    ? [.answer(200, "Cache-Control: private", body: "private")]
                    : [.gate(gate), .answer(200, "Cache-Control: max-age=60", body: "public")]
            }
            try proxy.get("/turn")
            gate.open()
            #expect(try proxy.get("/turn").text == "public")
            let before = origin.count("/turn")
            #expect(proxy.crowd(20, get: "/turn").finished().allSatisfy { $0.text == "public" })
            #expect(origin.count("/turn") <= before + 1)
        }
    }

    /// A request larger than the origin takes, from a client that asks too often, …
    @Test(arguments: [(400, 1), (431, 1), (429, 1), (403, 10)])
    func `an error about one request does not keep others from sharing`(status: Int, fetches: Int) throws {
        try scenario { origin, proxy in
            let gate = Gate()
            origin.on("/x") { request in
                request["x-wrong"] == nil
                    ? [.gate(gate), .answer(200, "Cache-Control: max-age=60", body: "x")] : [.answer(status)]
            }
            #expect(try proxy.get("/x", "X-Wrong: 1").status == status)
            let crowd = proxy.crowd(10, get: "/x")
            try proxy.joined(11)
            gate.open()
            #expect(crowd.finished().allSatisfy { $0.text == "x" })
            #expect(origin.count("/x") == 1 + fetches)
        }
    }

    @Test func `an error that all clients get is fetched at the same time from the second burst on`() throws {
        try scenario { origin, proxy in
            let first = Gate(), second = Gate()
            origin.on("/x") { request in [.gate(request["x-second"] == nil ? first : second), .answer(429)] }
            let crowd = proxy.crowd(10, get: "/x")
            try proxy.joined(10)
            first.open()
            #expect(crowd.finished().allSatisfy { $0.status == 429 })
            let before = origin.count("/x")
            let next = proxy.crowd(10, get: "/x", "X-Second: 1")
            try eventually("all are on their way") { origin.count("/x") == before + 10 }
            second.open()
            #expect(next.finished().allSatisfy { $0.status == 429 })
        }
    }

    @Test func `responses to Authorization do not keep requests without it from sharing`() throws {
        try scenario { origin, proxy in
            let gate = Gate()
            origin.on("/x") { request in
                request["authorization"] != nil
                    ? [.answer(200, "Cache-Control: max-age=60", body: "own")]
                    : [.gate(gate), .answer(200, "Cache-Control: max-age=60", body: "everybody's")]
            }
            #expect(try proxy.get("/x", "Authorization: Bearer 1").text == "own")
            let crowd = proxy.crowd(20, get: "/x")
            try proxy.joined(21)
            gate.open()
            #expect(crowd.finished().allSatisfy { $0.text == "everybody's" })
            #expect(origin.count("/x") == 2)
        }
    }

    @Test func `requests released twice are fetched alone and at the same time`() throws {
        try scenario(.unshareableTTL(.zero)) { origin, proxy in
            let first = Gate(), second = Gate(), others = Gate()
            origin.on("/me") { request in
                let gate = request.number == 1 ? first : request.number == 2 ? second : others
                return [.gate(gate), .answer(200, "Cache-Control: private", body: "response \(request.number)")]
            }
            let crowd = proxy.crowd(10, get: "/me")
            try proxy.joined(10)
            first.open()
            try eventually("one of the others asks, as nothing was remembered") { origin.count("/me") == 2 }
            try eventually("they wait for it") { try proxy.metric(.joined) == 9 + 8 }
            second.open()
            try eventually("nobody waits a third time") { origin.count("/me") == 10 }
            others.open()
            #expect(Set(crowd.finished().map(\.text)).count == 10)
        }
    }
}
