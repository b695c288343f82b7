import Testing

/// Everything at once on one connection.
@Suite(
    .heavyScenario, .overHTTP1("The peer makes its frames itself."),
    .clientsInTheClear("The peer does not ask for HTTP/2 by ALPN."))
struct TortureTests {
    /// 50 streams of 10 MB: one is not read, one is reset, one is urgent.
    @Test(arguments: [true, false])
    func `of fifty large streams the urgent one is complete first, and all that are read are intact`(
        _ isStored: Bool
    ) throws {
        try scenario(.memory(mebibytes: 1024), .sendTimeout(.seconds(60))) { origin, proxy in
            let length = 10_000_000
            let rule = isStored ? "max-age=600" : "no-store"
            for number in 0..<50 {
                origin.on("/\(number)") { _ in
                    [.answer(200, "Cache-Control: \(rule)", pattern: length, seed: number)]
                }
            }
            if isStored { for number in 0..<50 { try proxy.get("/\(number)", FieldBlock.host) } }
            let peer = try FramePeer(with: proxy, window: 1 << 20)
            var streams: [Int] = []
            for number in 0..<50 {
                let stream = peer.newStream()
                streams.append(stream)
                peer.expect(Pattern(seed: number), on: stream)
                if number == 10 { peer.heldStreams = [stream] }
                let fields: [Field] = number == 40 ? [("priority", "u=0")] : []
                try peer.send(.headers(stream, .request("GET", "/\(number)", fields)))
            }
            let begun = Instant.now
            let (held, reset, urgent) = (streams[10], streams[20], streams[40])
            try peer.wait("the one has begun") { $0.answer(reset).body.length > 0 }
            try peer.send(.reset(reset))
            let rest = streams.filter { $0 != held && $0 != reset }
            try peer.wait("the rest is complete", within: .seconds(60)) { peer in
                rest.allSatisfy { peer.answer($0).isOver }
            }
            let took = Instant.now - begun
            #expect(rest.allSatisfy { peer.answer($0).isWhole(length) }, "\(peer.soFar)")
            let ends = rest.compactMap { peer.answer($0).endedAt }
            // What is not stored comes as its origin sends it.
            if isStored { #expect(peer.answer(urgent).endedAt == ends.min(), "the urgent one is first") }
            #expect(!peer.answer(held).isOver && peer.answer(held).body.length <= 1 << 20)
            #expect(peer.goAways.isEmpty)
            let alone = try measured {
                let client = try proxy.connect()
                for number in 0..<48 {
                    try client.send(proxy.request("GET", "/\(number)", [FieldBlock.host]))
                    _ = try client.answer()
                }
            }
            note(
                "48 streams of 10 MB on one connection; one after another over HTTP/1.1",
                "\(took.rounded), \(alone.rounded)")
            peer.heldStreams = []
            try peer.send(.windowUpdate(held, length))
            #expect(try peer.finished(held).isWhole(length), "\(peer.soFar)")
        }
    }

    /// The origin's bytes come while many streams of many connections follow them.
    @Test func `ten connections of a hundred streams follow one large fetch, and each has all of it`() throws {
        try scenario(.memory(mebibytes: 64)) { origin, proxy in
            let length = 400_000
            let gate = Gate()
            origin.on("/x") { _ in
                [
                    .head(200, "Cache-Control: max-age=60", "Content-Length: \(length)"), .pattern(0..<1000),
                    .gate(gate),
                    .pattern(1000..<length),
                ]
            }
            let peers = try (0..<10).map { _ in try FramePeer(with: proxy, window: 1 << 20) }
            let streams = try peers.map { peer in try (0..<100).map { _ in try peer.get("/x") } }
            try proxy.joined(1000)
            let before = proxy.residentBytes
            gate.open()
            for (peer, streams) in zip(peers, streams) {
                for stream in streams { #expect(try peer.finished(stream).isWhole(length), "\(peer.soFar)") }
            }
            let growth = proxy.residentBytes - before
            note("memory for 1,000 streams that follow one fetch, in MiB", growth >> 20)
            #expect(growth < 64 << 20)
            #expect(origin.count("/x") == 1)
        }
    }

    @Test func `a thousand connections of ten streams follow one fetch of two seconds, and each has all of it`() throws
    {
        try scenario(.workers(2)) { origin, proxy in
            let length = 4000
            let gate = Gate()
            origin.on("/cold") { _ in
                [
                    .gate(gate), .head(200, "Cache-Control: max-age=60", "Content-Length: \(length)"),
                    .pattern(length, over: .seconds(2), in: 20),
                ]
            }
            let peers = try (0..<1000).map { _ in try FramePeer(with: proxy) }
            let streams = try peers.map { peer in try (0..<10).map { _ in try peer.get("/cold") } }
            try proxy.joined(10_000, within: .seconds(60))
            gate.open()
            for (peer, streams) in zip(peers, streams) {
                for stream in streams { #expect(try peer.finished(stream).isWhole(length), "\(peer.soFar)") }
            }
            #expect(origin.count("/cold") == 1)
        }
    }
}
