import Testing

@Suite(.heavyScenario) struct ManyConnectionsTests {
    @Test func `ten thousand connections are served, and leave little memory behind`() throws {
        let count = min(10_000, System.descriptorLimit - 500)
        note("connections at once", count)
        try scenario(.idleTimeout(.seconds(600))) { origin, proxy in
            origin.on("/small") { _ in [.answer(200, "Cache-Control: max-age=600", body: "small")] }
            try proxy.get("/small")
            let hitBefore = try timePerHit(proxy)
            let memoryBefore = proxy.residentBytes, descriptorsBefore = proxy.openDescriptors

            let crowd = proxy.crowd(count, get: "/small", keepsOpen: true)
            #expect(crowd.finished(within: .seconds(120)).allSatisfy { $0.text == "small" && $0.isClean })
            note("bytes of memory a connection", (proxy.residentBytes - memoryBefore) / count)
            crowd.again()
            #expect(crowd.finished(within: .seconds(120)).allSatisfy { $0.text == "small" && $0.isClean })
            #expect(try proxy.metric(.openClients) >= count)

            crowd.close()
            try eventually("all are gone", within: .seconds(60)) { try proxy.metric(.openClients) == 0 }
            try eventually("their sockets are closed", within: .seconds(60)) {
                proxy.openDescriptors < descriptorsBefore + 50
            }
            let hitAfter = try timePerHit(proxy)
            note("a hit before and after", "\(hitBefore), \(hitAfter)")
            #expect(hitAfter < hitBefore * 3 + .milliseconds(1))
            let growth = proxy.residentBytes - memoryBefore
            note("memory kept afterwards, in KiB", growth >> 10)
            // OpenSSL's 15 KB for each stay with the allocator, for the next connections (see ManyHandshakesTests), and
            // HTTP/2's 16; both take 40.
            let ofLayers =
                switch (Transport.current.isSecureToClients, Transport.current.isFramedToClients) {
                case (false, false): 0
                case (true, false), (false, true): 128
                case (true, true): 384
                }
            #expect(growth < (64 + ofLayers) << 20)
            #expect(origin.count("/small") == 1)
        }
    }

    /// The least of several rounds: others use the machine as well.
    private func timePerHit(_ proxy: Program) throws -> Duration {
        let client = try proxy.connect()
        let hits = 50
        let rounds = try (1...8).map { _ in
            try measured {
                for _ in 1...hits {
                    try client.send(proxy.request("GET", "/small"))
                    #expect(try client.answer().status == 200)
                }
            } / hits
        }
        return rounds.min()!
    }
}
