import Glibc
import Testing

/// Several machines that share a tier act as one towards the origin and the operator.
@Suite(.scenario) struct SharedTierTests {
    // MARK: One fetch

    @Test func `a cold page that streams is fetched once for the clients of all machines`() throws {
        try SharedMachines.run { origin, machines, _ in
            let gate = Gate()
            origin.on("/x") { _ in
                [
                    .head(200, "Content-Length: 1000000", "Cache-Control: max-age=600", "ETag: \"x\""),
                    .pattern(0..<400_000), .gate(gate), .pattern(400_000..<1_000_000),
                ]
            }
            let crowds = machines.proxies.map { $0.crowd(30, get: "/x", SharedMachines.site) }
            try eventually("what is there has gone to all") {
                crowds.allSatisfy { $0.answers.allSatisfy { $0.body.length == 400_000 } }
            }
            // One that comes late to another machine gets it at once as well.
            let late = machines.proxies[2].crowd(1, get: "/x", SharedMachines.site)
            try eventually("it has what is there") { late.answers[0].body.length == 400_000 }
            gate.open()
            #expect((crowds + [late]).allSatisfy { $0.finished().allSatisfy { $0.isWhole(1_000_000) } })
            #expect(origin.count("/x") == 1)
            #expect(try machines.count("led") == 1)
            // Each has it in its own memory by now.
            for proxy in machines.proxies {
                let hit = try proxy.send("GET", "/x", [SharedMachines.site])
                #expect(hit.isWhole(1_000_000) && hit.cacheStatus.contains("hit"))
            }
            #expect(origin.count("/x") == 1)
        }
    }

    @Test func `a page that one machine has is answered by another without the origin, with its age`() throws {
        try SharedMachines.run { origin, machines, _ in
            origin.on("/x") { _ in [.answer(200, "Cache-Control: max-age=600", "Age: 100", "X-Page: 1", body: "page")] }
            #expect(try machines.texts("/x", of: 0) == ["page"])
            let answer = try machines.proxies[1].send("GET", "/x", [SharedMachines.site])
            #expect(answer.status == 200 && answer.text == "page" && answer["x-page"] == "1")
            #expect((100...110).contains(Int(answer["age"] ?? "") ?? -1), "\(answer["age"] ?? "no age")")
            #expect(origin.count("/x") == 1)
            #expect(try machines.count("hit") == 1)
        }
    }

    @Test func `a response for one client is fetched by each, at the same time`() throws {
        try SharedMachines.run { origin, machines, _ in
            let gate = Gate()
            origin.on("/x") { _ in [.gate(gate), .answer(200, "Cache-Control: private, max-age=600", body: "own")] }
            let crowds = machines.proxies.map { $0.crowd(10, get: "/x", SharedMachines.site) }
            // The first fetch tells the others.
            try eventually("one is asked") { origin.count("/x") >= 1 }
            gate.open()
            #expect(crowds.allSatisfy { $0.finished().allSatisfy { $0.text == "own" } })
            #expect(origin.count("/x") == 30)
            #expect(try machines.count("hit") == 0)
        }
    }

    @Test func `each variant is fetched once for all machines, and reaches no other clients`() throws {
        try SharedMachines.run { origin, machines, _ in
            let gate = Gate()
            origin.on("/x") { request in
                [
                    .gate(gate),
                    .answer(
                        200, "Cache-Control: max-age=600", "Vary: Accept-Language",
                        body: request["accept-language"] ?? ""),
                ]
            }
            let crowds = machines.proxies.flatMap { proxy in
                ["de", "fr", "en"].map {
                    ($0, proxy.crowd(5, get: "/x", SharedMachines.site, "Accept-Language: \($0)"))
                }
            }
            try eventually("one is asked") { origin.count("/x") == 1 }
            gate.open()
            for (language, crowd) in crowds {
                #expect(crowd.finished().allSatisfy { $0.text == language })
            }
            #expect(origin.count("/x") == 3)
        }
    }

    @Test func `a response that the origin confirms is fresh for all machines`() throws {
        try SharedMachines.run { origin, machines, _ in
            origin.on("/x") { request in
                request["if-none-match"] == "\"1\""
                    ? [.answer(304, "ETag: \"1\"", "Cache-Control: max-age=600")]
                    : [.answer(200, "ETag: \"1\"", "Cache-Control: max-age=1", body: "page")]
            }
            let before = try machines.texts("/x")
            let first = origin.count("/x")
            System.nap(.milliseconds(2_100))
            let after = try machines.texts("/x")
            #expect(before == ["page", "page", "page"] && after == before)
            #expect(origin.count("/x") == first + 1, "one machine has asked for all")
        }
    }

    // MARK: Purges

    @Test(arguments: ["http://site.test/a/b", "prefix http://site.test/a", "tag t1", "all"])
    func `what is purged on one machine is served by none`(_ line: String) throws {
        try SharedMachines.run { origin, machines, _ in
            origin.on("/a/b") { request in
                [.answer(200, "Cache-Control: max-age=600", "Cache-Tag: t1", body: "\(request.number)")]
            }
            #expect(try machines.texts("/a/b") == ["1", "1", "1"])
            let purged = try machines.proxies[0].admin.send("POST", "/purge", body: line)
            #expect(purged.status == 200)
            try eventually("the others have heard of it", within: .seconds(2)) {
                try machines.texts("/a/b", of: 1, 2).allSatisfy { $0 != "1" }
            }
            #expect(try machines.texts("/a/b").allSatisfy { $0 != "1" })
        }
    }

    @Test func `an unsafe request at one machine invalidates the page on all`() throws {
        try SharedMachines.run { origin, machines, _ in
            origin.on("/x") { request in
                request.method == "POST"
                    ? [.answer(200)] : [.answer(200, "Cache-Control: max-age=600", body: "\(request.number)")]
            }
            #expect(try machines.texts("/x") == ["1", "1", "1"])
            #expect(try machines.proxies[2].send("POST", "/x", [SharedMachines.site], body: "").status == 200)
            try eventually("the others have heard of it", within: .seconds(2)) {
                try machines.texts("/x").allSatisfy { $0 != "1" }
            }
            #expect(try machines.texts("/x").allSatisfy { $0 != "1" })
        }
    }

    @Test func `a machine that was cut off serves nothing purged once it is back`() throws {
        try SharedMachines.run { origin, machines, _ in
            origin.on("*") { request in
                [.answer(200, "Cache-Control: max-age=600", body: "\(request.number)")]
            }
            #expect(try machines.texts("/a") == ["1", "1", "1"])
            machines.proxies[2].signal(SIGSTOP)
            defer { machines.proxies[2].signal(SIGCONT) }
            #expect(
                try machines.proxies[0].admin.send("POST", "/purge", body: "prefix http://site.test/").status == 200)
            #expect(try machines.texts("/a", of: 0) == ["2"])
            machines.proxies[2].signal(SIGCONT)
            try eventually("it has heard of it", within: .seconds(2)) { try machines.texts("/a", of: 2) != ["1"] }
            for _ in 0..<5 { #expect(try machines.texts("/a", of: 2) != ["1"]) }
        }
    }

    // MARK: Failures

    @Test func `if the leader is killed, the others go on with the rest`() throws {
        try SharedMachines.run(.other(section: "shared", key: "lease", value: "1s")) { origin, machines, _ in
            let file = BreakingFile(length: 900_000)
            let gate = Gate()
            origin.on("/x") { request in
                request.number == 1
                    ? [
                        .head(200, file.fields + ["Content-Length: 900000"]), .pattern(0..<300_000), .gate(gate),
                        .silence,
                    ] : file.steps(request)
            }
            let first = machines.proxies[0].crowd(1, get: "/x", SharedMachines.site)
            try eventually("it leads") { first.answers[0].body.length == 300_000 }
            let others = machines.proxies.dropFirst().map { $0.crowd(10, get: "/x", SharedMachines.site) }
            try eventually("they follow") {
                others.allSatisfy { $0.answers.allSatisfy { $0.body.length == 300_000 } }
            }
            machines.proxies[0].signal(SIGKILL)
            #expect(others.allSatisfy { $0.finished().allSatisfy { $0.isWhole(900_000) } })
            let ranges = origin.requests("/x").dropFirst().compactMap { $0["range"] }
            #expect(ranges == ["bytes=300000-", "bytes=300000-"])
        }
    }

    @Test func `whatever the engine does, no client gets an error, and all is well again afterwards`() throws {
        try SharedMachines.run { origin, machines, engine in
            origin.on("*") { _ in [.answer(200, "Cache-Control: max-age=600", body: "page")] }
            var page = 0
            func ask(_ rounds: Int) throws -> Duration {
                var slowest = Duration.zero
                for _ in 0..<rounds {
                    page += 1
                    for proxy in machines.proxies {
                        let answer = try proxy.send("GET", "/\(page)", [SharedMachines.site])
                        #expect(answer.text == "page")
                        slowest = max(slowest, answer.took)
                    }
                }
                return slowest
            }
            _ = try ask(5)
            engine.signal(SIGSTOP)
            let stopped = try ask(20)
            #expect(stopped < .milliseconds(20) + aStall)
            engine.signal(SIGCONT)
            for proxy in machines.proxies { try SharedMachines.waitForTier(proxy) }
            let hits = try machines.count("hit")
            try eventually("the tier answers again") {
                _ = try ask(1)
                return try machines.count("hit") >= hits + 2
            }
            engine.signal(SIGKILL)
            _ = try ask(20)
        }
    }
}
