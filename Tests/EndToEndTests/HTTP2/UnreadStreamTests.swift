import Testing

/// What a peer asks for and does not take costs the program little, and no other client anything.
@Suite(
    .largeScenario, .overHTTP1("The peer makes its frames itself."),
    .clientsInTheClear("The peer does not ask for HTTP/2 by ALPN."))
struct UnreadStreamTests {
    private static let send = Setting.sendTimeout(.seconds(1))

    /// Stored, and passed on.
    @Test(arguments: ["/large", "/own"])
    func `a peer that reads none of its large responses is cut off after send-timeout`(_ target: String) throws {
        try Attack.run("\(target) not read", Self.send, .memory(mebibytes: 64), mebibytes: 96) { attack in
            let peer = try FramePeer(with: attack.proxy, window: 64 << 20, receiveBuffer: 32 << 10)
            peer.isReading = false
            for _ in 0..<20 { try peer.get(target) }
            try eventually("it has asked") { try attack.proxy.metric(.openClients) >= 2 }
            try eventually("it is cut off", within: .seconds(1) + aStall * 2) {
                try attack.proxy.metric(.openClients) < 2
            }
        }
    }

    /// The peer lives and answers, but no window ever opens.
    @Test(arguments: ["/large", "/own"])
    func `a stream whose window stays closed is reset after send-timeout`(_ target: String) throws {
        try Attack.run("\(target) with closed windows", Self.send, .memory(mebibytes: 64), mebibytes: 96) { attack in
            let peer = try FramePeer(with: attack.proxy, window: 0)
            peer.opensWindows = false
            let streams = try (0..<20).map { _ in try peer.get(target) }
            try peer.wait("all are over", within: .seconds(1) + aStall * 2) { peer in
                peer.isEnded || streams.allSatisfy { peer.answer($0).reset != nil }
            }
            #expect(streams.allSatisfy { peer.answer($0).body.length == 0 })
        }
    }

    /// All streams have windows, the connection has none.
    @Test func `streams are reset after send-timeout when the connection's window stays closed`() throws {
        try Attack.run("the connection's window closed", Self.send, .memory(mebibytes: 64), mebibytes: 96) { attack in
            let peer = try FramePeer(with: attack.proxy, [(Frame.Parameter.initialWindow, 1 << 20)])
            peer.opensWindows = false
            let streams = try (0..<20).map { _ in try peer.get("/large") }
            try peer.wait("all are over", within: .seconds(1) + aStall * 2) { peer in
                peer.isEnded || streams.allSatisfy { peer.answer($0).reset != nil }
            }
            #expect(peer.answers.values.reduce(0) { $0 + $1.body.length } <= 65_535)
        }
    }

    /// Each WINDOW_UPDATE is one byte; so is each DATA frame then.
    @Test
    func `a peer that opens its window byte by byte slows nobody, and ends with ENHANCE_YOUR_CALM or send-timeout`()
        throws
    {
        try Attack.run("windows of a byte", Self.send, mebibytes: 64) { attack in
            let peer = try FramePeer(with: attack.proxy, window: 0)
            try peer.send(.windowUpdate(0, 1 << 20))
            peer.opensWindows = false
            let streams = try (0..<50).map { _ in try peer.get("/large") }
            let batch = streams.map { Frame.windowUpdate($0, 1) }
            let deadline = Instant.now + max(Attack.duration, .seconds(5)) + aStall
            while !peer.isOver, peer.goAways.isEmpty, .now < deadline {
                try peer.send(batch + batch + batch + batch)
                peer.listen(for: .zero)
            }
            #expect(peer.isClosed(within: aStall), "\(peer.soFar)")
            #expect(
                peer.goAway == .enhanceYourCalm || streams.allSatisfy { peer.answer($0).reset != nil }, "\(peer.soFar)")
        }
    }

    /// A window that each SETTINGS takes away again, with many streams that must be looked at.
    @Test func `a peer whose SETTINGS make windows negative gets no byte too many`() throws {
        try scenario { origin, proxy in
            origin.on("/large") { _ in [.answer(200, "Cache-Control: max-age=60", pattern: 1 << 20)] }
            let peer = try FramePeer(with: proxy, window: 1000)
            peer.opensWindows = false
            let streams = try (0..<10).map { _ in try peer.get("/large") }
            try peer.wait("each has its window") { peer in streams.allSatisfy { peer.answer($0).body.length == 1000 } }
            try peer.send(.settings([(Frame.Parameter.initialWindow, 500)]))
            for stream in streams { try peer.send(.windowUpdate(stream, 500)) }
            peer.listen(for: .milliseconds(100))
            #expect(streams.allSatisfy { peer.answer($0).body.length == 1000 }, "their windows are 0")
            for stream in streams { try peer.send(.windowUpdate(stream, 1)) }
            try peer.wait("each has one more") { peer in streams.allSatisfy { peer.answer($0).body.length == 1001 } }
        }
    }

    /// HPACK: one field of 4 KB, then thousands of single bytes that name it.
    @Test(arguments: ["x", "cookie"])
    func `a bomb of indexed fields is refused, and takes no memory`(_ name: String) throws {
        try Attack.run("an indexed-field bomb of \(name)") { attack in
            let peer = try FramePeer(with: attack.proxy)
            var first = FieldBlock.request("GET", "/x")
            first.add(name, String(repeating: "y", count: 3900), isKept: true)
            let kept = try peer.finished(peer.open(first))
            try #require(kept.status == 200, "\(peer.soFar)")
            for _ in 0..<20 where !peer.isOver && peer.goAways.isEmpty {
                var bomb = FieldBlock.request("GET", "/bomb")
                bomb.refer(to: FieldBlock.newest, times: 16_000 - bomb.bytes.count)
                let stream = peer.newStream()
                let more = [UInt8](repeating: 0x80 | UInt8(FieldBlock.newest), count: 16_000)
                try peer.send(
                    [.headers(stream, bomb, endsFields: false)]
                        + (0..<5).map { .continuation(stream, more, endsFields: $0 == 4) })
                try peer.wait("the bomb is refused") { $0.answer(stream).isOver || $0.isOver || !$0.goAways.isEmpty }
                let answer = peer.answer(stream)
                #expect(answer.status == 431 || answer.reset != nil || !peer.goAways.isEmpty, "\(peer.soFar)")
            }
            #expect(attack.origin.count("/bomb") == 0)
        }
    }

    /// RFC 7541 §4.2, §6.3.
    @Test func `an HPACK table that grows, shrinks, or is no HPACK harms nobody`() throws {
        try scenario { origin, proxy in
            origin.on("*") { _ in [.answer(200, "Cache-Control: no-store", body: "x")] }
            let peer = try FramePeer(with: proxy)
            for number in 0..<50 {
                var block = FieldBlock()
                block.setTableSize(0)
                block.setTableSize(4096)
                for field in FieldBlock.fields("GET", "/\(number)") { block.add(field.name, field.value, isKept: true) }
                let answer = try peer.finished(peer.open(block))
                try #require(answer.status == 200, "\(peer.soFar)")
            }
            var large = FieldBlock()
            large.setTableSize(1 << 20)
            for wrong in [
                large.bytes, [0x80], [0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF], [0xFE], [0x40, 0x7F, 0xFF],
                [0x00, 0x81, 0xFF],
            ] {
                let peer = try FramePeer(with: proxy)
                let stream = peer.newStream()
                try peer.send(Frame(kind: Frame.Kind.headers, flags: 0x5, stream: stream, payload: wrong))
                #expect(peer.isClosed(), "\(wrong): \(peer.soFar)")
                #expect(peer.goAway == ErrorCode(number: 0x9), "\(wrong): \(peer.soFar)")
            }
            #expect(origin.total == 50)
        }
    }
}
