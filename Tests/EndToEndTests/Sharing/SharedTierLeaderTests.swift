import Glibc
import Testing

/// What becomes of those who follow when the machine that fetches for all ends, is upgraded, stands still, or its client
/// leaves. Nobody gets a mixture, or a short body that looks whole.
@Suite(.scenario) struct SharedTierLeaderTests {
    private static let site = SharedMachines.site

    /// Bodies of which the origin sends a part, then waits for a gate.
    private func follow(
        fields: [String] = [],
        act: (SharedMachines, Crowd, [Crowd]) throws -> Void, judge: (ScriptedOrigin, [Answer]) throws -> Void
    ) throws {
        let lease = Setting.other(section: "shared", key: "lease", value: "1s")
        try SharedMachines.run(lease) { origin, machines, _ in
            let gate = Gate()
            origin.on("/x") { request in
                let range = BreakingFile.range(request, of: 900_000)
                if let range, !fields.isEmpty {
                    return [BreakingFile.head(of: range, 900_000, fields), .pattern(range)]
                }
                return request.number > 1
                    ? [.head(200, fields + ["Content-Length: 900000"]), .pattern(0..<900_000)]
                    : [
                        .head(200, fields + ["Content-Length: 900000", "Cache-Control: max-age=600"]),
                        .pattern(0..<300_000), .gate(gate), .pattern(300_000..<900_000),
                    ]
            }
            let first = machines.proxies[0].crowd(1, get: "/x", Self.site)
            try eventually("it leads") { first.answers[0].body.length == 300_000 }
            let others = machines.proxies.dropFirst().map { $0.crowd(5, get: "/x", Self.site) }
            try eventually("they follow") {
                others.allSatisfy { $0.answers.allSatisfy { $0.body.length == 300_000 } }
            }
            try act(machines, first, others)
            gate.open()
            try judge(origin, others.flatMap { $0.finished() })
            withExtendedLifetime(first) {}
        }
    }

    @Test func `its client leaves, and it fetches on for the others`() throws {
        try follow { _, first, _ in
            first.leave(0)
        } judge: { origin, answers in
            #expect(answers.allSatisfy { $0.isWhole(900_000) })
            #expect(origin.count("/x") == 1)
        }
    }

    @Test func `its program is upgraded, and the former one fetches on`() throws {
        try follow { machines, _, _ in
            try machines.proxies[0].upgrade()
        } judge: { origin, answers in
            #expect(answers.allSatisfy { $0.isWhole(900_000) })
            #expect(origin.count("/x") == 1)
        }
    }

    @Test func `the programs of those who follow are upgraded or read their files again`() throws {
        try follow { machines, _, _ in
            machines.proxies[1].signal(SIGHUP)
            try machines.proxies[2].upgrade()
        } judge: { origin, answers in
            #expect(answers.allSatisfy { $0.isWhole(900_000) })
            #expect(origin.count("/x") == 1)
        }
    }

    @Test func `it is told to end, and ends when all is written`() throws {
        try follow { machines, _, _ in
            machines.proxies[0].terminate()
        } judge: { origin, answers in
            #expect(answers.allSatisfy { $0.isWhole(900_000) })
            #expect(origin.count("/x") == 1)
        }
    }

    @Test(arguments: [true, false])
    func `it stands still for longer than its lease, and goes on`(hasTag: Bool) throws {
        try follow(fields: hasTag ? ["ETag: \"x\"", "Cache-Control: max-age=600"] : []) { machines, _, others in
            machines.proxies[0].signal(SIGSTOP)
            defer { machines.proxies[0].signal(SIGCONT) }
            try eventually("the others do without it") {
                others.allSatisfy { $0.pending == 0 }
            }
        } judge: { origin, answers in
            #expect(answers.allSatisfy { $0.body.isIntact })
            #expect(answers.allSatisfy { hasTag ? $0.isWhole(900_000) : !$0.isClean })
            #expect(origin.count("/x") == (hasTag ? 3 : 1))
        }
    }

    @Test(arguments: [SIGKILL, SIGSTOP])
    func `it is lost before its head, and another one fetches for the rest`(signal: Int32) throws {
        let lease = Setting.other(section: "shared", key: "lease", value: "1s")
        try SharedMachines.run(lease) { origin, machines, _ in
            let gate = Gate()
            origin.on("/x") { request in
                let page = Step.answer(200, "Cache-Control: max-age=600", body: "page")
                return request.number == 1 ? [.gate(gate), page] : [page]
            }
            let first = machines.proxies[0].crowd(1, get: "/x", Self.site)
            try eventually("it leads") { origin.count("/x") == 1 }
            let others = machines.proxies.dropFirst().map { $0.crowd(5, get: "/x", Self.site) }
            try eventually("they wait for it") {
                try SharedMachines(proxies: Array(machines.proxies.dropFirst()), relays: []).count("joined") == 2
            }
            machines.proxies[0].signal(signal)
            #expect(others.allSatisfy { $0.finished(within: .seconds(2) + aStall).allSatisfy { $0.text == "page" } })
            #expect(origin.count("/x") == 2)
            machines.proxies[0].signal(SIGCONT)
            gate.open()
            // It wakes up, and harms nobody.
            if signal == SIGSTOP { #expect(first.finished()[0].text == "page") }
            #expect(try machines.texts("/x", of: 1, 2) == ["page", "page"])
            #expect(origin.count("/x") == 2)
        }
    }

    // MARK: Responses for one client, and stale ones

    @Test func `once the first is known to be for one client, all others fetch side by side`() throws {
        try SharedMachines.run { origin, machines, _ in
            let (first, rest) = (Gate(), Gate())
            origin.on("/x") { request in
                [
                    .gate(request.number == 1 ? first : rest),
                    .answer(200, "Cache-Control: private, max-age=600", body: "own"),
                ]
            }
            let crowds = machines.proxies.map { $0.crowd(10, get: "/x", Self.site) }
            for crowd in crowds { try crowd.gathered() }
            try eventually("one is asked, and the others wait") { try machines.count("joined") == 2 }
            first.open()
            try eventually("all others are asked, before one of them is answered") { origin.count("/x") == 30 }
            rest.open()
            #expect(crowds.allSatisfy { $0.finished().allSatisfy { $0.text == "own" } })
            // The next ones wait for nobody.
            let (again, before) = (Gate(), origin.count("/x"))
            origin.on("/x") { _ in [.gate(again), .answer(200, "Cache-Control: private", body: "own")] }
            let next = machines.proxies.map { $0.crowd(10, get: "/x", Self.site) }
            try eventually("all are asked at once") { origin.count("/x") == before + 30 }
            again.open()
            #expect(next.allSatisfy { $0.finished().allSatisfy { $0.text == "own" } })
        }
    }

    @Test(arguments: [true, false])
    func `a stale page is served at once by all, while one machine refreshes it for all`(isConfirmed: Bool) throws {
        try SharedMachines.run { origin, machines, _ in
            let gate = Gate()
            let fields = ["Cache-Control: max-age=1, stale-while-revalidate=60", "ETag: \"1\""]
            origin.on("/x") { request in
                if request.number == 1 { return [.answer(200, fields, body: "old")] }
                return isConfirmed
                    ? [.gate(gate), .answer(304, "ETag: \"1\"", "Cache-Control: max-age=600")]
                    : [.gate(gate), .answer(200, "Cache-Control: max-age=600", body: "new")]
            }
            #expect(try machines.texts("/x") == ["old", "old", "old"])
            System.nap(.milliseconds(1_100))
            // Nobody waits: the gate is closed.
            let crowds = machines.proxies.map { $0.crowd(20, get: "/x", Self.site) }
            #expect(crowds.allSatisfy { $0.finished().allSatisfy { $0.text == "old" } })
            try eventually("it is refreshed") { origin.count("/x") == 2 }
            gate.open()
            let new = isConfirmed ? "old" : "new"
            try eventually("all have the new one, fresh") {
                try machines.proxies.allSatisfy {
                    let answer = try $0.send("GET", "/x", [Self.site])
                    return answer.text == new && answer.cacheStatus.contains("coalesced; hit")
                        && !answer.cacheStatus.contains("ttl=-")
                }
            }
            #expect(origin.count("/x") == 2, "one refresh for all")
        }
    }
}
