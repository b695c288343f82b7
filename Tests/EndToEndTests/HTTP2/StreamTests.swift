import Testing

/// Each stream is a request like any other, and holds up none beside it.
@Suite(
    .scenario, .overHTTP1("The peer makes its frames itself."),
    .clientsInTheClear("The peer does not ask for HTTP/2 by ALPN."))
struct StreamTests {
    @Test func `a hundred streams of one connection for one URL are one fetch`() throws {
        try scenario { origin, proxy in
            let gate = Gate()
            origin.on("/x") { _ in [.gate(gate), .answer(200, "Cache-Control: max-age=60", pattern: 100_000)] }
            let peer = try FramePeer(with: proxy, window: 1 << 20)
            let streams = try (0..<100).map { _ in try peer.get("/x") }
            try proxy.joined(100)
            gate.open()
            for stream in streams { #expect(try peer.finished(stream).isWhole(100_000), "\(peer.soFar)") }
            #expect(origin.count("/x") == 1)
        }
    }

    /// RFC 9113 §5.1.2 has a stream error; nghttp2 ends the connection of a client that knows the limit.
    @Test func `a stream more than there may be is not served`() throws {
        try scenario { origin, proxy in
            let gate = Gate()
            origin.on("*") { _ in [.gate(gate), .answer(200, "Cache-Control: no-store", body: "x")] }
            let peer = try FramePeer(with: proxy)
            try peer.wait("its SETTINGS") { !$0.settings.isEmpty }
            let most = peer.settings[Frame.Parameter.streams] ?? 0
            #expect(most == 100)
            let streams = try (0..<most).map { try peer.get("/\($0)") }
            let extra = try peer.get("/extra")
            try peer.wait("the end of the stream") { $0.answers[extra]?.reset == .refusedStream || !$0.goAways.isEmpty }
            gate.open()
            if peer.goAways.isEmpty {
                for stream in streams { #expect(try peer.finished(stream).text == "x", "\(peer.soFar)") }
            } else {
                #expect(peer.goAways.last?.code == .protocolError, "\(peer.soFar)")
            }
            #expect(origin.count("/extra") == 0)
        }
    }

    @Test(arguments: [true, false])
    func `a stream that is not read holds up no other stream, and no other client of its response`(
        _ isStored: Bool
    ) throws {
        try scenario { origin, proxy in
            let length = 2_000_000
            origin.on("/x") { _ in
                [.answer(200, "Cache-Control: \(isStored ? "max-age=60" : "no-store")", pattern: length)]
            }
            origin.on("/y") { _ in [.answer(200, "Cache-Control: no-store", pattern: length)] }
            let peer = try FramePeer(with: proxy, [(Frame.Parameter.initialWindow, 10_000)])
            try peer.send(.windowUpdate(0, 16 << 20))
            let held = try peer.get("/x")
            peer.heldStreams = [held]
            try peer.wait("its window is used up") { $0.answer(held).body.length == 10_000 }
            peer.initialWindow = 10_000
            for target in ["/x", "/y", "/x"] { #expect(try peer.fetch(target).isWhole(length), "\(peer.soFar)") }
            #expect(try proxy.get("/x", FieldBlock.host).isWhole(length))
            if isStored { #expect(origin.count("/x") == 1) }
            #expect(peer.answer(held).body.length == 10_000)
            peer.heldStreams = []
            try peer.send(.windowUpdate(held, length))
            let whole = try peer.finished(held)
            #expect(whole.isWhole(length), "\(peer.soFar)")
        }
    }

    @Test func `a stream that is reset leaves its fetch, and the others on it go on`() throws {
        try scenario(.whenLastLeaves("cancel")) { origin, proxy in
            let gate = Gate()
            for path in ["/shared", "/alone"] {
                origin.on(path) { _ in
                    [
                        .head(200, "Cache-Control: max-age=60", "Content-Length: 200000"), .pattern(0..<100_000),
                        .gate(gate),
                        .pattern(100_000..<200_000),
                    ]
                }
            }
            let peer = try FramePeer(with: proxy, window: 1 << 20)
            let (first, second, alone) = (try peer.get("/shared"), try peer.get("/shared"), try peer.get("/alone"))
            try peer.wait("all have begun") { peer in
                [first, second, alone].allSatisfy { peer.answer($0).body.length == 100_000 }
            }
            try peer.send(.reset(first), .reset(alone))
            try eventually("nobody waits for one of them") { try proxy.metric(.inFlight) == 1 }
            try eventually("its origin is told") { origin.requests("/alone")[0].wasAbandoned }
            gate.open()
            let answer = try peer.finished(second)
            #expect(answer.isWhole(200_000), "\(peer.soFar)")
            #expect(peer.answer(first).body.length == 100_000 && peer.goAways.isEmpty)
            #expect(origin.count("/shared") == 1)
        }
    }

    @Test func `HEAD, 304, 204 and empty responses have no content`() throws {
        try scenario { origin, proxy in
            origin.on("/x") { _ in [.answer(200, "Cache-Control: max-age=60", "ETag: \"1\"", body: "hello")] }
            origin.on("/none") { _ in [.head(204, "Cache-Control: no-store")] }
            origin.on("/empty") { _ in [.answer(200, "Cache-Control: no-store")] }
            let peer = try FramePeer(with: proxy)
            let whole = try peer.fetch("/x")
            #expect(whole.text == "hello" && whole["etag"] == "\"1\"" && whole["content-length"] == "5")
            let head = try peer.finished(peer.open(.request("HEAD", "/x")))
            #expect(head.status == 200 && head["content-length"] == "5" && head.pieces == 0)
            let miss = try peer.finished(peer.open(.request("HEAD", "/x?2")))
            #expect(miss.status == 200 && miss["content-length"] == "5" && miss.body.length == 0)
            let same = try peer.fetch("/x", [("if-none-match", "\"1\"")])
            #expect(same.status == 304 && same.pieces == 0)
            let none = try peer.fetch("/none")
            #expect(none.status == 204 && none["content-length"] == nil && none.body.length == 0)
            let empty = try peer.fetch("/empty")
            #expect(empty.status == 200 && empty.body.length == 0 && empty.isComplete)
            for answer in [whole, head, miss, same, none, empty] {
                #expect(answer.isComplete, "\(answer.soFar)")
                for name in ["connection", "transfer-encoding", "keep-alive"] { #expect(answer[name] == nil) }
                #expect(answer.fields.allSatisfy { $0.name == $0.name.lowercased() })
            }
        }
    }

    @Test func `content streams to the origin and back while both go on`() throws {
        try scenario(.bodyBuffer(0)) { origin, proxy in
            let gate = Gate()
            origin.on("/x") { _ in
                [
                    .head(200, "Cache-Control: no-store", "Transfer-Encoding: chunked"), .chunk("first"), .gate(gate),
                    .requestBody, .chunk("last"), .lastChunk(),
                ]
            }
            let peer = try FramePeer(with: proxy)
            let stream = try peer.open(.request("POST", "/x"), ends: false)
            try peer.send(.data(stream, "one,"))
            try eventually("the origin has the beginning") { origin.requests("/x").first?.body.text == "one," }
            try peer.wait("the response begins") { $0.answer(stream).text == "first" }
            try peer.send(.data(stream, "two,"))
            try eventually("the origin has more") { origin.requests("/x").first?.body.text == "one,two," }
            gate.open()
            try peer.send(.data(stream, "three", ends: true))
            let answer = try peer.finished(stream)
            #expect(answer.text == "firstlast" && answer.isComplete, "\(peer.soFar)")
            #expect(origin.requests("/x")[0].body.text == "one,two,three" && origin.requests("/x")[0].isWhole)
        }
    }

    @Test(arguments: [true, false])
    func `ten megabytes of content arrive at the origin whole, with the window that this allows`(_ isSized: Bool) throws
    {
        try scenario(.maxBodySize(20 << 20)) { origin, proxy in
            let length = 10_000_000
            origin.on("/x") { _ in [.requestBody, .answer(200, "Cache-Control: no-store", body: "thanks")] }
            let peer = try FramePeer(with: proxy)
            try peer.wait("its SETTINGS") { !$0.settings.isEmpty }
            let length_ = isSized ? [("content-length", "\(length)")] : [Field]()
            let stream = try peer.open(.request("POST", "/x", length_), ends: false)
            try peer.upload(Pattern(), length, on: stream)
            let answer = try peer.finished(stream)
            #expect(answer.text == "thanks", "\(peer.soFar)")
            let request = origin.requests("/x")[0]
            #expect(request.body.length == length && request.body.isIntact && request.isWhole)
        }
    }

    /// RFC 9113 §6.9.
    @Test func `an origin that does not read holds back the content of its stream, and no other stream`() throws {
        try scenario(.maxBodySize(64 << 20)) { origin, proxy in
            let gate = Gate()
            origin.on("/slow") { _ in [.deaf(true), .gate(gate), .deaf(false), .requestBody, .answer(200)] }
            origin.on("/x") { _ in [.requestBody, .answer(200, "Cache-Control: no-store", body: "x")] }
            let peer = try FramePeer(with: proxy)
            try peer.wait("its SETTINGS") { !$0.settings.isEmpty }
            let before = proxy.residentBytes
            let slow = try peer.open(.request("POST", "/slow"), ends: false)
            let sent = try peer.upload(Pattern(), 32 << 20, on: slow, within: .seconds(2), ends: false)
            #expect(sent < 20 << 20, "it is held back")
            let other = try peer.open(.request("POST", "/x"), ends: false)
            try peer.upload(Pattern(), 500_000, on: other)
            #expect(try peer.finished(other).text == "x", "\(peer.soFar)")
            #expect(proxy.residentBytes - before < 32 << 20)
            gate.open()
            try peer.upload(Pattern(), sent + 100_000, from: sent, on: slow)
            #expect(try peer.finished(slow).status == 200, "\(peer.soFar)")
        }
    }

    @Test func `trailers pass both ways`() throws {
        try scenario { origin, proxy in
            origin.on("/x") { _ in
                [
                    .requestBody, .head(200, "Cache-Control: no-store", "Transfer-Encoding: chunked", "Trailer: X-Sum"),
                    .chunk("content"), .lastChunk("X-Sum: 7"),
                ]
            }
            let peer = try FramePeer(with: proxy)
            let block = FieldBlock.request("POST", "/x", [("te", "trailers"), ("trailer", "x-mine")])
            let stream = try peer.open(block, ends: false)
            try peer.send(.data(stream, "abc"), .headers(stream, FieldBlock([("x-mine", "3")])))
            let answer = try peer.finished(stream)
            #expect(answer.text == "content" && answer.isComplete, "\(peer.soFar)")
            #expect(
                answer.trailers.map(\.name) == ["x-sum"] && answer.trailers.first?.value == "7", "\(answer.trailers)")
            #expect(origin.requests("/x")[0].body.text == "abc")
            #expect(origin.requests("/x")[0].body.trailers.map { $0.lowercased() } == ["x-mine: 3"])
        }
    }

    @Test func `an interim response comes before the final one`() throws {
        try scenario { origin, proxy in
            let gate = Gate()
            origin.on("/x") { _ in
                [
                    .interim(103, "Link: </style.css>; rel=preload"), .gate(gate),
                    .answer(200, "Cache-Control: no-store", body: "x"),
                ]
            }
            let peer = try FramePeer(with: proxy)
            let stream = try peer.get("/x")
            try peer.wait("103") { $0.answer(stream).interim.count == 1 }
            gate.open()
            let answer = try peer.finished(stream)
            #expect(answer.text == "x")
            #expect(answer.interim[0].map(\.name) == [":status", "link"] && answer.interim[0][0].value == "103")
        }
    }

    @Test func `expect is answered with 100, by whoever answers it`() throws {
        try scenario { origin, proxy in
            origin.on("/x") { _ in [.interim(100), .requestBody, .answer(200, "Cache-Control: no-store", body: "x")] }
            let peer = try FramePeer(with: proxy)
            let stream = try peer.open(.request("POST", "/x", [("expect", "100-continue")]), ends: false)
            try peer.wait("100") { $0.answer(stream).interim.count == 1 }
            try peer.send(.data(stream, "abc", ends: true))
            let answer = try peer.finished(stream)
            #expect(answer.text == "x" && answer.interim.count == 1, "\(peer.soFar)")
            #expect(origin.requests("/x")[0].body.text == "abc")
        }
    }

    @Test func `a response that the origin cuts off is reset, and not ended`() throws {
        try scenario(.resume(0)) { origin, proxy in
            origin.on("/sized") { _ in [.head(200, "Content-Length: 100"), .pattern(0..<50), .close] }
            origin.on("/chunked") { _ in
                [.head(200, "Transfer-Encoding: chunked"), .chunk(pattern: 0..<50), .close]
            }
            origin.on("/x") { _ in [.answer(200, body: "x")] }
            let peer = try FramePeer(with: proxy)
            for target in ["/sized", "/chunked"] {
                let answer = try peer.fetch(target)
                #expect(!answer.isComplete && answer.reset == .internalError, "\(target): \(peer.soFar)")
            }
            #expect(try peer.fetch("/x").text == "x", "the connection goes on")
        }
    }

    /// RFC 9113 §8.1.
    @Test func `a response before the end of the request asks for no more of it`() throws {
        try scenario(.maxBodySize(1 << 20)) { origin, proxy in
            let peer = try FramePeer(with: proxy)
            let large = [("content-length", "\(2 << 20)")]
            let stream = try peer.open(.request("POST", "/x", large), ends: false)
            let answer = try peer.finished(stream)
            #expect(answer.status == 413, "\(peer.soFar)")
            try peer.wait("the rest is not wanted") { $0.answer(stream).reset != nil }
            #expect(peer.answer(stream).reset == ErrorCode.none, "\(peer.soFar)")
            #expect(origin.total == 0)
        }
    }
}

extension FramePeer {
    /// Sends content as the windows of the program let it.
    /// - Parameter limit: `nil`: throws when it does not get on.
    /// - Returns: how many bytes are sent in all.
    @discardableResult
    func upload(
        _ pattern: Pattern, _ length: Int, from start: Int = 0, on stream: Int, within limit: Duration? = nil,
        ends: Bool = true
    ) throws -> Int {
        var sent = start
        let deadline = Instant.now + (limit ?? Self.patience)
        while sent < length, !isOver, !answer(stream).isOver {
            let room = min(sendRoom(of: stream), 16_384, length - sent)
            guard room > 0 else {
                if .now >= deadline {
                    guard limit == nil else { return sent }
                    throw Late(what: "a window opens: \(soFar)", place: "FramePeer")
                }
                listen(for: .milliseconds(1))
                continue
            }
            try send(.data(stream, pattern.bytes(sent..<sent + room), ends: ends && sent + room == length))
            sent += room
        }
        return sent
    }
}
