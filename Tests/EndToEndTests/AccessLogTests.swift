import Testing

@Suite(.scenario) struct AccessLogTests {
    @Test func `each request is one JSON line with its verdict, its role and the operation it led or joined`() throws {
        try scenario(.accessLog) { origin, proxy in
            let gate = Gate()
            origin.on("/x") { _ in [.gate(gate), .answer(200, "Cache-Control: max-age=60", body: "hello")] }
            let crowd = proxy.crowd(5, get: "/x?q=\"1\"", "User-Agent: test \\ \"quoted\"")
            try proxy.joined(5)
            gate.open()
            #expect(crowd.finished().allSatisfy { $0.status == 200 })
            try proxy.get("/x?q=\"1\"")
            try eventually("six lines") { try proxy.accessLog.count == 6 }

            let lines = try proxy.accessLog
            #expect(lines.allSatisfy { $0["status"]?.number == 200 && $0["bytes"]?.number == 5 })
            #expect(lines.allSatisfy { $0["method"]?.string == "GET" && $0["target"]?.string == "/x?q=\"1\"" })
            #expect(lines.count { $0["role"]?.string == "led" } == 1)
            #expect(lines.count { $0["role"]?.string == "joined" } == 4)
            #expect(lines.count { $0["verdict"]?.string == "miss" } == 5)
            #expect(lines.count { $0["verdict"]?.string == "hit" && $0["role"]?.string == "none" } == 1)
            #expect(Set(lines.compactMap { $0["operation"]?.number }).count == 1)
            #expect(lines.count { $0["user_agent"]?.string == "test \\ \"quoted\"" } == 5)
        }
    }

    @Test func `a client that leaves is logged as aborted`() throws {
        try scenario(.accessLog) { origin, proxy in
            origin.on("/x") { _ in [.head(200, "Content-Length: 100"), .text("part"), .silence] }
            let client = try proxy.connect()
            try client.send(proxy.request("GET", "/x"))
            try client.progress { $0.body.length > 0 }
            client.reset()
            try eventually("a line") { try proxy.accessLog.first?["aborted"] == .bool(true) }
        }
    }
}
