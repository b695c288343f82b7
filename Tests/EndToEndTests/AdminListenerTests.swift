import Testing

@Suite(.scenario) struct AdminListenerTests {
    @Test func `it is healthy and ready`() throws {
        try scenario { _, proxy in
            for (page, status) in [("/healthz", 200), ("/readyz", 200), ("/nothing", 404)] {
                let answer = try proxy.admin.get(page)
                #expect(answer.status == status, "\(page)")
            }
        }
    }

    @Test func `every metric has the prefix, a help line, a type and a number`() throws {
        try scenario { origin, proxy in
            origin.on("/x") { _ in [.answer(200, body: "x")] }
            try proxy.get("/x")
            let page = try proxy.admin.get("/metrics")
            #expect(page.status == 200 && page["content-type"]?.hasPrefix("text/plain") ?? false)
            for line in try page.wholeText.split(separator: "\n") {
                #expect(line.contains(#/^(# (HELP|TYPE) coalesced_[a-z0-9_]+ |coalesced_[a-z0-9_]+(\{[^}]*\})? (-?[0-9.eE+-]+|NaN|\+Inf)$)/#), "\(line)")
            }
            #expect(try proxy.metric(.fetches) == 1)
        }
    }

    @Test func `the counters tell led, joined and joined late`() throws {
        try scenario { origin, proxy in
            let head = Gate(), rest = Gate()
            origin.on("/x") { _ in
                [.gate(head), .head(200, "Cache-Control: max-age=60", "Content-Length: 4"), .text("ab"), .gate(rest), .text("cd")]
            }
            let early = proxy.crowd(10, get: "/x")
            try proxy.joined(10)
            #expect(try proxy.metric(.led) == 1)
            #expect(try proxy.metric(.joined) == 9)
            head.open()
            try eventually("the first half is there") { early.answers.allSatisfy { $0.body.length == 2 } }
            let late = proxy.crowd(5, get: "/x")
            try proxy.joined(15)
            #expect(try proxy.metric(.joinedLate) == 5)
            rest.open()
            #expect((early.finished() + late.finished()).allSatisfy { $0.text == "abcd" })
        }
    }

    @Test func `the status is JSON, and the command prints one too`() throws {
        try scenario { _, proxy in
            guard case .object(let members) = try proxy.status() else { throw Late(what: "an object", place: "status") }
            #expect(!members.isEmpty)
            let run = try proxy.command("status")
            #expect(run.exit == .code(0) && !run.output.isEmpty)
        }
    }

    @Test func `its pages are not on the public listener`() throws {
        try scenario { origin, proxy in
            origin.on("*") { _ in [.answer(200, body: "from the origin")] }
            for path in ["/healthz", "/readyz", "/metrics", "/status"] {
                let answer = try proxy.get(path)
                #expect(answer.text == "from the origin", "\(path)")
            }
        }
    }

    @Test func `it can listen on a port`() throws {
        let program = try Program.serve(upstream: "http://127.0.0.1:9", arguments: ["--admin", "127.0.0.1:0"], listeners: 2)
        defer { program.stop() }
        let healthy = try program.ports.filter { try Address(endpoint: .tcp($0)).get("/readyz").status == 200 }
        #expect(healthy.count == 1)
    }
}
