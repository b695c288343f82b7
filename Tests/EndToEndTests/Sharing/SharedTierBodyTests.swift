import Glibc
import Testing

/// Bodies that are large, that are not sent whole, and those of stale responses, in a tier that several machines share.
@Suite(.scenario) struct SharedTierBodyTests {
    private static let site = SharedMachines.site

    @Test(arguments: [true, false])
    func `a body above max-object is fetched once if machines say where they are, else once by each`(advertises: Bool)
        throws
    {
        let small = Setting.other(section: "shared", key: "max-object", value: "256KiB")
        try SharedMachines.run(small, advertises: advertises) { origin, machines, _ in
            let gate = Gate()
            origin.on("/x") { _ in
                [
                    .head(200, "Content-Length: 1000000", "Cache-Control: max-age=600", "ETag: \"x\""),
                    .pattern(0..<400_000), .gate(gate), .pattern(400_000..<1_000_000),
                ]
            }
            let crowds = machines.proxies.map { $0.crowd(10, get: "/x", Self.site) }
            try eventually("what is there has gone to all") {
                crowds.allSatisfy { $0.answers.allSatisfy { $0.body.length == 400_000 } }
            }
            gate.open()
            #expect(crowds.allSatisfy { $0.finished().allSatisfy { $0.isWhole(1_000_000) } })
            #expect(origin.count("/x") == (advertises ? 1 : 3))
        }
    }

    @Test func `a machine that no longer fetches is not asked for a large body`() throws {
        let small = Setting.other(section: "shared", key: "max-object", value: "256KiB")
        try SharedMachines.run(small, advertises: true) { origin, machines, _ in
            let gate = Gate()
            origin.on("/x") { request in
                [
                    .head(200, "Content-Length: 1000000", "Cache-Control: max-age=600", "ETag: \"x\""),
                    .pattern(0..<400_000), .gate(gate), .pattern(400_000..<1_000_000),
                ]
            }
            let first = machines.proxies[0].crowd(1, get: "/x", Self.site)
            try eventually("it leads") { first.answers[0].body.length == 400_000 }
            machines.proxies[0].signal(SIGKILL)
            gate.open()
            let others = machines.proxies.dropFirst().map { $0.crowd(5, get: "/x", Self.site) }
            #expect(others.allSatisfy { $0.finished().allSatisfy { $0.isWhole(1_000_000) } })
        }
    }

    @Test(arguments: ["Content-Type: text/", "Content-Encoding: x-"])
    func `a body that the other machine fetches anew does not come under the former head`(field: String) throws {
        let small = Setting.other(section: "shared", key: "max-object", value: "256KiB")
        let lease = Setting.other(section: "shared", key: "lease", value: "30s")
        try SharedMachines.run(small, lease, advertises: true, isRelayed: true) { origin, machines, engine in
            let gate = Gate()
            origin.on("/x") { request in
                request.number == 1
                    ? [
                        .head(200, "Content-Length: 1000000", "Cache-Control: max-age=600", "\(field)old"),
                        .pattern(0..<400_000), .gate(gate), .pattern(400_000..<1_000_000),
                    ] : [.answer(200, "Cache-Control: max-age=600", "\(field)new", pattern: 1_000_000)]
            }
            let first = machines.proxies[0].crowd(1, get: "/x", Self.site)
            try eventually("it leads, and says so") {
                try first.answers[0].body.length == 400_000 && !engine.names("b:").isEmpty
            }
            // The other machines do not hear of the purge, and still ask this one.
            machines.relays[0].stall()
            #expect(try machines.proxies[0].admin.send("POST", "/purge", body: "http://site.test/x").status == 200)
            let answer = try machines.proxies[1].send("GET", "/x", [Self.site])
            #expect(answer.isWhole(1_000_000))
            let name = field.split(separator: ":")[0].lowercased()
            #expect(answer[name]?.hasSuffix("new") == true, "\(answer[name] ?? "none")")
            gate.open()
            #expect(first.finished()[0].isWhole(1_000_000))
        }
    }

    @Test func `a request that claims to come from another machine is refused`() throws {
        try SharedMachines.run(advertises: true) { origin, machines, _ in
            origin.on("/x") { _ in [.answer(200, "Cache-Control: max-age=600", body: "page")] }
            let answer = try machines.proxies[0].send(
                "GET", "/x", [Self.site, "CDN-Loop: coalesced-shared; fetch=AAAAAAAAAAAAAAAAAAAAAA1"])
            #expect(answer.status == 421 && origin.count("/x") == 0)
        }
    }

    @Test func `a body that turns out larger than max-object reaches all who follow, and is not kept`() throws {
        let small = Setting.other(section: "shared", key: "max-object", value: "256KiB")
        try SharedMachines.run(small) { origin, machines, _ in
            let gate = Gate()
            origin.on("/x") { _ in
                [
                    .head(200, "Transfer-Encoding: chunked", "Cache-Control: max-age=600"),
                    .chunk(pattern: 0..<100_000), .gate(gate), .chunk(pattern: 100_000..<1_000_000), .lastChunk(),
                ]
            }
            let crowds = machines.proxies.map { $0.crowd(5, get: "/x", Self.site) }
            try eventually("what is there has gone to all") {
                crowds.allSatisfy { $0.answers.allSatisfy { $0.body.length == 100_000 } }
            }
            gate.open()
            #expect(crowds.allSatisfy { $0.finished().allSatisfy { $0.isWhole(1_000_000) } })
            #expect(origin.count("/x") == 1)
        }
    }

    // MARK: Stale responses

    @Test func `a stale response that only the tier has is served while one machine refreshes it`() throws {
        try SharedMachines.run { origin, machines, _ in
            let gate = Gate()
            origin.on("/x") { request in
                request.number == 1
                    ? [.answer(200, "Cache-Control: max-age=1, stale-while-revalidate=60", body: "old")]
                    : [.gate(gate), .answer(200, "Cache-Control: max-age=600", body: "new")]
            }
            #expect(try machines.texts("/x", of: 0) == ["old"])
            System.nap(.milliseconds(2_100))
            // Neither has asked for it before.
            #expect(try machines.texts("/x", of: 1, 2) == ["old", "old"])
            try eventually("it is refreshed") { origin.count("/x") == 2 }
            gate.open()
            try eventually("all have the new one") { try machines.texts("/x") == ["new", "new", "new"] }
            #expect(origin.count("/x") == 2)
        }
    }

    @Test func `a stale response that only the tier has is served if the origin fails`() throws {
        try SharedMachines.run { origin, machines, _ in
            origin.on("/x") { request in
                request.number == 1
                    ? [.answer(200, "Cache-Control: max-age=1, stale-if-error=60", body: "old")] : [.answer(503)]
            }
            let first = try machines.texts("/x", of: 0)
            System.nap(.milliseconds(2_100))
            let others = try machines.texts("/x", of: 1, 2)
            #expect(first == ["old"] && others == ["old", "old"])
        }
    }

    @Test(arguments: [404, 200])
    func `a stale response whose place another took, which is not for the tier, is served by no machine`(status: Int)
        throws
    {
        try SharedMachines.run { origin, machines, engine in
            origin.on("/x") { request in
                request.number == 1
                    ? [.answer(200, "Cache-Control: max-age=1, stale-while-revalidate=60", body: "old")]
                    : [.answer(status, "Cache-Control: private", body: "new")]
            }
            #expect(try machines.texts("/x", of: 0) == ["old"])
            System.nap(.milliseconds(2_100))
            #expect(try machines.texts("/x", of: 0) == ["old"])
            try eventually("the tier has it no more") { try origin.count("/x") == 2 && engine.names("m").isEmpty }
            // Neither has asked for it before.
            #expect(try machines.texts("/x", of: 1, 2) == ["new", "new"])
        }
    }

    // MARK: The end of a machine

    @Test func `a machine that ends first writes what others read`() throws {
        try SharedMachines.run { origin, machines, _ in
            let gate = Gate()
            origin.on("/x") { _ in
                [
                    .head(200, "Content-Length: 1000000", "Cache-Control: max-age=600"), .pattern(0..<400_000),
                    .gate(gate), .pattern(400_000..<1_000_000),
                ]
            }
            let first = machines.proxies[0].crowd(1, get: "/x", Self.site)
            try eventually("it leads") { first.answers[0].body.length == 400_000 }
            let others = machines.proxies.dropFirst().map { $0.crowd(5, get: "/x", Self.site) }
            try eventually("the others follow") {
                others.allSatisfy { $0.answers.allSatisfy { $0.body.length == 400_000 } }
            }
            machines.proxies[0].signal(SIGTERM)
            first.leave(0)
            gate.open()
            #expect(others.allSatisfy { $0.finished().allSatisfy { $0.isWhole(1_000_000) } })
            #expect(origin.count("/x") == 1)
        }
    }

    // MARK: Cache-Status

    @Test func `a second member of Cache-Status tells of the tier`() throws {
        try SharedMachines.run { origin, machines, _ in
            let gate = Gate()
            origin.on("/x") { _ in
                [
                    .head(200, "Content-Length: 4", "Cache-Control: max-age=600"), .text("pa"), .gate(gate),
                    .text("ge"),
                ]
            }
            let led = machines.proxies[0].crowd(1, get: "/x", Self.site)
            try eventually("it leads") { led.answers[0].body.length == 2 }
            let joined = machines.proxies[1].crowd(1, get: "/x", Self.site)
            try eventually("it follows") { joined.answers[0].body.length == 2 }
            gate.open()
            #expect(!led.finished()[0].cacheStatus.contains("coalesced-shared"))
            #expect(joined.finished()[0].cacheStatus.contains("coalesced-shared; fwd=miss; collapsed"))
            let hit = try machines.proxies[2].send("GET", "/x", [Self.site])
            #expect(hit.cacheStatus.contains("coalesced-shared; hit") && hit.text == "page")
        }
    }
}
