import COpenSSL
import Testing

/// Clients that mean harm, or whose network does.
@Suite(.scenario) struct HostileHandshakeTests {
    /// The hello of a client.
    private func hello(_ offer: TLSEnd.Offer = TLSEnd.Offer()) -> (end: TLSEnd, bytes: [UInt8]) {
        let end = TLSEnd(.client, offer)
        _ = end.shake()
        return (end, end.takeOutgoing())
    }

    private func isWell(_ site: SecureSite) throws -> Bool { try site.get("/x").text == "hello" }

    @Test(arguments: [TLS1_2_VERSION, TLS1_3_VERSION])
    func `a handshake that comes byte by byte succeeds`(_ version: Int32) throws {
        try SecureSite.run { site in
            let (end, bytes) = hello(TLSEnd.Offer(maximumVersion: version))
            let client = try site.raw.connect()
            for byte in bytes { try client.send([byte]) }
            var outcome = TLSEnd.Outcome.needsBytes
            while outcome == .needsBytes {
                end.give(try client.bytes(1)[...])
                outcome = end.shake()
                for byte in end.takeOutgoing() { try client.send([byte]) }
            }
            #expect(outcome == .done && end.write(Array(site.proxy.request("GET", "/x").utf8)[...]))
            for byte in end.takeOutgoing() { try client.send([byte]) }
            var memory = [UInt8](repeating: 0, count: 4096)
            var text = ""
            while !text.hasSuffix("hello") {
                end.give(try client.bytes(1)[...])
                while case .bytes(let count) = unsafe memory.withUnsafeMutableBytes({ unsafe end.read(into: $0) }) {
                    text += String(decoding: memory[..<count], as: UTF8.self)
                }
                guard !client.isEndedByPeer else { break }
            }
            #expect(text.hasSuffix("hello"))
        }
    }

    /// A message of a handshake of `length` bytes, in records of 16 KiB.
    private func message(ofLength length: Int) -> [UInt8] {
        var rest = [1, UInt8(length >> 16), UInt8(length >> 8 & 0xFF), UInt8(length & 0xFF)]
        rest += [3, 3] + [UInt8](repeating: 7, count: length - 2)
        var all: [UInt8] = []
        for start in stride(from: 0, to: rest.count, by: 16_384) {
            let part = rest[start..<min(start + 16_384, rest.count)]
            all += [0x16, 3, 1, UInt8(part.count >> 8), UInt8(part.count & 0xFF)]
            all += part
        }
        return all
    }

    @Test(arguments: [65_536, 1 << 20, (1 << 24) - 1])
    func `a huge hello ends the connection, and nothing else`(_ length: Int) throws {
        try SecureSite.run { site in
            let before = site.proxy.residentBytes
            let message = message(ofLength: length)
            for _ in 0..<20 {
                let client = try site.raw.connect()
                // The program may have closed before all of it is sent.
                try? client.send(message)
                _ = client.isClosed()
                #expect(client.isEndedByPeer)
            }
            #expect(site.proxy.residentBytes - before < 32 << 20)
            #expect(try isWell(site))
        }
    }

    @Test func `renegotiation is refused, and the program lives`() throws {
        try SecureSite.run { site in
            // `R` on a line of its own asks for it; s_client reads the next line after that.
            let run = try Command.run(
                [
                    "sh", "-c",
                    "(sleep 0.3; echo R; sleep 0.5) | openssl s_client -tls1_2 -connect 127.0.0.1:\(site.port)",
                ])
            #expect(run.everything.contains("RENEGOTIATING"))
            #expect(run.everything.contains("no renegotiation"))
            #expect(try isWell(site))
        }
    }

    @Test(arguments: [TLS1_2_VERSION, TLS1_3_VERSION], [false, true])
    func `a connection cut in any state of the handshake leaves nothing behind`(_ version: Int32, _ isReset: Bool)
        throws
    {
        try SecureSite.run { site in
            #expect(try isWell(site))
            try eventually("that one has gone") { try site.proxy.metric(.openClients) == 0 }
            let descriptors = site.proxy.openDescriptors
            func cut(_ client: Conversation) { isReset ? client.reset() : client.close() }
            // Before the hello, within it, and behind it.
            for sent in [0, 1, 5, 6, 100] {
                let client = try site.raw.connect()
                try client.send(Array(hello(TLSEnd.Offer(maximumVersion: version)).bytes[..<sent]))
                cut(client)
            }
            // After so many flights, or in the middle of the next.
            for flights in 1...3 {
                for isHalf in [false, true] {
                    let (end, bytes) = hello(TLSEnd.Offer(maximumVersion: version))
                    let client = try site.raw.connect()
                    try client.send(bytes)
                    var sent = 1
                    while sent < flights {
                        end.give(try client.bytes(1)[...])
                        let outcome = end.shake()
                        let flight = end.takeOutgoing()
                        if !flight.isEmpty {
                            sent += 1
                            try client.send(isHalf && sent == flights ? Array(flight[..<(flight.count / 2)]) : flight)
                        }
                        if outcome != .needsBytes { break }
                    }
                    cut(client)
                }
            }
            try eventually("all have gone") { try site.proxy.metric(.openClients) == 0 }
            try eventually("their descriptors, too") { site.proxy.openDescriptors <= descriptors }
            #expect(try isWell(site))
        }
    }

    @Test func `a handshake that takes longer than head-timeout is ended`() throws {
        try SecureSite.run(.headTimeout(.milliseconds(400))) { site in
            let bytes = hello().bytes
            let begun = ContinuousClock.now
            let clients = try [0, 1, 60, bytes.count].map { count in
                let client = try site.raw.connect()
                try client.send(Array(bytes[..<count]))
                return client
            }
            // The last one has got the answer to its hello.
            for client in clients {
                _ = client.isClosed()
                #expect(client.isEndedByPeer)
            }
            #expect(ContinuousClock.now - begun > .milliseconds(300))
            try eventually("it is told") { site.proxy.diagnostics.contains("longer than head-timeout") }
            #expect(try isWell(site))
        }
    }

    /// A connection whose handshake is done.
    private func opened(_ site: SecureSite) throws -> (client: Conversation, end: TLSEnd) {
        let client = try site.raw.connect()
        let (end, bytes) = hello()
        try client.send(bytes)
        var outcome = TLSEnd.Outcome.needsBytes
        while outcome == .needsBytes {
            end.give(try client.bytes(1)[...])
            outcome = end.shake()
            try client.send(end.takeOutgoing())
        }
        #expect(outcome == .done)
        return (client, end)
    }

    /// OpenSSL looked for a byte of the stream among them without an end.
    @Test func `a flood of key updates keeps the other clients of the loop waiting for milliseconds`() throws {
        try SecureSite.run(.workers(1)) { site in
            let (client, end) = try opened(site)
            // Half a second's work, and more than that to be read.
            for _ in 0..<100_000 { end.updateKeys(asksBack: false) }
            let flood = end.takeOutgoing()
            let other = try site.plain.connect()
            try other.send(site.proxy.request("GET", "/x"))
            #expect(try other.answer().text == "hello")
            System.startThread {
                try? client.send(flood)
                client.reset()
            }
            var (longest, most) = (Duration.zero, Duration.zero)
            let last = ContinuousClock.now + .milliseconds(500)
            while .now < last {
                let (begun, before) = (ContinuousClock.now, site.proxy.processorTime)
                try other.send(site.proxy.request("GET", "/x"))
                #expect(try other.answer().text == "hello")
                longest = max(longest, ContinuousClock.now - begun)
                most = max(most, site.proxy.processorTime - before)
            }
            note(
                "the longest wait of another client beside a flood of key updates, the program's most work meanwhile",
                "\(longest), \(most)")
            // Without a bound it took as long as the flood, and the more of them the longer.
            #expect(most < .milliseconds(200) && longest < aStall)
        }
    }

    @Test func `a connection that says nothing makes room for another client`() throws {
        try SecureSite.run(.workers(1), .other(section: "clients", key: "max-connections", value: "10")) { site in
            let silent = try (0..<10).map { _ in try site.raw.connect() }
            try eventually("one has made room") { (try? site.get("/x").text) == "hello" }
            try eventually("and another one") { try site.plain.get("/x").status == 200 }
            #expect(silent.contains { $0.isClosed() })
        }
    }

    @Test func `a connection that says nothing delays the end of the program by less than its head-timeout`() throws {
        try SecureSite.run(.headTimeout(.seconds(60))) { site in
            let silent = try site.raw.connect()
            #expect(try isWell(site))
            site.proxy.terminate()
            #expect(try site.proxy.exited() == .code(0))
            _ = silent.isClosed()
            #expect(silent.isEndedByPeer)
        }
    }

    /// RFC 8446 §4.6.3: each asks for one of the program's.
    @Test func `a flood of key updates is answered within bounds of memory`() throws {
        try SecureSite.run { site in
            let (client, end) = try opened(site)
            let before = site.proxy.residentBytes
            // Its answers are never read. It may be sent away, which is right, too.
            for _ in 0..<300 {
                for _ in 0..<200 { end.updateKeys(asksBack: true) }
                guard (try? client.send(end.takeOutgoing())) != nil else { break }
            }
            #expect(site.proxy.residentBytes - before < 16 << 20)
            #expect(try isWell(site))
        }
    }
}
