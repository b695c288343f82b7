import Testing

/// What an operator names in thousands costs a request no more than what he names once.
@Suite(.scenario) struct ManyEntriesTests {
    /// As many of each list as `counts` say, the one that the request is for last.
    private static func file(_ origin: String, hosts: Int, routes: Int, cookies count: Int) -> String {
        func list(_ count: Int, _ name: (Int) -> String, last: String) -> String {
            ((1..<max(1, count)).map(name) + [last]).map { "\"\($0)\"" }.joined(separator: ", ")
        }
        let cookies = list(count, { $0 % 2 == 0 ? "c\($0)" : "c\($0)_*" }, last: "session")
        let dropped = list(count, { "q\($0)" }, last: "dropped")
        let names = list(
            hosts, { $0 % 2 == 0 ? "h\($0 / 2).example" : "*.w\(($0 + 1) / 2).example" }, last: "*.last.example")
        let others = (1..<max(1, routes)).flatMap { number in
            [
                "  - {host: h\(number).example, upstream: other}",
                "  - {host: \"*.w\(number).example\", upstream: other}", "  - {path: /p\(number)/, upstream: other}",
            ]
        }
        let route = "  - {host: \"*.last.example\", path: /last, upstream: origin, key: {query: {drop: [\(dropped)]}}}"
        let trusted = (0..<max(1, hosts / 10)).map { "10.\($0 / 256).\($0 % 256).0/25" }.joined(separator: ", ")
        return """
            workers: 1
            hosts: [\(names)]
            clients: {trusted-proxies: [\(trusted)]}
            caching: {pass-cookies: [\(cookies)]}
            upstreams:
              - {name: origin, servers: ["\(origin)"]}
              - {name: other, servers: ["\(origin)"]}
            routes:
            \((others + [route]).joined(separator: "\n"))

            """
    }

    /// Processor time of so many hits, in seconds.
    private static func time(of hits: Int, on proxy: Program, _ request: String) throws -> Double {
        func used() throws -> Double {
            Program.sum("coalesced_process_cpu_seconds_total", in: try proxy.admin.get("/metrics").wholeText)
        }
        let client = try proxy.connect()
        try client.send(request)
        let first = try client.answer()
        guard first.cacheStatus.contains("; hit") else {
            throw Late(what: "a hit: \(first.cacheStatus)", place: "time")
        }
        let batch = Array(String(repeating: request, count: 100).utf8)
        let before = try used()
        for _ in 0..<hits / 100 {
            try client.send(batch)
            for _ in 0..<100 { _ = try client.answer() }
        }
        return try used() - before
    }

    @Test func `a hit costs the same with ten thousand hosts and six thousand routes as with one`() throws {
        let origin = try ScriptedOrigin()
        defer { origin.stop() }
        origin.on("/last/x") { _ in [.answer(200, "Cache-Control: max-age=600", body: "x")] }
        let one = try Program.serve(file: Self.file(origin.url, hosts: 1, routes: 1, cookies: 1))
        defer { one.stop() }
        let many = try Program.serve(file: Self.file(origin.url, hosts: 10_000, routes: 2_000, cookies: 2_000))
        defer { many.stop() }
        let request = one.request("GET", "/last/x?a=1&dropped=2", ["Host: www.last.example", "Cookie: a=1; b=2"])
        var times: [(one: Double, many: Double)] = []
        for proxy in [one, many] { try proxy.get("/last/x?dropped=3&a=1", "Host: www.last.example") }
        // The quickest of some, since others use the machine too.
        for _ in 0..<3 {
            times.append((try Self.time(of: 2_000, on: one, request), try Self.time(of: 2_000, on: many, request)))
        }
        let (few, all) = (times.map(\.one).min() ?? 0, times.map(\.many).min() ?? 0)
        note("a hit with one of each and with thousands, in µs", "\(few * 500), \(all * 500)")
        #expect(all < 3 * few)
        #expect(origin.total == 2)
    }
}
