import Testing

/// The program is stopped, or its container frozen, for longer than somebody may take. What has come meanwhile has come
/// in time: it is read before anybody is told to have been too slow.
@Suite(.scenario) struct StoppedProgramTests {
    /// What each of these tests sets, and how long the program stops.
    private static let bound = Duration.seconds(3)
    private static let stop = Duration.milliseconds(3700)

    /// Stops the program while `body` happens, and until the bound has passed.
    private static func stopping(_ proxy: Program, _ body: () throws -> Void) throws {
        try proxy.whileStopped {
            try body()
            System.nap(stop)
        }
    }

    private static func hasRead(_ proxy: Program) throws {
        let port = proxy.endpoint.port
        try eventually("the program has read what there is") { !System.hasUnreadBytes(ownPort: port) }
    }

    @Test func `a head that arrived during the stop causes no 504`() throws {
        try scenario(.firstByteTimeout(Self.bound)) { origin, proxy in
            let head = Gate()
            for path in ["/shared", "/own"] {
                let control = path == "/own" ? "no-store" : "max-age=60"
                origin.on(path) { _ in [.gate(head), .answer(200, "Cache-Control: \(control)", body: "here")] }
            }
            let (shared, own) = (proxy.crowd(20, get: "/shared"), proxy.crowd(1, get: "/own"))
            try proxy.joined(21)
            try eventually("the origin is asked") { origin.count("/shared") == 1 && origin.count("/own") == 1 }
            try Self.stopping(proxy) {
                head.open()
                try eventually("it is sent") {
                    origin.requests("/shared")[0].sent > 0 && origin.requests("/own")[0].sent > 0
                }
            }
            #expect((shared.finished() + own.finished()).allSatisfy { $0.status == 200 && $0.text == "here" })
        }
    }

    @Test func `the waiters of a head that arrived during the stop are not timed out`() throws {
        try scenario(.waitTimeout(Self.bound), .whenExceeded("503")) { origin, proxy in
            let head = Gate()
            origin.on("/x") { _ in [.gate(head), .answer(200, "Cache-Control: max-age=60", body: "here")] }
            let crowd = proxy.crowd(40, get: "/x")
            try proxy.joined(40)
            try Self.stopping(proxy) {
                head.open()
                try eventually("it is sent") { origin.requests("/x")[0].sent > 0 }
            }
            #expect(crowd.finished().allSatisfy { $0.status == 200 })
            #expect(origin.count("/x") == 1)
        }
    }

    @Test func `a body that went on during the stop is not cut off`() throws {
        try scenario(.noProgressTimeout(Self.bound)) { origin, proxy in
            let rest = Gate()
            origin.on("/x") { _ in
                [.head(200, "Content-Length: 6"), .text("one"), .gate(rest), .text("two")]
            }
            let client = try proxy.connect()
            try client.send(proxy.request("GET", "/x"))
            try client.progress { $0.text == "one" }
            try Self.stopping(proxy) {
                let before = origin.requests("/x")[0].sent
                rest.open()
                try eventually("it is sent") { origin.requests("/x")[0].sent > before }
            }
            #expect(try client.answer().text == "onetwo")
        }
    }

    @Test func `a fetch that went on during the stop is not overtaken`() throws {
        try scenario(.overtakeAfter(Self.bound)) { origin, proxy in
            let (more, rest) = (Gate(), Gate())
            origin.on("/x") { _ in
                [
                    .head(200, "Content-Length: 9", "Cache-Control: max-age=60"), .text("one"), .gate(more),
                    .text("two"), .gate(rest), .text("six"),
                ]
            }
            let client = try proxy.connect()
            try client.send(proxy.request("GET", "/x"))
            try client.progress { $0.text == "one" }
            try Self.stopping(proxy) {
                let before = origin.requests("/x")[0].sent
                more.open()
                try eventually("it is sent") { origin.requests("/x")[0].sent > before }
            }
            try client.progress { $0.text == "onetwo" }
            let late = try proxy.connect()
            try late.send(proxy.request("GET", "/x"))
            try late.progress { $0.text == "onetwo" }
            rest.open()
            #expect(try client.answer().text == "onetwosix")
            #expect(try late.answer().text == "onetwosix")
            #expect(origin.count("/x") == 1)
        }
    }

    @Test func `requests completed during the stop get no 408`() throws {
        try scenario(.headTimeout(Self.bound)) { origin, proxy in
            origin.on("/x") { _ in [.answer(200, "Cache-Control: max-age=60", body: "here")] }
            // More than one wait for sockets tells of.
            let clients = try (0..<100).map { _ in try proxy.connect() }
            for client in clients { try client.send("GET /x HTTP/1.1\r\nHo") }
            try Self.hasRead(proxy)
            try Self.stopping(proxy) { for client in clients { try client.send("st: a\r\n\r\n") } }
            for client in clients {
                let answer = try client.answer()
                #expect(answer.status == 200 && answer.text == "here")
            }
        }
    }

    @Test(arguments: [0, 65_536]) func `content that arrived during the stop causes no 408`(_ buffer: Int) throws {
        try scenario(.bodyTimeout(Self.bound), .bodyBuffer(buffer)) { origin, proxy in
            origin.on("/up") { _ in [.requestBody, .answer(200, body: "thanks")] }
            let client = try proxy.connect()
            try client.send("POST /up HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nhello")
            try Self.hasRead(proxy)
            try Self.stopping(proxy) { try client.send("world") }
            #expect(try client.answer().text == "thanks")
            #expect(origin.requests("/up").first?.body.text == "helloworld")
        }
    }

    @Test func `a request on a connection whose idle time ended during the stop gets a response`() throws {
        try scenario(.idleTimeout(Self.bound)) { origin, proxy in
            origin.on("/x") { _ in [.answer(200, "Cache-Control: no-store", body: "here")] }
            let client = try proxy.connect()
            try client.send(proxy.request("GET", "/x"))
            #expect(try client.answer().text == "here")
            try Self.stopping(proxy) { try client.send(proxy.request("GET", "/x")) }
            #expect(try client.answer().text == "here")
        }
    }

    @Test(.overHTTP1("no more than a window comes from a program that is stopped"))
    func `a client that read on during the stop is not cut off`() throws {
        try scenario(.sendTimeout(Self.bound)) { origin, proxy in
            let length = 30_000_000
            origin.on("/x") { _ in [.answer(200, "Cache-Control: no-store", pattern: length)] }
            let client = try proxy.connect()
            try client.send(proxy.request("GET", "/x"))
            var before = -1
            try eventually("it takes no more") {
                let now = try proxy.metric(.clientSentBytes)
                defer { before = now }
                if now == before, now > 0 { return true }
                System.nap(.milliseconds(100))
                return false
            }
            try Self.stopping(proxy) { try client.progress { $0.body.length > 100_000 } }
            #expect(try client.answer().isWhole(length))
        }
    }

    @Test func `a peer that was silent all the time is given up soon after`() throws {
        try scenario(.firstByteTimeout(Self.bound)) { origin, proxy in
            origin.on("/x") { _ in [.silence] }
            let crowd = proxy.crowd(1, get: "/x")
            try eventually("the origin is asked") { origin.count("/x") == 1 }
            try Self.stopping(proxy) {}
            let answers = crowd.finished()
            #expect(answers[0].status == 504 && answers[0].took < Self.stop + aStall)
        }
    }
}
