import Testing

/// The rules for what may be shared hold in a tier too: whichever key a route has, whatever it tells clients.
@Suite(.scenario) struct SharedTierRuleTests {
    private static let site = SharedMachines.site

    /// Waits until the purges made so far are in the log, and each machine has read it since.
    private func settle(_ machines: SharedMachines) throws {
        try eventually("the purges are written") {
            try machines.proxies.allSatisfy { try $0.status()["shared"]?["pending_purges"]?.number == 0 }
        }
    }

    @Test func `a purge of a URL reaches the response of a route that sorts queries`() throws {
        try SharedMachines.run(.other(section: "route", key: "key", value: "{sort-query: true}")) {
            origin, machines, _ in
            origin.on("*") { request in [.answer(200, "Cache-Control: max-age=600", body: "\(request.number)")] }
            #expect(try machines.texts("/q?b=1&a=2", of: 0) == ["1"])
            let purged = try machines.proxies[0].admin.send("POST", "/purge", body: "http://site.test/q?b=1&a=2")
            #expect(purged.status == 200)
            try settle(machines)
            #expect(try machines.texts("/q?b=1&a=2").allSatisfy { $0 != "1" })
        }
    }

    @Test func `a response that answers several URLs is purged by its own`() throws {
        try SharedMachines.run { origin, machines, _ in
            origin.on("*") { request in
                [
                    .answer(
                        200, "Cache-Control: max-age=600", "No-Vary-Search: params=(\"utm\")", body: "\(request.number)"
                    )
                ]
            }
            _ = try machines.texts("/p?first", of: 0)
            let before = try machines.texts("/p?b=2", of: 0)
            let purged = try machines.proxies[0].admin.send("POST", "/purge", body: "http://site.test/p?b=2")
            #expect(purged.status == 200)
            try settle(machines)
            #expect(try machines.texts("/p?b=2", of: 0, 1, 2).allSatisfy { $0 != before[0] })
        }
    }

    @Test func `rules for queries that each machine has learnt by itself mix no responses up`() throws {
        try SharedMachines.run { origin, machines, _ in
            origin.on("/p?first") { _ in
                [.answer(200, "Cache-Control: max-age=600", "No-Vary-Search: params=(\"utm\")", body: "first")]
            }
            origin.on("*") { request in [.answer(200, "Cache-Control: max-age=600", body: request.target)] }
            for machine in 0...1 { _ = try machines.texts("/p?first&\(machine)", of: machine) }
            #expect(try machines.texts("/p?z=1&utm=A", of: 0) == ["/p?z=1&utm=A"])
            #expect(try machines.texts("/p?z=1&utm=B", of: 1) == ["/p?z=1&utm=B"])
        }
    }

    @Test(.clientsInTheClear("the reference is a URL of http"))
    func `a stale response that only the tier has names the host that clients ask`() throws {
        try SharedMachines.run(.other(section: "route", key: "rewrite-location", value: "on")) { origin, machines, _ in
            let own = "Content-Location: \(origin.url)/y"
            origin.on("/x") { request in
                request.number == 1
                    ? [.answer(200, "Cache-Control: max-age=1, stale-if-error=60", own, body: "old")] : [.answer(503)]
            }
            _ = try machines.texts("/x", of: 0)
            System.nap(.milliseconds(2_100))
            let answer = try machines.proxies[1].send("GET", "/x", [Self.site])
            #expect(answer.text == "old" && answer["content-location"] == "http://site.test/y")
        }
    }

    @Test func `a tag that clients are not told purges a confirmed response too`() throws {
        try SharedMachines.run(.other(section: "route", key: "response-headers", value: "{remove: [Cache-Tag]}")) {
            origin, machines, _ in
            origin.on("/x") { request in
                request["if-none-match"] == "\"1\""
                    ? [.answer(304, "ETag: \"1\"", "Cache-Control: max-age=600", "Cache-Tag: blue")]
                    : [.answer(200, "ETag: \"1\"", "Cache-Control: max-age=1", "Cache-Tag: blue", body: "page")]
            }
            _ = try machines.texts("/x", of: 0)
            System.nap(.milliseconds(2_100))
            _ = try machines.texts("/x", of: 0)
            let asked = origin.count("/x")
            let purged = try machines.proxies[0].admin.send("POST", "/purge", body: "tag blue")
            #expect(purged.status == 200)
            try settle(machines)
            _ = try machines.texts("/x", of: 0, 1)
            #expect(origin.count("/x") > asked, "the purged response is not served")
        }
    }

    @Test func `an origin that hangs is not waited for by one machine after another`() throws {
        try SharedMachines.run(.firstByteTimeout(.seconds(4))) { origin, machines, _ in
            origin.on("/x") { _ in [.silence] }
            let crowds = machines.proxies.map { $0.crowd(1, get: "/x", Self.site) }
            let answers = crowds.flatMap { $0.finished() }
            #expect(answers.allSatisfy { $0.status == 504 })
            // The first time limit, and one for all others at once.
            #expect(answers.allSatisfy { $0.took < .seconds(11) })
        }
    }
}
