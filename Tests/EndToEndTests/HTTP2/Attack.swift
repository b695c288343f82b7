import Testing

/// What a peer of HTTP/2 does to the program for a while, connection after connection, beside an ordinary client.
struct Attack {
    /// `.ci/run` has more, `.ci/long` a minute.
    static let duration = Duration.seconds(
        System.environment("COALESCED_TEST_ATTACK_SECONDS").flatMap { Int($0) } ?? 1)

    let origin: ScriptedOrigin
    let proxy: Program
    private let end = Instant.now + duration

    var goesOn: Bool { .now < end }

    /// - Parameters:
    ///   - mebibytes: how much more memory the program may have than before.
    ///   - once: one connection; called again until the time is over.
    static func run(
        _ what: String, _ settings: Setting..., mebibytes: Int = 32, sourceLocation: SourceLocation = #_sourceLocation,
        once: (Attack) throws -> Void
    ) throws {
        // The neighbour is on the attacker's worker.
        try scenario(settings: settings + [.workers(1)], sourceLocation: sourceLocation) { origin, proxy in
            origin.on("/hit") { _ in [.answer(200, "Cache-Control: max-age=3600", body: "hit")] }
            origin.on("/slow") { _ in [.silence] }
            origin.on("/large") { _ in [.answer(200, "Cache-Control: max-age=3600", pattern: 4 << 20)] }
            origin.on("/own") { _ in [.answer(200, "Cache-Control: no-store", pattern: 64 << 20)] }
            origin.on("*") { _ in [.answer(200, "Cache-Control: no-store", body: "x")] }
            try proxy.get("/hit")
            try proxy.get("/large", FieldBlock.host)
            let before = proxy.residentBytes
            let neighbour = Neighbour(of: proxy, get: "/hit", expecting: "hit")
            let attack = Attack(origin: origin, proxy: proxy)
            var connections = 0
            do {
                repeat {
                    try once(attack)
                    connections += 1
                } while attack.goesOn
            } catch {
                _ = try? neighbour.stop()
                throw error
            }
            try eventually("the neighbour is served", within: .seconds(30)) { neighbour.served >= 20 }
            let account = try neighbour.stop()
            let growth = neighbour.mostMemory - before
            note(
                "\(what): connections, hits of a neighbour, p99 of its wait and of the program's work meanwhile, MiB more",
                """
                \(connections), \(account.served), \(account.wait.inMilliseconds) ms, \
                \(account.work.inMilliseconds) ms, \(growth >> 20)
                """)
            #expect(account.failure == nil, sourceLocation: sourceLocation)
            #expect(account.wait < aStall, "the neighbour's p99", sourceLocation: sourceLocation)
            #expect(account.work < .milliseconds(50), "the work meanwhile", sourceLocation: sourceLocation)
            #expect(growth < mebibytes << 20, "memory grew by \(growth >> 10) KiB", sourceLocation: sourceLocation)
            try eventually("the attackers are gone", within: .seconds(20)) { try proxy.metric(.openClients) == 0 }
            let hit = try proxy.get("/hit")
            #expect(hit.text == "hit", "it still serves", sourceLocation: sourceLocation)
        }
    }

    /// One connection that sends `batch` again and again until the program ends it.
    func flood(
        _ peer: FramePeer, within limit: Duration = .seconds(8), waits: Bool = false,
        sourceLocation: SourceLocation = #_sourceLocation, _ batch: () -> [Frame]
    ) throws {
        let deadline = Instant.now + limit
        while !peer.isOver, peer.goAways.isEmpty, .now < deadline {
            guard try peer.offer(batch().flatMap(\.bytes), within: .seconds(10)) else { break }
            if waits {
                try peer.wait("its streams are over") { $0.openStreams == 0 || $0.isOver || !$0.goAways.isEmpty }
            } else {
                peer.listen(for: .zero)
            }
        }
        let isClosed = peer.isClosed(within: .seconds(5))
        try #require(isClosed, "\(peer.soFar)", sourceLocation: sourceLocation)
    }

    /// What the log has of connections that were ended so.
    func logs(_ reason: String, sourceLocation: SourceLocation = #_sourceLocation) throws {
        let line = #/ HTTP/2 client 127\.0\.0\.1:[0-9]+: ENHANCE_YOUR_CALM: ([^\n]+)/#
        let reasons = { proxy.diagnostics.matches(of: line).map { String($0.1) } }
        try? eventually("the log has a line", within: .seconds(2)) { reasons().contains { $0.hasPrefix(reason) } }
        #expect(
            reasons().contains { $0.hasPrefix(reason) }, "\(proxy.diagnostics.suffix(600))",
            sourceLocation: sourceLocation)
    }
}
