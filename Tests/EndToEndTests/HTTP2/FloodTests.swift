import Testing

/// Frames that cost the program more than the peer end the peer's connection, with the reason, before they cost others
/// anything (RFC 9113 §10.5).
@Suite(
    .largeScenario, .overHTTP1("The peer makes its frames itself."),
    .clientsInTheClear("The peer does not ask for HTTP/2 by ALPN."))
struct FloodTests {
    struct Case: Sendable, CustomTestStringConvertible {
        let what: String
        let reason: String
        /// Whether each batch waits for the end of the streams before: more at once are too many streams.
        var waits = false
        /// What a connection sends first, then again and again.
        var begins: @Sendable (FramePeer) -> [Frame] = { _ in [] }
        let batch: @Sendable (FramePeer) -> [Frame]
        var testDescription: String { what }
    }

    private static func repeated(_ frame: Frame, _ count: Int = 100) -> [Frame] {
        [Frame](repeating: frame, count: count)
    }

    private static func opened(_ peer: FramePeer, _ path: String = "/slow") -> [Frame] {
        [.headers(peer.newStream(), .request("POST", path), ends: false)]
    }

    static let frames: [Case] = [
        Case(what: "PING", reason: "too many PING or SETTINGS frames") { _ in repeated(.ping()) },
        Case(what: "a PING at a time", reason: "too many PING or SETTINGS frames") { _ in [.ping()] },
        Case(what: "empty SETTINGS", reason: "too many PING or SETTINGS frames") { _ in repeated(.settings()) },
        Case(what: "SETTINGS that move windows", reason: "too many PING or SETTINGS frames") { _ in
            (1...50).flatMap { number in
                [Frame.settings([(Frame.Parameter.initialWindow, number * 100), (Frame.Parameter.tableSize, number)])]
            }
        },
        Case(what: "PRIORITY", reason: "too many frames of priority or unknown type") { _ in
            (0..<100).map { .priority(1001 + 2 * $0) }
        },
        Case(what: "PRIORITY_UPDATE", reason: "too many frames of priority or unknown type") { _ in
            (0..<100).map { .priorityUpdate(1001 + 2 * $0, "u=1") }
        },
        Case(what: "frames of unknown type", reason: "too many frames of priority or unknown type") { _ in
            repeated(Frame(kind: 0xBB, payload: [UInt8](repeating: 0, count: 10)))
        },
        Case(what: "large frames of unknown type", reason: "too many frames of priority or unknown type") { _ in
            repeated(Frame(kind: 0xBB, payload: [UInt8](repeating: 0, count: 16_384)), 4)
        },
        Case(what: "empty DATA", reason: "too many empty DATA or WINDOW_UPDATE frames", begins: { opened($0) }) { _ in
            repeated(.data(1))
        },
        Case(what: "DATA of padding", reason: "too many empty DATA or WINDOW_UPDATE frames", begins: { opened($0) }) {
            _ in repeated(Frame(kind: Frame.Kind.data, flags: Frame.Flag.isPadded, stream: 1, payload: [0]))
        },
        Case(what: "WINDOW_UPDATE", reason: "too many empty DATA or WINDOW_UPDATE frames") { _ in
            repeated(.windowUpdate(0, 1))
        },
        Case(what: "RST_STREAM", reason: "too many RST_STREAM frames") { peer in
            (0..<50).flatMap { _ -> [Frame] in
                let stream = peer.newStream()
                return [.headers(stream, .request("GET", "/slow/\(stream)")), .reset(stream)]
            }
        },
        Case(what: "RST_STREAM of hits", reason: "too many RST_STREAM frames") { peer in
            (0..<50).flatMap { _ -> [Frame] in
                let stream = peer.newStream()
                return [.headers(stream, .request("GET", "/large")), .reset(stream)]
            }
        },
        Case(what: "upper-case names", reason: "too many requests with errors", waits: true) { peer in
            (0..<50).map { _ in .headers(peer.newStream(), .request("GET", "/x", [("Upper", "x")])) }
        },
        Case(what: "windows made too large", reason: "too many requests with errors", waits: true) { peer in
            (0..<50).flatMap { _ -> [Frame] in
                let stream = peer.newStream()
                return [.headers(stream, .request("GET", "/slow/\(stream)")), .windowUpdate(stream, 0x7FFF_FFFF)]
            }
        },
        Case(what: "less content than said", reason: "too many requests with errors", waits: true) { peer in
            (0..<50).flatMap { _ -> [Frame] in
                let stream = peer.newStream()
                let block = FieldBlock.request("POST", "/slow/\(stream)", [("content-length", "5")])
                return [.headers(stream, block, ends: false), .data(stream, "abc", ends: true)]
            }
        },
    ]

    @Test(arguments: frames)
    func `a flood of frames ends its connection with ENHANCE_YOUR_CALM, and no other client waits`(_ flood: Case) throws
    {
        var connections = 0
        try Attack.run(flood.what) { attack in
            let peer = try FramePeer(with: attack.proxy)
            try peer.send(flood.begins(peer))
            try attack.flood(peer, waits: flood.waits) { flood.batch(peer) }
            try #require(peer.goAway == .enhanceYourCalm, "\(flood.what): \(peer.soFar)")
            connections += 1
            // The bursts, and what one read of the socket holds.
            #expect(
                attack.origin.total < 2 + 1500 * connections, "\(flood.what): the origin was asked for little of it")
            if !attack.goesOn { try attack.logs(flood.reason) }
        }
    }

    /// What nghttp2 takes for an error of the whole connection.
    static let errors: [(Case, ErrorCode)] = [
        (
            Case(what: "WINDOW_UPDATE of 0", reason: "") { peer in
                let stream = peer.newStream()
                return [.headers(stream, .request("GET", "/slow")), .windowUpdate(stream, 0)]
            }, .protocolError
        ),
        (
            Case(what: "DATA behind the end of a request", reason: "") { peer in
                let stream = peer.newStream()
                return [.headers(stream, .request("GET", "/slow")), .data(stream, "more")]
            }, .streamClosed
        ),
        (
            Case(what: "HEADERS behind the end of a request", reason: "") { peer in
                let stream = peer.newStream()
                let again = FieldBlock([("x", "y")])
                return [.headers(stream, .request("GET", "/slow")), .headers(stream, again)]
            }, .streamClosed
        ),
        (
            Case(what: "more streams than it may have", reason: "") { peer in
                (0..<50).map { _ in .headers(peer.newStream(), .request("GET", "/slow")) }
            }, .protocolError
        ),
        (
            Case(what: "faulty streams, too many at once", reason: "") { peer in
                (0..<500).map { _ in .headers(peer.newStream(), .request("GET", "/x", [("Upper", "x")])) }
            }, .protocolError
        ),
        (Case(what: "an end of no stream", reason: "") { _ in [.reset(99)] }, .protocolError),
        (Case(what: "DATA of no stream", reason: "") { _ in [.data(99, "x")] }, .protocolError),
    ]

    @Test(arguments: errors)
    func `a peer that breaks the rules of frames is told how, and its connection ends`(
        _ error: (sent: Case, code: ErrorCode)
    ) throws {
        try Attack.run(error.sent.what) { attack in
            let peer = try FramePeer(with: attack.proxy)
            try attack.flood(peer) { error.sent.batch(peer) }
            // As an error of the stream it is counted, and of the connection it ends it at once.
            try #require(
                peer.goAway == error.code || peer.goAway == .enhanceYourCalm, "\(error.sent.what): \(peer.soFar)")
        }
    }

    @Test(arguments: [0, 1, 1000])
    func `a field section that goes on and on ends its connection`(_ size: Int) throws {
        try Attack.run("CONTINUATION of \(size) bytes") { attack in
            let peer = try FramePeer(with: attack.proxy)
            let stream = peer.newStream()
            try peer.send(.headers(stream, .request("GET", "/x"), endsFields: false))
            let line = FieldBlock([("x", String(repeating: "y", count: max(0, size - 4)))])
            // 0x88 is a line of the static table.
            let piece = size < 4 ? [UInt8](repeating: 0x88, count: size) : line.bytes
            try attack.flood(peer) { [Frame](repeating: .continuation(stream, piece), count: 100) }
            try #require(peer.goAway != nil && peer.goAway != ErrorCode.none, "\(size): \(peer.soFar)")
            #expect(attack.origin.count("/x") == 0)
        }
    }

    @Test func `a peer that floods and reads nothing is cut off`() throws {
        let send = Setting.sendTimeout(.seconds(1))
        try Attack.run("PING, and nothing read", send) { attack in
            let peer = try FramePeer(with: attack.proxy)
            peer.isReading = false
            let batch = [Frame](repeating: .ping(), count: 100).flatMap(\.bytes)
            let deadline = Instant.now + .seconds(20)
            while !peer.isOver, .now < deadline {
                guard try peer.offer(batch, within: .seconds(5)) else { break }
            }
            #expect(peer.isRefused || peer.isEnded, "\(peer.soFar)")
        }
    }
}
