import Testing

/// Every bound answers at once with something a client understands.
@Suite(.scenario) struct OverloadTests {
    @Test func `over the limit of connections, 503 with Retry-After`() throws {
        try scenario(.maxConnections(10)) { origin, proxy in
            origin.on("/x") { _ in [.answer(200, "Cache-Control: max-age=60", body: "x")] }
            let crowd = proxy.crowd(10, get: "/x", keepsOpen: true)
            #expect(crowd.finished().allSatisfy { $0.status == 200 })
            let refused = try proxy.get("/x")
            #expect(refused.status == 503)
            #expect(refused["retry-after"] != nil)
            crowd.close()
            try eventually("there is room again") { try proxy.get("/x").status == 200 }
        }
    }

    @Test func `bodies that fill all memory do not wait for each other for ever`() throws {
        try scenario(.memory(mebibytes: 8)) { origin, proxy in
            let rest = Gate()
            for number in 0..<200 {
                origin.on("/\(number)") { _ in
                    [.head(200, "Cache-Control: no-store", "Content-Length: 400000"), .pattern(0..<70_000), .gate(rest), .pattern(70_000..<400_000)]
                }
            }
            let clients = (0..<200).map { proxy.crowd(1, get: "/\($0)") }
            try eventually("each was asked for, or refused") {
                let refused = clients.count { $0.pending == 0 }
                let asked = (0..<200).reduce(0) { $0 + origin.count("/\($1)") }
                return asked + refused >= 200
            }
            rest.open()
            for client in clients {
                let answer = client.finished(within: .seconds(20))[0]
                #expect(answer.isWhole(400_000) || answer.status == 503)
            }
        }
    }

    @Test(arguments: ["503", "stale", "pass"])
    func `over the limit of fetches that wait for their origin, 503, or what is stale`(_ whenExceeded: String) throws {
        try scenario(.maxConcurrentFetches(1), .maxQueuedFetches(1), .whenExceeded(whenExceeded)) { origin, proxy in
            let gate = Gate()
            origin.on("/stale") { _ in [.answer(200, "Cache-Control: max-age=10", "Age: 20", "ETag: \"1\"", body: "stale")] }
            origin.on("*") { _ in [.gate(gate), .answer(200, body: "in turn")] }
            try proxy.get("/stale")
            let first = proxy.crowd(1, get: "/first")
            try eventually("it is asked") { origin.count("/first") == 1 }
            let second = proxy.crowd(1, get: "/second")
            try proxy.joined(3)
            let refused = try proxy.get("/third")
            #expect(refused.status == 503 && refused["retry-after"] != nil && refused.cacheStatus.contains("detail=queue-full"))
            let other = try proxy.get("/stale")
            #expect(whenExceeded == "503" ? other.status == 503 : other.text == "stale", "\(other.status) \(other.cacheStatus)")
            #expect(other.cacheStatus.contains("detail=queue-full"))
            gate.open()
            let answers = first.finished() + second.finished()
            #expect(answers.allSatisfy { $0.text == "in turn" })
            #expect(origin.count("/third") == 0 && origin.count("/stale") == 1)
        }
    }

    struct Bound: Sendable {
        let whenExceeded: String
        let isStored: Bool
        /// What those get who find ten waiting: a stale page, a page of their own, or 503.
        let status: Int
        let body: String
        let fetches: Int
    }

    @Test(arguments: [
        Bound(whenExceeded: "503", isStored: false, status: 503, body: "", fetches: 1),
        Bound(whenExceeded: "503", isStored: true, status: 503, body: "", fetches: 2),
        Bound(whenExceeded: "stale", isStored: false, status: 503, body: "", fetches: 1),
        Bound(whenExceeded: "stale", isStored: true, status: 200, body: "old", fetches: 2),
        Bound(whenExceeded: "pass", isStored: false, status: 200, body: "own", fetches: 31),
        Bound(whenExceeded: "pass", isStored: true, status: 200, body: "own", fetches: 32),
    ])
    func `over the limit of waiters, what the operator wants`(_ bound: Bound) throws {
        try scenario(.maxWaiters(10), .whenExceeded(bound.whenExceeded)) { origin, proxy in
            let gate = Gate()
            let first = bound.isStored ? 2 : 1
            origin.on("/x") { request in
                if request.number < first { return [.answer(200, "Cache-Control: max-age=10", "Age: 20", "ETag: \"old\"", body: "old")] }
                if request.number == first { return [.gate(gate), .answer(200, "Cache-Control: max-age=0", body: "shared")] }
                return [.answer(200, "Cache-Control: max-age=0", body: "own")]
            }
            if bound.isStored { try proxy.get("/x") }
            let leader = proxy.crowd(1, get: "/x")
            try eventually("the fetch is under way") { origin.count("/x") == first }
            let crowd = proxy.crowd(39, get: "/x")
            try eventually("who finds the fetch full has an answer") { crowd.pending == 9 }
            gate.open()
            let answers = leader.finished() + crowd.finished()
            #expect(answers.count { $0.status == 200 && $0.text == "shared" } == 10)
            let others = answers.count {
                $0.status == bound.status && (bound.status == 503 ? $0["retry-after"] != nil : $0.text == bound.body)
            }
            #expect(others == 30)
            #expect(origin.count("/x") == bound.fetches)
        }
    }
}
