import Glibc
import Testing

/// How connections of HTTP/2 begin, go on and end.
@Suite(
    .scenario, .overHTTP1("The peer makes its frames itself."),
    .clientsInTheClear("The peer does not ask for HTTP/2 by ALPN."))
struct ConnectionEndTests {
    @Test func `PING is answered, and SETTINGS are acknowledged`() throws {
        try scenario { _, proxy in
            let peer = try FramePeer(with: proxy)
            try peer.send(.ping(7), .settings([(Frame.Parameter.frameSize, 20_000)]))
            try peer.wait("a PING's answer") { $0.pongs == [[UInt8](repeating: 7, count: 8)] }
            // Those of its own, and two answers.
            try peer.wait("SETTINGS") { $0.counts[Frame.Kind.settings] == 3 }
            #expect(peer.goAways.isEmpty)
        }
    }

    /// RFC 9113 §6.8: first with the greatest number there is, then with that of the last request.
    @Test func `at SIGTERM a stream in flight completes, and the connection ends behind two GOAWAYs`() throws {
        try scenario(.workers(1)) { origin, proxy in
            let gate = Gate()
            origin.on("/x") { _ in
                [.head(200, "Content-Length: 200000"), .pattern(0..<100_000), .gate(gate), .pattern(100_000..<200_000)]
            }
            origin.on("/y") { _ in [.answer(200, "Cache-Control: no-store", body: "y")] }
            let (peer, idle) = (try FramePeer(with: proxy, window: 1 << 20), try FramePeer(with: proxy))
            let stream = try peer.get("/x")
            try peer.wait("half is there") { $0.answer(stream).body.length == 100_000 }
            peer.answersPings = false
            proxy.terminate()
            try peer.wait("the first GOAWAY") { !$0.goAways.isEmpty }
            #expect(peer.goAways[0].code == ErrorCode.none && peer.goAways[0].last == 0x7FFF_FFFF, "\(peer.soFar)")
            // A request that has crossed it.
            let crossing = try peer.get("/y")
            #expect(try peer.finished(crossing).text == "y", "\(peer.soFar)")
            // All that was sent before has arrived.
            try peer.beginAnsweringPings()
            try peer.wait("the second GOAWAY") { $0.goAways.count == 2 }
            #expect(peer.goAways[1].code == ErrorCode.none && peer.goAways[1].last == crossing, "\(peer.soFar)")
            let late = try peer.get("/late")
            #expect(idle.isClosed() && idle.goAway == ErrorCode.none, "an idle one ends at once: \(idle.soFar)")
            gate.open()
            let answer = try peer.finished(stream)
            #expect(answer.isWhole(200_000), "\(peer.soFar)")
            #expect(peer.isClosed() && !peer.isReset, "\(peer.soFar)")
            #expect(peer.answer(late).status == 0 && origin.count("/late") == 0)
            #expect(try proxy.exited() == .code(0))
        }
    }

    @Test func `a client that answers no PING is cut after ping-interval and ping-timeout, and one that does is not`()
        throws
    {
        try scenario(
            .other(section: "clients", key: "ping-interval", value: "300ms"),
            .other(section: "clients", key: "ping-timeout", value: "2s"),
            .other(section: "clients", key: "max-streams", value: "7"),
            .other(section: "clients", key: "stream-window", value: "16KiB")
        ) { origin, proxy in
            let gate = Gate()
            origin.on("/x") { _ in [.gate(gate), .answer(200, "Cache-Control: no-store", body: "x")] }
            let (silent, alive) = (try FramePeer(with: proxy), try FramePeer(with: proxy))
            silent.answersPings = false
            _ = try silent.get("/x")
            let stream = try alive.get("/x")
            let deadline = Instant.now + FramePeer.patience
            while !silent.isOver, .now < deadline {
                for peer in [silent, alive] { peer.listen(for: .milliseconds(20)) }
            }
            #expect(silent.isOver, "\(silent.soFar)")
            #expect(!alive.isOver && alive.settings[Frame.Parameter.streams] == 7, "\(alive.soFar)")
            gate.open()
            #expect(try alive.finished(stream).text == "x", "\(alive.soFar)")
        }
    }

    @Test func `an idle connection is closed after idle-timeout, with GOAWAY`() throws {
        try scenario(.idleTimeout(.milliseconds(500))) { origin, proxy in
            origin.on("/x") { _ in [.answer(200, body: "x")] }
            let (fresh, used) = (try FramePeer(with: proxy), try FramePeer(with: proxy))
            #expect(try used.fetch("/x").text == "x")
            for peer in [fresh, used] {
                #expect(peer.isClosed(within: .milliseconds(500) + aStall) && !peer.isReset, "\(peer.soFar)")
                #expect(peer.goAway == ErrorCode.none, "\(peer.soFar)")
            }
        }
    }

    /// No request is under way, whatever else comes.
    @Test func `PING does not keep an idle connection open`() throws {
        try scenario(.idleTimeout(.milliseconds(500))) { _, proxy in
            let peer = try FramePeer(with: proxy)
            let deadline = Instant.now + .milliseconds(500) + aStall
            while !peer.isOver, .now < deadline {
                try peer.send(.ping())
                peer.listen(for: .milliseconds(50))
            }
            #expect(peer.isOver, "\(peer.soFar)")
        }
    }

    /// Number 3 is a frame of which nobody knows that it has a head.
    @Test(arguments: [0, 1, 2, 3])
    func `a connection whose next frame or head does not come to its end is closed after head-timeout or idle-timeout`(
        _ number: Int
    ) throws {
        let idle = Duration.milliseconds(number == 3 ? 500 : 600_000)
        try scenario(.headTimeout(.milliseconds(500)), .idleTimeout(idle)) { origin, proxy in
            let head = Frame.headers(1, .request("GET", "/x"), endsFields: false).bytes
            let begun = [
                Array(Frame.preface[..<20]), Frame.preface + Frame.settings().bytes + head,
                Frame.preface + Frame.settings().bytes + head.dropLast(5),
                Frame.preface + Frame.settings().bytes + head.prefix(5),
            ]
            let peer = try FramePeer(with: proxy, begins: false)
            let start = Instant.now
            try peer.send(bytes: begun[number])
            let isClosed = peer.isClosed(within: .milliseconds(500) + aStall)
            #expect(isClosed, "\(peer.soFar)")
            #expect(.now - start > .milliseconds(400), "\(peer.soFar)\n\(proxy.diagnostics.suffix(300))")
            #expect(origin.total == 0)
        }
    }

    /// Bytes come, but no request does.
    @Test func `a head that arrives byte by byte is slow too`() throws {
        try scenario(.headTimeout(.milliseconds(500)), .idleTimeout(.seconds(600))) { _, proxy in
            let peer = try FramePeer(with: proxy)
            try peer.wait("its SETTINGS, which are acknowledged") { !$0.settings.isEmpty }
            var rest = Frame.headers(1, .request("GET", "/x", [("x", String(repeating: "y", count: 5000))])).bytes[...]
            let deadline = Instant.now + .milliseconds(500) + aStall
            while !peer.isOver, .now < deadline {
                try peer.send(bytes: [rest.popFirst() ?? 0])
                peer.listen(for: .milliseconds(20))
            }
            #expect(peer.isOver, "\(peer.soFar)")
        }
    }

    @Test func `content that stalls ends its stream after body-timeout, and no other stream`() throws {
        try scenario(.bodyTimeout(.milliseconds(500))) { origin, proxy in
            origin.on("/x") { _ in [.requestBody, .answer(200, body: "x")] }
            origin.on("/y") { _ in [.answer(200, "Cache-Control: no-store", body: "y")] }
            let peer = try FramePeer(with: proxy)
            let stream = try peer.open(.request("POST", "/x"), ends: false)
            try peer.send(.data(stream, "abc"))
            let answer = try peer.finished(stream, within: .milliseconds(500) + aStall)
            #expect(answer.status == 408 || answer.reset != nil, "\(peer.soFar)")
            try eventually("the origin is told") { origin.requests("/x").allSatisfy { $0.wasAbandoned } }
            #expect(try peer.fetch("/y").text == "y", "\(peer.soFar)")
        }
    }

    @Test func `a client that leaves takes all its streams with it`() throws {
        try scenario(.whenLastLeaves("cancel")) { origin, proxy in
            origin.on("*") { _ in [.head(200, "Cache-Control: no-store", "Content-Length: 100"), .silence] }
            var peer: FramePeer? = try FramePeer(with: proxy)
            for number in 0..<50 { _ = try peer?.get("/\(number)") }
            try eventually("all are asked") { origin.total == 50 }
            peer = nil
            try eventually("all are given up") { try proxy.metric(.inFlight) == 0 && proxy.metric(.openClients) == 0 }
        }
    }

    @Test func `a client that has sent all it will still gets its responses`() throws {
        try scenario { origin, proxy in
            let gate = Gate()
            origin.on("/x") { _ in [.gate(gate), .answer(200, body: "x")] }
            let peer = try FramePeer(with: proxy)
            let stream = try peer.get("/x")
            try eventually("it is asked") { origin.count("/x") == 1 }
            try peer.send(.goAway())
            gate.open()
            let answer = try peer.finished(stream)
            #expect(answer.text == "x", "\(peer.soFar)")
            #expect(peer.isClosed(), "\(peer.soFar)")
        }
    }

    @Test func `the access log has the protocol, and a line for each stream`() throws {
        try scenario(.accessLog) { origin, proxy in
            origin.on("/x") { _ in [.answer(200, "Cache-Control: max-age=60", body: "hello")] }
            origin.on("/slow") { _ in [.silence] }
            let peer = try FramePeer(with: proxy)
            for _ in 0..<2 { _ = try peer.fetch("/x", [("user-agent", "mine")]) }
            let slow = try peer.get("/slow")
            try eventually("it is asked") { origin.count("/slow") == 1 }
            try peer.send(.reset(slow))
            _ = try proxy.get("/x")
            try eventually("four lines") { try proxy.accessLog.count == 4 }
            let lines = try proxy.accessLog
            #expect(lines.count { $0["protocol"]?.string == "HTTP/2.0" } == 3, "\(lines)")
            #expect(lines.count { $0["protocol"]?.string == "HTTP/1.1" } == 1, "\(lines)")
            #expect(lines.count { $0["target"]?.string == "/x" && $0["bytes"]?.number == 5 } == 3)
            #expect(lines.count { $0["user_agent"]?.string == "mine" } == 2)
            #expect(lines.count { $0["target"]?.string == "/slow" && $0["aborted"] == .bool(true) } == 1)
        }
    }

    @Test(arguments: [
        "PRI * HTTP/2.0\r\n\r\nSN\r\n\r\n", "PRI * HTTP/2.0\r\nHost: a\r\n\r\n", "PRI / HTTP/2.0\r\n\r\n",
    ])
    func `what only looks like the preface is refused`(_ text: String) throws {
        try scenario { origin, proxy in
            let client = try proxy.connect()
            try client.send(text + "\r\n")
            let answer = try client.answer()
            #expect(answer.status >= 400 && answer.isClean)
            #expect(client.isClosed())
            #expect(origin.total == 0)
        }
    }

    @Test func `a preface in any two pieces is one`() throws {
        try scenario { origin, proxy in
            origin.on("/x") { _ in [.answer(200, "Cache-Control: max-age=60", body: "x")] }
            let bytes = Frame.preface + Frame.settings().bytes + Frame.headers(1, .request("GET", "/x")).bytes
            for count in 1..<bytes.count {
                let peer = try FramePeer(with: proxy, begins: false)
                let stream = peer.newStream()
                let before = try proxy.metric(.clientReceivedBytes)
                try peer.send(bytes: Array(bytes[..<count]))
                try eventually("the first \(count) are read") {
                    try proxy.metric(.clientReceivedBytes) >= before + count
                }
                try peer.send(bytes: Array(bytes[count...]))
                let answer = try? peer.finished(stream, within: .seconds(2))
                #expect(answer?.text == "x", "\(count) bytes first")
            }
        }
    }

    @Test(arguments: [0, 1, 2])
    func `a connection that does not begin with SETTINGS is ended`(_ number: Int) throws {
        try scenario { origin, proxy in
            let first = [Frame.ping(), .headers(1, .request("GET", "/x")), .windowUpdate(0, 5)][number]
            let peer = try FramePeer(with: proxy, begins: false)
            try peer.send(bytes: Frame.preface + first.bytes)
            #expect(peer.isClosed() && peer.goAway == .protocolError, "\(peer.soFar)")
            #expect(origin.total == 0)
        }
    }
}
