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

    @Test func `over the limit of waiters, as the operator wants`() throws {
        try scenario(.maxWaiters(10), .whenExceeded("503")) { origin, proxy in
            let gate = Gate()
            origin.on("/x") { _ in [.gate(gate), .answer(200, "Cache-Control: max-age=60", body: "x")] }
            let crowd = proxy.crowd(40, get: "/x")
            try eventually("the rest is refused") { crowd.pending <= 11 }
            gate.open()
            let answers = crowd.finished()
            #expect(answers.count { $0.status == 200 } >= 10)
            #expect(answers.count { $0.status == 503 && $0["retry-after"] != nil } >= 29)
            #expect(origin.count("/x") == 1)
        }
    }
}
