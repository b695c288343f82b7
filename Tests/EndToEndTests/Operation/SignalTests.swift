import Glibc
import Testing

@Suite(.scenario) struct SignalTests {
    @Test(arguments: [(SIGTERM, "SIGTERM"), (SIGINT, "SIGINT"), (SIGQUIT, "SIGQUIT")])
    func `a running download finishes before the program ends`(_ signal: Int32, name: String) throws {
        try scenario { origin, proxy in
            let gate = Gate()
            origin.on("/slow") { _ in
                [.head(200, "Content-Length: 100000"), .pattern(0..<50_000), .gate(gate), .pattern(50_000..<100_000)]
            }
            let idle = try proxy.connect()
            let download = proxy.crowd(3, get: "/slow")
            try eventually("half is there") { download.answers.allSatisfy { $0.body.length == 50_000 } }
            proxy.signal(signal)
            #expect(idle.isClosed(), "an idle connection is closed")
            try eventually("nobody new is let in") { (try? proxy.get("/slow"))?.status ?? 503 == 503 }
            #expect(proxy.exit() == nil, "it waits for the download")
            gate.open()
            #expect(download.finished().allSatisfy { $0.isWhole(100_000) })
            #expect(try proxy.exited() == .code(0))
            #expect(proxy.diagnostics.contains("info: \(name): no new connections"), "\(proxy.diagnostics)")
            // Three, and perhaps one that came just before another worker closed.
            #expect(
                proxy.diagnostics.contains(
                    #/drained: [34] requests and tunnels finished, none cut off/#),
                "\(proxy.diagnostics)")
        }
    }

    @Test func `a second signal ends the program at once`() throws {
        try scenario { origin, proxy in
            origin.on("/slow") { _ in [.head(200, "Content-Length: 100000"), .pattern(0..<50_000), .silence] }
            let download = proxy.crowd(1, get: "/slow")
            try eventually("half is there") { download.answers[0].body.length == 50_000 }
            proxy.terminate()
            try stays("it waits for the download", for: .milliseconds(200)) { proxy.exit() == nil }
            proxy.signal(SIGTERM)
            let told = Instant.now
            let exit = try proxy.exited()
            note("a second signal, \(exit)", (Instant.now - told).rounded)
            #expect(.now - told < aStall)
            #expect(!download.finished()[0].isClean)
            let line =
                "drained: 0 requests and tunnels finished, 1 request and 0 tunnels cut off by another signal"
            #expect(proxy.diagnostics.contains(line), "\(proxy.diagnostics)")
        }
    }

    /// Its client is told that it was not served, and repeats it. The first rounds see to it that what runs is cut off
    /// first, and what waits for its slot last.
    @Test func `a request that waits for a slot when the program ends is not sent to the origin`() throws {
        try scenario(.maxConcurrentFetches(2), .workers(1)) { origin, proxy in
            let (longest, others) = (Gate(), Gate())
            origin.on("/longest") { _ in [.gate(longest), .answer(200)] }
            origin.on("/other") { _ in [.gate(others), .answer(200)] }
            origin.on("*") { _ in [.silence] }
            let clients = try (0..<400).map { _ in try proxy.connect() }
            func post(_ target: String, by clients: ArraySlice<Conversation>) throws {
                for client in clients { try client.send(proxy.request("POST", target, ["Content-Length: 0"])) }
            }
            try post("/longest", by: clients[0..<1])
            try eventually("one slot is taken") { origin.count("/longest") == 1 }
            try post("/other", by: clients[1...])
            try proxy.joined(400)
            others.open()
            for client in clients[1...] { #expect(try client.answer().status == 200) }
            longest.open()
            #expect(try clients[0].answer().status == 200)

            try post("/running", by: clients[0..<2])
            try eventually("both slots are taken") { origin.count("/running") == 2 }
            try post("/waiting", by: clients[2...])
            try proxy.joined(800)
            proxy.terminate()
            try eventually("it waits") { proxy.diagnostics.contains("SIGTERM: no new connections") }
            proxy.signal(SIGTERM)
            #expect(try proxy.exited() == .code(0))
            #expect(origin.count("/waiting") == 0)
        }
    }

    @Test func `a client that is cut off or gets no response at the end is logged with that reason`() throws {
        try scenario(.accessLog, .workers(2)) { origin, proxy in
            origin.on("/half") { _ in [.head(200, "Content-Length: 100000"), .pattern(0..<50_000), .silence] }
            origin.on("/none") { _ in [.silence] }
            origin.on("/whole") { _ in [.answer(200, body: "x")] }
            try proxy.get("/whole")
            let (half, none) = (proxy.crowd(2, get: "/half"), proxy.crowd(40, get: "/none"))
            try eventually("half is there") { half.answers.allSatisfy { $0.body.length == 50_000 } }
            try proxy.joined(1 + 2 + 40)
            proxy.terminate()
            try eventually("it waits") { proxy.diagnostics.contains("SIGTERM: no new connections") }
            proxy.signal(SIGTERM)
            #expect(try proxy.exited() == .code(0))
            #expect(half.finished().allSatisfy { !$0.isClean })
            for answer in none.finished() {
                #expect(answer.status == 503 && answer.text.contains("is being shut down"), "\(answer.text)")
            }
            let lines = try proxy.accessLog
            let details = ["/whole", "/half", "/none"].map { target in
                lines.filter { $0["target"]?.string == target }.map { $0["detail"]?.string }
            }
            #expect(details[1] == ["shutdown", "shutdown"], "\(lines)")
            #expect(details[2] == Array(repeating: "shutdown", count: 40), "\(lines)")
            #expect(details[0].count == 1 && details[0].first != "shutdown", "\(lines)")
            let cut = lines.filter { $0["target"]?.string == "/half" }
            #expect(cut.allSatisfy { $0["aborted"] == .bool(true) && $0["status"]?.number == 200 }, "\(lines)")
        }
    }

    @Test func `a hit that is cut off at the end is logged with that reason`() throws {
        try withHalfSentHit { proxy, _, _ in
            proxy.terminate()
            try eventually("it waits") { proxy.diagnostics.contains("SIGTERM: no new connections") }
            proxy.signal(SIGTERM)
            #expect(try proxy.exited() == .code(0))
            let line = try #require(try proxy.accessLog.first { $0["verdict"]?.string == "hit" })
            #expect(line["aborted"] == .bool(true) && line["detail"]?.string == "shutdown", "\(line)")
        }
    }

    @Test func `draining ends after drain-timeout`() throws {
        try scenario(.drainTimeout(.milliseconds(500))) { origin, proxy in
            origin.on("/slow") { _ in [.head(200, "Content-Length: 100000"), .pattern(0..<50_000), .silence] }
            let download = proxy.crowd(1, get: "/slow")
            try eventually("half is there") { download.answers[0].body.length == 50_000 }
            proxy.terminate()
            #expect(try proxy.exited(within: .seconds(5)) == .code(0))
            #expect(!download.finished()[0].isClean)
        }
    }

    @Test func `during the delay the program is not ready, and still accepts clients`() throws {
        try scenario(.other(section: "", key: "drain-delay", value: "60s")) { origin, proxy in
            origin.on("/x") { _ in [.answer(200, "Cache-Control: max-age=60", body: "x")] }
            origin.on("/y") { _ in [.answer(200, "Cache-Control: no-store", body: "y")] }
            try proxy.get("/x")
            let (kept, idle) = (try proxy.connect(), try proxy.connect())
            try kept.send(proxy.request("GET", "/x"))
            let first = try kept.answer()
            #expect(first["connection"] == nil)
            proxy.terminate()
            try eventually("it is not ready") { try proxy.admin.get("/readyz").status == 503 }
            let state = try proxy.status()["state"]
            #expect(state == .string("draining"))
            // Those that are open, and new ones; hits and others.
            try kept.send(proxy.request("GET", "/x"))
            let last = try kept.answer()
            #expect(last.text == "x" && last["connection"] == "close" && kept.isClosed())
            for page in ["x", "y"] {
                let answer = try proxy.get("/\(page)")
                #expect(answer.text == page && answer["connection"] == "close")
            }
            #expect(!idle.isEndedByPeer && proxy.exit() == nil)
            // Cut short.
            proxy.signal(SIGTERM)
            #expect(idle.isClosed())
            #expect(try proxy.exited() == .code(0))
            #expect(proxy.diagnostics.contains("the second signal: no new connections"), "\(proxy.diagnostics)")
        }
    }

    @Test func `the drain timeout begins after the delay`() throws {
        try scenario(
            .other(section: "", key: "drain-delay", value: "700ms"), .drainTimeout(.milliseconds(700))
        ) { origin, proxy in
            origin.on("/slow") { _ in [.head(200, "Content-Length: 100000"), .pattern(0..<50_000), .silence] }
            let download = proxy.crowd(1, get: "/slow")
            try eventually("half is there") { download.answers[0].body.length == 50_000 }
            let told = Instant.now
            proxy.terminate()
            #expect(try proxy.exited() == .code(0))
            // Each of the two timers goes by the kernel's coarse clock, and may be early by one of its ticks.
            #expect(.now - told >= .milliseconds(1380))
            #expect(!download.finished()[0].isClean)
            #expect(proxy.diagnostics.contains("drain-delay is over: no new connections"), "\(proxy.diagnostics)")
        }
    }

    @Test(.overHTTP1("one asks for an upgrade"))
    func `the log reports how much was cut off at the end, and how much ended by itself`() throws {
        try scenario(.drainTimeout(.seconds(3)), .workers(2)) { origin, proxy in
            let gate = Gate()
            origin.on("/slow") { _ in [.head(200, "Content-Length: 100000"), .pattern(0..<50_000), .silence] }
            origin.on("/held") { _ in [.head(200, "Content-Length: 4"), .text("ab"), .gate(gate), .text("cd")] }
            origin.on("/ws") { _ in [UpgradeTunnelTests.switching, .echo] }
            let (cut, whole) = (proxy.crowd(2, get: "/slow"), proxy.crowd(3, get: "/held"))
            let tunnel = try proxy.connect()
            try tunnel.send(proxy.request("GET", "/ws", ["Connection: Upgrade", "Upgrade: websocket"]))
            let status = try tunnel.answer().status
            #expect(status == 101)
            let idle = try proxy.connect()
            try eventually("all are under way") {
                cut.answers.allSatisfy { $0.body.length == 50_000 } && whole.answers.allSatisfy { $0.body.length == 2 }
            }
            proxy.terminate()
            #expect(idle.isClosed())
            gate.open()
            #expect(whole.finished().allSatisfy { $0.text == "abcd" })
            #expect(try proxy.exited() == .code(0))
            let line =
                "drained: 3 requests and tunnels finished, 2 requests and 1 tunnel cut off after drain-timeout"
            #expect(
                proxy.diagnostics.matches(of: #/drained: /#).count == 1 && proxy.diagnostics.contains(line),
                "\(proxy.diagnostics)")
        }
    }

    @Test(.clientsInTheClear("they send while the program is stopped, which answers no handshake"))
    func `a client that connected or sent a request before the end gets a response`() throws {
        try scenario(.workers(2)) { origin, proxy in
            origin.on("/x") { _ in [.answer(200, "Cache-Control: max-age=60", body: "x")] }
            try proxy.get("/x")
            let kept = try (0..<10).map { _ in try proxy.connect() }
            for client in kept {
                try client.send(proxy.request("GET", "/x"))
                guard try client.answer().text == "x" else { throw Late(what: "x", place: "kept") }
            }
            // While it is stopped the kernel goes on accepting for it.
            proxy.signal(SIGSTOP)
            // More than a worker accepts at a time.
            let waiting = try (0..<400).map { _ in try proxy.connect() }
            for client in kept + waiting { try client.send(proxy.request("GET", "/x")) }
            // That a client says no more makes no difference.
            for client in waiting { client.finishSending() }
            proxy.terminate()
            proxy.signal(SIGCONT)
            for client in kept + waiting {
                let answer = try client.answer()
                #expect(answer.text == "x")
            }
            #expect(try proxy.exited() == .code(0))
        }
    }

    @Test(.overHTTP1("half a head is no frame")) func `a head that began to arrive before the end gets a response`()
        throws
    {
        try scenario(.workers(1)) { origin, proxy in
            origin.on("/x") { _ in [.answer(200, body: "x")] }
            let (client, idle, blank) = (try proxy.connect(), try proxy.connect(), try proxy.connect())
            let request = proxy.request("GET", "/x")
            try client.send(String(request.prefix(10)))
            // No part of a head: such a line may stand before one (RFC 9112 §2.2).
            try blank.send("\r\n")
            // Read before it is told to end.
            try proxy.get("/x")
            proxy.terminate()
            #expect(idle.isClosed())
            #expect(blank.isClosed())
            try client.send(String(request.dropFirst(10)))
            let answer = try client.answer()
            #expect(answer.text == "x")
            #expect(try proxy.exited() == .code(0))
            #expect(proxy.diagnostics.contains("drained: 1 request or tunnel finished, none"), "\(proxy.diagnostics)")
        }
    }

    @Test func `an incomplete head does not delay the end beyond its timeout`() throws {
        try scenario(.workers(1), .headTimeout(.milliseconds(200))) { origin, proxy in
            let client = try proxy.connect()
            try client.send("GET /x HT")
            origin.on("/x") { _ in [.answer(200, body: "x")] }
            try proxy.get("/x")
            proxy.terminate()
            #expect(try proxy.exited(within: .seconds(5)) == .code(0))
        }
    }

    @Test func `an idle program ends at once`() throws {
        try scenario { _, proxy in
            proxy.terminate()
            let exit = try proxy.exited()
            #expect(exit == .code(0))
        }
    }

    /// Starts a program whose file is a FIFO, and writes `text` into that when `meanwhile` is done.
    private func startWithFIFO(
        writing text: String = "", after meanwhile: (Program) throws -> Void,
        _ then: (Program) throws -> Void = { _ in }
    ) throws {
        let folder = try System.makeTemporaryFolder()
        let path = "\(folder)/coalesced.yaml"
        #expect(unsafe mkfifo(path, 0o600) == 0)
        let program = try Program(
            folder: folder, ["--config", path, "--listen", "127.0.0.1:0", "--admin", "unix:\(folder)/admin.sock"])
        defer { program.stop() }
        var writer: Int32 = -1
        // It cannot be opened before somebody reads.
        try eventually("it reads its file") {
            writer = unsafe open(path, O_WRONLY | O_NONBLOCK | O_CLOEXEC)
            return writer >= 0
        }
        do {
            defer { Socket.close(writer) }
            try meanwhile(program)
            // Without a reader the path could not be opened again.
            if !text.isEmpty { try System.write(text, to: "/proc/\(getpid())/fd/\(writer)") }
        }
        try then(program)
    }

    @Test(arguments: [SIGTERM, SIGINT, SIGQUIT])
    func `a program that waits for its file ends at once, with 0`(_ signal: Int32) throws {
        try startWithFIFO(after: { program in
            program.signal(signal)
            let exit = try program.exited()
            #expect(exit == .code(0))
        })
    }

    @Test func `a reload that is requested before the program listens happens afterwards`() throws {
        try startWithFIFO(writing: "workers: 1\n", after: { $0.signal(SIGHUP) }) { program in
            try program.waitUntilListening(1)
            try eventually("it tries to reload") { program.diagnostics.contains("a pipe can only be read at startup") }
        }
    }

    @Test func `signals that other servers know do not end the program`() throws {
        try scenario { origin, proxy in
            origin.on("/x") { _ in [.answer(200, body: "x")] }
            proxy.signal(SIGUSR1)
            let answer = try proxy.get("/x")
            #expect(answer.text == "x" && proxy.exit() == nil)
            proxy.terminate()
            let exit = try proxy.exited()
            #expect(exit == .code(0))
        }
    }

    @Test func `the program restarts itself with malloc settings, and keeps its process and name`() throws {
        try scenario { _, proxy in
            // The kernel keeps 15 bytes of a name.
            let name = try #require(try Program.path().split(separator: "/").last)
            #expect(proxy.processName == name.prefix(15))
            #expect(
                proxy.environment.contains {
                    $0.hasPrefix("GLIBC_TUNABLES=") && $0.contains("glibc.malloc.tcache_count=")
                })
            proxy.terminate()
            #expect(try proxy.exited() == .code(0))
        }
    }
}
