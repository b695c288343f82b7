import Glibc
import Testing

/// An engine that fails in every way, in the middle of what machines share. No client gets an error because of it.
@Suite(.scenario) struct SharedTierFailureTests {
    private static let site = SharedMachines.site

    /// Harm to the engine, or to the way there.
    enum Harm: String, CaseIterable {
        case stopped, killed, stalled, slow, refused, cut, emptied, full

        func begin(_ engine: RedisEngine, _ relays: [EngineRelay]) throws {
            switch self {
            case .stopped: engine.signal(SIGSTOP)
            case .killed: engine.kill()
            case .stalled: for relay in relays { relay.stall() }
            case .slow: for relay in relays { relay.delay(by: .milliseconds(100)) }
            case .refused: for relay in relays { relay.refuse() }
            case .cut: for relay in relays { relay.cut() }
            case .emptied:
                try engine.send("FLUSHALL")
                try engine.send("FUNCTION", "FLUSH")
            case .full: try engine.send("CONFIG", "SET", "maxmemory", "1")
            }
        }

        /// Again, before each request.
        func goOn(_ engine: RedisEngine, _ relays: [EngineRelay]) throws {
            switch self {
            case .cut, .emptied: try begin(engine, relays)
            default: break
            }
        }

        func end(_ engine: RedisEngine, _ relays: [EngineRelay]) throws {
            switch self {
            case .stopped: engine.signal(SIGCONT)
            case .killed: try engine.start()
            case .stalled: for relay in relays { relay.stall(false) }
            case .slow: for relay in relays { relay.delay(by: .zero) }
            case .refused: for relay in relays { relay.refuse(false) }
            case .cut, .emptied: break
            case .full: try engine.send("CONFIG", "SET", "maxmemory", "0")
            }
        }
    }

    @Test(arguments: Harm.allCases)
    func `no client notices the engine's failure, and all is well again afterwards`(harm: Harm) throws {
        try SharedMachines.run(isRelayed: true) { origin, machines, engine in
            origin.on("/x") { _ in [.answer(200, "Cache-Control: max-age=600", pattern: 100_000)] }
            try machines.waitUntilWell(origin)
            try harm.begin(engine, machines.relays)
            for page in 0..<8 {
                try harm.goOn(engine, machines.relays)
                let crowds = machines.proxies.map { $0.crowd(3, get: "/x?\(page)", Self.site) }
                let answers = crowds.flatMap { $0.finished(within: .seconds(10)) }
                #expect(answers.allSatisfy { $0.isWhole(100_000) }, "page \(page)")
            }
            try harm.end(engine, machines.relays)
            try machines.waitUntilWell(origin)
        }
    }

    @Test(
        arguments: [
            "HTTP/1.1 400 Bad Request\r\n\r\n", "\u{0}\u{1}\u{ff}\u{fe}garbage without an end", "+OK\r\n",
            "+OK\r\n+OK\r\n",
            "$99999999999\r\n", "$1000000\r\nabc", "*99999999\r\n", String(repeating: "*1\r\n", count: 100), "*-2\r\n",
            ":99999999999999999999\r\n", "-ERR no\r\n", "_\r\n", ">2\r\n$10\r\ninvalidate\r\n:5\r\n", "*?\r\n",
            "%1\r\n+a\r\n",
        ])
    func `an engine that answers nonsense is left alone`(answer: String) throws {
        try SharedMachines.run(isRelayed: true) { origin, machines, _ in
            origin.on("/x") { _ in [.answer(200, "Cache-Control: max-age=600", body: "page")] }
            for relay in machines.relays { relay.answer(with: answer) }
            for page in 0..<6 {
                let crowds = machines.proxies.map { $0.crowd(2, get: "/x?\(page)", Self.site) }
                #expect(crowds.allSatisfy { $0.finished(within: .seconds(5)).allSatisfy { $0.text == "page" } })
            }
            for relay in machines.relays {
                relay.answer(with: nil)
                // What is on its way belongs to no command.
                relay.cut()
            }
            try machines.waitUntilWell(origin)
        }
    }

    /// Lua values in place of what a look-up answers; `now` is the engine's time, `token` what the machine leads under.
    @Test(
        arguments: [
            "{'hit', 't', 0, now, {'t', 4, now, now + 60000, now + 60000, '', 'x'}}",
            "{'hit', 't', 0, now, {'t', 4, now, now + 60000, now + 60000, '', {'x', 'y'}}}",
            "{'hit', 't', 0, now, {'t', 4, now, now + 60000, now + 60000, '', {}}}",
            "{'hit', 't', 0, now, {'t', 4, now, now + 60000, now + 60000, '', {{'0-1', {'h'}}}}}",
            "{'hit', 't', 0, now, {'t', 4, now, now + 60000, now + 60000, '', {{'0-1', {'h', 1, 't', 2}}}}}",
            "{'hit', 't', 0, now, {'t', -4, now, now + 60000, now + 60000, '', {}}}",
            "{'hit', 't', -9223372036854775808, -9223372036854775808, {'t', 4, -9223372036854775808, 1, 1, '', {}}}",
            "{'hit', 't', 0, 9223372036854774784, {'t', 4, 9223372036854774784, 1, 1, '', {}}}",
            "{'hit', 't', 0, now}", "{'join', 't', 1000, now}", "{'join', '', 1000, now}",
            "{'vary', 'Vary: X-' .. now .. '\\r\\n', 0, now}", "{'vary', '\\0\\255\\r\\n: :\\r\\n\\r\\n', 0, now}",
            "{'lead', 'other', 1000, now}", "{'alone', '', -1, now}", "{'alone', '--', 1000, now}",
            "{'what', '', 0, now}",
            "{}", "false", "{'miss', '', 0, -9223372036854775808}", "redis.error_reply('ERR x')", "1",
        ])
    func `an answer that no function gives is no answer`(answer: String) throws {
        try SharedMachines.run { origin, machines, engine in
            origin.on("/x") { _ in [.answer(200, "Cache-Control: max-age=600", body: "page")] }
            try engine.replaceLookUp(by: answer)
            for page in 0..<3 {
                let crowds = machines.proxies.map { $0.crowd(2, get: "/x?\(page)", Self.site) }
                #expect(crowds.allSatisfy { $0.finished(within: .seconds(5)).allSatisfy { $0.text == "page" } })
            }
        }
    }

    // MARK: In the middle of a body

    @Test(arguments: [true, false])
    func `a short failure while a body is followed harms nobody`(isCut: Bool) throws {
        try SharedMachines.run(isRelayed: true) { origin, machines, _ in
            let gate = Gate()
            origin.on("/x") { _ in
                [
                    .head(200, "Content-Length: 2000000", "Cache-Control: max-age=600"), .pattern(0..<500_000),
                    .gate(gate), .pattern(500_000..<2_000_000),
                ]
            }
            let crowds = machines.proxies.map { $0.crowd(5, get: "/x", Self.site) }
            try eventually("what is there has gone to all") {
                crowds.allSatisfy { $0.answers.allSatisfy { $0.body.length == 500_000 } }
            }
            let leader = try #require(
                try machines.proxies.indices.first {
                    try SharedMachines(proxies: [machines.proxies[$0]], relays: []).count("led") == 1
                })
            // Longer than `timeout`; a reply is late, or never comes.
            for (number, relay) in machines.relays.enumerated() where number != leader {
                if isCut { relay.cut() } else { relay.delay(by: .milliseconds(60)) }
            }
            gate.open()
            #expect(crowds.allSatisfy { $0.finished().allSatisfy { $0.isWhole(2_000_000) } })
            #expect(origin.count("/x") == 1)
        }
    }

    @Test func `a machine that is cut off from the engine while it leads holds up no other`() throws {
        try SharedMachines.run(
            .other(section: "shared", key: "lease", value: "1m"), isRelayed: true
        ) { origin, machines, _ in
            let gate = Gate()
            origin.on("/x") { _ in [.gate(gate), .answer(200, "Cache-Control: max-age=600", body: "page")] }
            let first = machines.proxies[0].crowd(1, get: "/x", Self.site)
            try eventually("it leads") { origin.count("/x") == 1 }
            let others = machines.proxies.dropFirst().map { $0.crowd(5, get: "/x", Self.site) }
            try eventually("they follow") { try machines.count("joined") == 2 }
            machines.relays[0].cut()
            gate.open()
            #expect((others + [first]).allSatisfy { $0.finished().allSatisfy { $0.text == "page" } })
        }
    }

    @Test func `no machine waits for another if the engine is full`() throws {
        try SharedMachines.run { origin, machines, engine in
            let (first, rest) = (Gate(), Gate())
            origin.on("/x") { request in
                [
                    .gate(request.number == 1 ? first : rest),
                    .answer(200, "Cache-Control: max-age=600", body: "page"),
                ]
            }
            try engine.send("CONFIG", "SET", "maxmemory", "1")
            let crowds = machines.proxies.map { $0.crowd(5, get: "/x", Self.site) }
            try eventually("one is asked") { origin.count("/x") == 1 }
            first.open()
            // Side by side, rather than one after the other.
            try eventually("the others fetch as well") { origin.count("/x") == 3 }
            rest.open()
            #expect(crowds.allSatisfy { $0.finished().allSatisfy { $0.text == "page" } })
        }
    }

    @Test(arguments: [true, false])
    func `if the engine loses a body that grows, its readers go on by a range, or are cut off`(hasTag: Bool) throws {
        try SharedMachines.run { origin, machines, engine in
            var file = BreakingFile(length: 900_000)
            if !hasTag { file.fields.removeAll { $0.hasPrefix("ETag") || $0.hasPrefix("Last-Modified") } }
            let (gate, fields) = (Gate(), file.fields)
            let asked = file
            origin.on("/x") { request in
                request.number == 1
                    ? [
                        .head(200, fields + ["Content-Length: 900000"]), .pattern(0..<300_000), .gate(gate),
                        .pattern(300_000..<900_000),
                    ] : asked.steps(request)
            }
            let first = machines.proxies[0].crowd(3, get: "/x", Self.site)
            try eventually("it leads") { first.answers.allSatisfy { $0.body.length == 300_000 } }
            let others = machines.proxies.dropFirst().map { $0.crowd(5, get: "/x", Self.site) }
            try eventually("they follow") {
                others.allSatisfy { $0.answers.allSatisfy { $0.body.length == 300_000 } }
            }
            for name in try engine.names("b:") { try engine.send("UNLINK", name) }
            gate.open()
            let answers = others.flatMap { $0.finished() }
            #expect(first.finished().allSatisfy { $0.isWhole(900_000) })
            #expect(answers.allSatisfy { $0.body.isIntact }, "nobody has a gap")
            #expect(answers.allSatisfy { hasTag ? $0.isWhole(900_000) : !$0.isClean })
            #expect(origin.count("/x") == (hasTag ? 3 : 1))
            // The next ones get all of it.
            for proxy in machines.proxies { #expect(try proxy.send("GET", "/x", [Self.site]).isWhole(900_000)) }
        }
    }
}
