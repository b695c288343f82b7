import Glibc
import Testing

/// What the operator sees of the tier that machines share.
@Suite(.scenario) struct SharedTierStatusTests {
    /// One program with one worker, whose engine is there.
    private func machine(body: (ScriptedOrigin, Program, RedisEngine) throws -> Void) throws {
        let (origin, engine) = (try ScriptedOrigin(), try RedisEngine())
        defer { origin.stop() }
        origin.on("*") { _ in [.answer(200, "Cache-Control: max-age=600", body: "page")] }
        let proxy = try Program.serve(
            servers: [origin.url],
            [.workers(1), .other(section: "shared", key: "engine", value: engine.url)])
        defer { proxy.stop() }
        try eventually("the tier is in use") {
            try node(proxy) == "ready 2 of 2, 0 open" && proxy.status()["shared"]?["knows_purges"] == .bool(true)
        }
        try body(origin, proxy, engine)
    }

    /// The only server of the engine.
    private func node(_ proxy: Program) throws -> String {
        let node = try proxy.status()["shared"]?["nodes"]?.elements.first
        func number(_ name: String) -> Int { Int(node?[name]?.number ?? -1) }
        return "\(node?["state"]?.string ?? "-") \(number("connections")) of \(number("wanted")), "
            + "\(number("breakers_open")) open"
    }

    private func lines(_ proxy: Program, _ text: String) -> Int {
        proxy.diagnostics.split(separator: "\n").count { $0.contains("shared tier") && $0.contains(text) }
    }

    @Test func `status, top and the metrics tell of the tier`() throws {
        try machine { _, proxy, engine in
            try proxy.get("/1")
            try proxy.get("/2")
            try proxy.purge("http://site.test/3")
            try eventually("both are written, and the purge is read") {
                let page = try proxy.admin.get("/metrics").wholeText
                return Program.sum("coalesced_shared_fetches_total{event=\"written\"}", in: page) == 2
                    && Program.sum("coalesced_shared_purges_known", in: page) >= 2
            }
            let page = try proxy.admin.get("/metrics").wholeText
            func sum(_ name: String) -> Double { Program.sum("coalesced_shared_\(name)", in: page) }
            let node = "node=\"\(engine.url)\""
            #expect(sum("connections{\(node)}") == 2 && sum("connections_wanted{\(node)}") == 2)
            #expect(sum("breakers_open{\(node)}") == 0 && sum("knows_purges") == 1 && sum("purges_pending") == 0)
            #expect(page.contains("coalesced_shared_purge_lag_seconds") && sum("purge_lag_seconds") < 3)
            #expect(sum("fetches_total{event=\"led\"}") == 2 && sum("bytes_total{direction=\"written\"}") == 8)
            #expect(sum("reply_seconds_count") >= 2)

            let status = try JSON(proxy.command("status").output)["shared"]
            #expect(Int(status?["known_purges"]?.number ?? 0) >= 2 && status?["pending_purges"]?.number == 0)
            #expect(Int(status?["purge_lag_seconds"]?.number ?? 9) < 3)
            let top = try proxy.command("top", "--once").output
            #expect(top.contains("\nshared    ready; per s: hit 0"), "\(top)")
        }
    }

    @Test func `the breaker and the connections are told of, once for each change`() throws {
        try machine { _, proxy, engine in
            engine.signal(SIGSTOP)
            for page in 1...20 { try proxy.get("/\(page)") }
            #expect(lines(proxy, "does not answer in time") == 1, "\(proxy.diagnostics)")
            #expect(try node(proxy).hasSuffix("1 open"))
            let page = try proxy.admin.get("/metrics").wholeText
            #expect(Program.sum("coalesced_shared_breakers_open", in: page) == 1)
            engine.signal(SIGCONT)
            try eventually("all is well again", within: .seconds(10)) { try node(proxy) == "ready 2 of 2, 0 open" }
            #expect(lines(proxy, "answers again") == 1)

            engine.signal(SIGKILL)
            try eventually("it is missing") { try node(proxy).hasPrefix("unreachable 0 of 2") }
            for page in 21...40 { try proxy.get("/\(page)") }
            let reason = try proxy.status()["shared"]?["nodes"]?.elements.first?["reason"]?.string
            #expect(reason?.isEmpty == false)
            // The engine that stopped for long may have cost a connection too.
            #expect((1...2).contains(lines(proxy, "no connection to unix:")), "\(proxy.diagnostics)")
        }
    }

    @Test func `what the engine refuses is told of in its words`() throws {
        try machine { _, proxy, engine in
            try engine.command(["ACL", "SETUSER", "default", "-xadd"])
            // On a busy machine an answer of the engine may come too late, and nothing is written for that page.
            var pages = 0
            func get() throws {
                pages += 1
                try proxy.get("/\(pages)")
            }
            try eventually("it is told of") {
                try get()
                return lines(proxy, "NOPERM") >= 1
            }
            for _ in 1...40 { try get() }
            #expect(lines(proxy, "NOPERM") <= 10, "\(proxy.diagnostics)")
        }
    }
}
