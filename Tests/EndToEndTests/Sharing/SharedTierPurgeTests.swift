import Glibc
import Testing

/// Purges on one of several machines that share a tier: at any time, of any kind, whatever the engine does meanwhile.
@Suite(.scenario) struct SharedTierPurgeTests {
    private static let site = SharedMachines.site

    private static let numbered: ScriptedOrigin.Handler = { request in
        [
            .answer(
                200, "Cache-Control: max-age=600", "Cache-Tag: t1", "ETag: \"\(request.number)\"",
                body: "\(request.number)")
        ]
    }

    @Test(arguments: ["http://site.test/a/b", "prefix http://site.test/a", "tag t1", "all"])
    func `what is purged softly on one machine is stale on all`(line: String) throws {
        try SharedMachines.run { origin, machines, _ in
            origin.on("*", Self.numbered)
            #expect(try machines.texts("/a/b") == ["1", "1", "1"])
            #expect(try machines.proxies[1].admin.send("POST", "/purge", body: "soft\n\(line)").status == 200)
            try eventually("all have asked again", within: .seconds(2) + aStall) {
                try machines.texts("/a/b").allSatisfy { $0 != "1" }
            }
        }
    }

    /// Fetches on some machines and a purge on another, in another order and with other pauses for each page.
    @Test(arguments: 0..<4)
    func `a purge is never undone by fetches that run on other machines`(kind: Int) throws {
        try SharedMachines.run { origin, machines, _ in
            let gates = (0..<16).map { _ in Gate() }
            origin.on("*") { request in
                let number = Int(request.target.dropFirst("/p".count)) ?? 0
                // Those before the purge have the old page, even if they are answered later.
                let body = gates[number].isOpen ? "new" : "old"
                return [
                    .wait(.milliseconds(number % 4 * 3)),
                    .answer(200, "Cache-Control: max-age=600", "Cache-Tag: t\(number)", body: body),
                ]
            }
            for number in 0..<16 {
                let target = "/p\(number)"
                var crowds: [Crowd] = []
                for step in 0...3 {
                    if step == number % 4 {
                        gates[number].open()
                        let line = [
                            "http://site.test\(target)", "prefix http://site.test\(target)", "tag t\(number)", "all",
                        ][kind]
                        let machine = machines.proxies[number / 4 % 3]
                        #expect(try machine.admin.send("POST", "/purge", body: line).status == 200)
                    } else {
                        let machine = machines.proxies[(number / 3 + step) % 3]
                        crowds.append(machine.crowd(2, get: target, Self.site))
                    }
                    System.nap(.milliseconds((number * 5 + step * 3) % 5))
                }
                #expect(crowds.allSatisfy { $0.finished().allSatisfy { ["old", "new"].contains($0.text) } })
                try eventually("page \(number) is new everywhere", within: .seconds(2) + aStall) {
                    try machines.texts(target) == ["new", "new", "new"]
                }
                // And stays so.
                #expect(try machines.texts(target) == ["new", "new", "new"], "page \(number)")
            }
        }
    }

    @Test(arguments: [true, false])
    func `a machine that was cut off serves nothing purged once it is back, and then tells its own`(isRefused: Bool)
        throws
    {
        try SharedMachines.run(isRelayed: true) { origin, machines, _ in
            origin.on("*", Self.numbered)
            let targets = ["/u", "/below/p", "/own"]
            for target in targets { #expect(try machines.texts(target) == ["1", "1", "1"]) }
            let relay = machines.relays[2]
            if isRefused { relay.refuse() } else { relay.stall() }
            for line in ["http://site.test/u", "prefix http://site.test/below"] {
                #expect(try machines.proxies[0].admin.send("POST", "/purge", body: line).status == 200)
            }
            #expect(try machines.proxies[2].admin.send("POST", "/purge", body: "http://site.test/own").status == 200)
            #expect(try machines.texts("/own", of: 2) == ["2"])
            try eventually("the other one has heard") {
                // A busy machine may fetch for itself.
                try !(machines.texts("/u", of: 0, 1) + machines.texts("/below/p", of: 0, 1)).contains("1")
            }
            if isRefused { relay.refuse(false) } else { relay.stall(false) }
            try SharedMachines.waitForTier(machines.proxies[2])
            try eventually("it has heard as well", within: .seconds(1) + aStall) {
                try machines.texts("/u", of: 2) != ["1"] && machines.texts("/below/p", of: 2) != ["1"]
            }
            try eventually("the others have heard of its own", within: .seconds(2) + aStall) {
                try !machines.texts("/own").contains("1")
            }
        }
    }

    @Test(arguments: [true, false])
    func `if the log of purges is lost, no machine keeps what may have been purged`(isKilled: Bool) throws {
        try SharedMachines.run { origin, machines, engine in
            origin.on("*", Self.numbered)
            #expect(try machines.texts("/x") == ["1", "1", "1"])
            if isKilled { engine.kill() } else { try engine.send("FLUSHALL") }
            #expect(try machines.proxies[0].admin.send("POST", "/purge", body: "http://site.test/x").status == 200)
            if isKilled { try engine.start() }
            try eventually("all have asked again", within: .seconds(3) + aStall) {
                try !machines.texts("/x").contains("1")
            }
            try machines.waitUntilWell(origin)
        }
    }

    @Test(arguments: ["http://site.test/x", "soft\nhttp://site.test/x", "tag t1"])
    func `a purge in the middle of a body cuts nobody off, whoever asks next`(lines: String) throws {
        try SharedMachines.run { origin, machines, _ in
            let gate = Gate()
            origin.on("/x") { request in
                request.number == 1
                    ? [
                        .head(200, "Transfer-Encoding: chunked", "Cache-Control: max-age=600", "Cache-Tag: t1"),
                        .chunk(pattern: 0..<100_000), .gate(gate), .chunk(pattern: 100_000..<1_000_000), .lastChunk(),
                    ] : [.answer(200, "Cache-Control: max-age=600", "Cache-Tag: t1", body: "new")]
            }
            let first = machines.proxies[0].crowd(3, get: "/x", Self.site)
            try eventually("one machine leads") { first.answers.allSatisfy { $0.body.length == 100_000 } }
            let others = machines.proxies[1].crowd(5, get: "/x", Self.site)
            try eventually("another follows") { others.answers.allSatisfy { $0.body.length == 100_000 } }
            #expect(try machines.proxies[2].admin.send("POST", "/purge", body: lines).status == 200)
            // The third one has not asked before.
            #expect(try machines.texts("/x", of: 2) == ["new"])
            gate.open()
            #expect((first.finished() + others.finished()).allSatisfy { $0.isWhole(1_000_000) })
            try eventually("the new page is everywhere", within: .seconds(2) + aStall) {
                try machines.texts("/x") == ["new", "new", "new"]
            }
        }
    }

    @Test func `a machine that is connected, and cannot read the log of purges, does without the engine`() throws {
        try SharedMachines.run(isRelayed: true) { _, machines, _ in
            let machine = machines.proxies[2]
            machines.relays[2].answer(with: "-LOADING the dataset\r\n")
            // So many failures that the log is not asked for any more, long before it counts as unread.
            for number in 0..<8 {
                #expect(try machine.admin.send("POST", "/purge", body: "http://site.test/\(number)").status == 200)
            }
            try eventually("it knows that it may have missed purges", within: .seconds(5) + aStall) {
                try machine.status()["shared"]?["knows_purges"] == .bool(false)
            }
            machines.relays[2].answer(with: nil)
            try SharedMachines.waitForTier(machine)
        }
    }

    @Test func `a purge while the origin thinks concerns the response that all wait for`() throws {
        try SharedMachines.run { origin, machines, _ in
            let gate = Gate()
            origin.on("/x") { request in
                request.number == 1
                    ? [.gate(gate), .answer(200, "Cache-Control: max-age=600", body: "old")]
                    : [.answer(200, "Cache-Control: max-age=600", body: "new")]
            }
            let crowds = machines.proxies.map { $0.crowd(3, get: "/x", Self.site) }
            try eventually("all wait") { try machines.count("joined") == 2 }
            #expect(try machines.proxies[1].admin.send("POST", "/purge", body: "http://site.test/x").status == 200)
            gate.open()
            _ = crowds.map { $0.finished() }
            try eventually("the new page is everywhere", within: .seconds(2) + aStall) {
                try machines.texts("/x") == ["new", "new", "new"]
            }
            #expect(try machines.texts("/x") == ["new", "new", "new"])
        }
    }
}
