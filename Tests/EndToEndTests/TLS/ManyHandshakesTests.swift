import Testing

/// Thousands of handshakes.
@Suite(.heavyScenario) struct ManyHandshakesTests {
    @Test func `half-open handshakes keep nobody else waiting, and hold little memory`() throws {
        try SecureSite.run(.workers(2), .maxConnections(20_000)) { site in
            #expect(try site.get("/x").text == "hello")
            let before = site.proxy.residentBytes
            let end = TLSEnd(.client)
            _ = end.shake()
            let hello = end.takeOutgoing()
            // Half of them wait for their hello's rest, the others have the answer and say nothing.
            var idle: [Conversation] = []
            for number in 0..<5_000 {
                let client = try site.raw.connect()
                try client.send(number % 2 == 0 ? hello : Array(hello[..<100]))
                idle.append(client)
            }
            let open = try site.connect()
            var (waits, work) = ([Duration](), [Duration]())
            for _ in 0..<500 {
                let (begun, before) = (ContinuousClock.now, site.proxy.processorTime)
                try open.send(site.proxy.request("GET", "/x"))
                #expect(try open.answer().text == "hello")
                waits.append(ContinuousClock.now - begun)
                work.append(site.proxy.processorTime - before)
            }
            waits.sort()
            work.sort()
            note(
                "p99 of hits beside 5,000 half-open handshakes, and of the program's work meanwhile",
                "\(waits[494]), \(work[494])")
            #expect(work[494] < .milliseconds(10) && waits[494] < aStall)
            let grown = site.proxy.residentBytes - before
            note("memory for 5,000 half-open handshakes", "\(grown >> 10) KiB")
            #expect(grown < 192 << 20)
            // A new client gets its handshake, too.
            #expect(try site.get("/x").text == "hello")
            for client in idle { client.reset() }
            try eventually("they have gone") { try site.proxy.metric(.openClients) <= 1 }
        }
    }

    private static let rounds = System.environment("COALESCED_TEST_ROUNDS").flatMap { Int($0) } ?? 1

    /// Ten thousand with five rounds.
    @Test func `thousands of connections that come and go leave little memory behind`() throws {
        try SecureSite.run(.workers(2)) { site in
            #expect(site.proxy.crowd(500, get: "/x").finished().allSatisfy { $0.text == "hello" })
            let before = site.proxy.residentBytes
            for _ in 0..<(2 * Self.rounds) {
                let answers = site.proxy.crowd(1_000, get: "/x").finished(within: .seconds(120))
                #expect(answers.allSatisfy { $0.text == "hello" })
            }
            try eventually("they have gone") { try site.proxy.metric(.openClients) == 0 }
            let grown = site.proxy.residentBytes - before
            note("memory after \(2_000 * Self.rounds) TLS connections", "\(grown >> 10) KiB")
            #expect(grown < 64 << 20)
        }
    }

    @Test func `a thousand clients over TLS share one fetch, from its first byte on`() throws {
        try SecureSite.run(.workers(2)) { site in
            let length = 400_000
            let start = Gate()
            site.origin.on("/cold") { _ in
                [
                    .gate(start), .head(200, "Cache-Control: max-age=60", "Content-Length: \(length)"),
                    .pattern(length, over: .seconds(2), in: 20),
                ]
            }
            let crowd = site.proxy.crowd(1_000, get: "/cold")
            try site.proxy.joined(1_000, within: .seconds(60))
            let begun = Instant.now
            start.open()
            let answers = crowd.finished(within: .seconds(120))
            #expect(answers.count { $0.isWhole(length) } == 1_000)
            #expect(site.origin.count("/cold") == 1)
            let lags = answers.map { ($0.firstByteAt ?? .now) - begun }.sorted()
            note("first byte of 1,000 over TLS after the origin's: median, last", "\(lags[500]), \(lags[999])")
        }
    }
}
