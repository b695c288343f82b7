import Glibc
import Testing

@Suite(.scenario) struct ReloadTests {
    @Test func `a reload applies the new file, and keeps connections and stored responses`() throws {
        try scenario { origin, proxy in
            let other = try ScriptedOrigin()
            defer { other.stop() }
            origin.on("*") { _ in [.answer(200, "Cache-Control: max-age=600", body: "old origin")] }
            other.on("*") { _ in [.answer(200, "Cache-Control: max-age=600", body: "new origin")] }
            let client = try proxy.connect()
            try client.send(proxy.request("GET", "/stored"))
            #expect(try client.answer().text == "old origin")

            try proxy.rewriteConfiguration(upstream: other.url)
            proxy.signal(SIGHUP)
            var round = 0
            try eventually("the new origin is asked") {
                round += 1
                return try proxy.get("/new/\(round)").text == "new origin"
            }
            try client.send(proxy.request("GET", "/stored"))
            #expect(try client.answer().text == "old origin", "on the old connection, from the store")
        }
    }

    @Test func `a running download is not disturbed by a reload`() throws {
        try scenario { origin, proxy in
            let gate = Gate()
            origin.on("/slow") { _ in
                [.head(200, "Content-Length: 100000"), .pattern(0..<50_000), .gate(gate), .pattern(50_000..<100_000)]
            }
            let download = proxy.crowd(3, get: "/slow")
            try eventually("half is there") { download.answers.allSatisfy { $0.body.length == 50_000 } }
            for _ in 1...5 { proxy.signal(SIGHUP) }
            gate.open()
            #expect(download.finished().allSatisfy { $0.isWhole(100_000) })
        }
    }

    @Test func `a burst of signals causes some reloads, the last one after the last signal`() throws {
        try scenario { origin, proxy in
            origin.on("/x") { _ in [.answer(200, "Cache-Control: no-store", body: "old")] }
            let other = try ScriptedOrigin()
            defer { other.stop() }
            other.on("/x") { _ in [.answer(200, "Cache-Control: no-store", body: "new")] }
            let begun = Instant.now
            for _ in 1...100 {
                proxy.signal(SIGHUP)
                // One that waits to be delivered would swallow the next.
                _ = try proxy.admin.get("/healthz")
            }
            let reloads = proxy.diagnostics.matches(of: #/info: reloaded /#).count
            let pauses = Int((Instant.now - begun) / .milliseconds(20))
            #expect(reloads > 0 && reloads <= pauses + 1)
            try proxy.rewriteConfiguration(upstream: other.url)
            proxy.signal(SIGHUP)
            try eventually("the new origin is asked") { try proxy.get("/x").text == "new" }
        }
    }

    @Test func `the counters of an upstream continue when its settings change`() throws {
        try scenario { origin, proxy in
            let gate = Gate()
            origin.on("/slow") { _ in [.gate(gate), .answer(200, "Cache-Control: no-store", body: "slow")] }
            origin.on("/x") { _ in [.answer(200, body: "old")] }
            let other = try ScriptedOrigin()
            defer { other.stop() }
            other.on("/x") { _ in [.answer(200, body: "new")] }
            let client = try proxy.connect()
            try client.send(proxy.request("GET", "/slow"))
            try eventually("it is asked") { origin.count("/slow") == 1 }
            try proxy.rewriteConfiguration(upstream: other.url)
            proxy.signal(SIGHUP)
            try eventually("the new origin is asked") { try proxy.get("/x", "Cache-Control: no-store").text == "new" }
            let inFlight = try proxy.metric(.inFlight)
            let status = try proxy.admin.get("/status").wholeText
            #expect(inFlight == 1 && status.contains(#/"started" ?: ?([2-9]|[1-9][0-9])/#))
            gate.open()
            #expect(try client.answer().text == "slow")
        }
    }

    @Test(.overHTTP1("it counts the bytes of the text"))
    func `a fetch that begins at an origin replaced two reloads ago is reported`() throws {
        try scenario { origin, proxy in
            let gate = Gate()
            defer { gate.open() }
            origin.on("/up") { _ in [.requestBody, .gate(gate), .answer(201)] }
            let client = try proxy.connect()
            let begin = "POST /up HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhe"
            try client.send(begin)
            // It is routed in the same iteration of its loop, and its content awaited.
            try eventually("it is here") { try proxy.metric(.clientReceivedBytes) == begin.utf8.count }
            for round in ["first", "second"] {
                let other = try ScriptedOrigin()
                defer { other.stop() }
                other.on("/\(round)") { _ in [.answer(200, body: round)] }
                try proxy.rewriteConfiguration(upstream: other.url)
                proxy.signal(SIGHUP)
                try eventually("the \(round) new origin is asked") { try proxy.get("/\(round)").text == round }
            }
            try client.send("llo")
            try eventually("the former origin is asked") { origin.count("/up") == 1 }
            let status = try proxy.admin.get("/status").wholeText
            #expect(status.contains("/up"))
            #expect(try proxy.metric(.inFlight) == 1)
            gate.open()
            #expect(try client.answer().status == 201)
        }
    }

    @Test(arguments: ["of its own URL", "of another URL", "of a group"])
    func `an unsafe request from before a reload closes fetches that began after it`(fetches: String) throws {
        try scenario(.workers(1)) { origin, proxy in
            let (change, page) = (Gate(), Gate())
            let target = fetches == "of its own URL" ? "/x" : "/y"
            let first = fetches == "of its own URL" ? 2 : 1
            let named = fetches == "of another URL" ? "Location: /x" : "Cache-Group-Invalidation: \"g\""
            for path in ["/x", "/y"] {
                origin.on(path) { request in
                    let fields = ["Cache-Control: max-age=60", "Cache-Groups: \"g\"", "Content-Length: 2"]
                    return request.method == "POST"
                        ? [.gate(change), .answer(200, fetches == "of its own URL" ? "X-Names: nothing" : named)]
                        : request.number == first
                            ? [.head(200, fields), .text("o"), .gate(page), .text("o")]
                            : [.head(200, fields), .text("nn")]
                }
            }
            let client = try proxy.connect()
            try client.send(proxy.request("POST", target, body: ""))
            try eventually("it is under way") { origin.count(target) == 1 }
            try proxy.rewriteConfiguration(upstream: origin.url, .firstByteTimeout(.seconds(50)), .hosts(["127.0.0.1"]))
            proxy.signal(SIGHUP)
            try eventually("the new settings hold") { try proxy.get("/", "Host: elsewhere").status == 421 }
            let before = proxy.crowd(1, get: "/x")
            try eventually("half is there") { before.answers[0].body.length == 1 }
            change.open()
            #expect(try client.answer().status == 200)
            #expect(try proxy.send("GET", "/x").text == "nn")
            page.open()
            #expect(before.finished().first?.text == "oo")
        }
    }

    @Test func `a reload that waits for another does not begin in a program that ends`() throws {
        try scenario(.workers(1)) { origin, proxy in
            let gate = Gate()
            origin.on("/slow") { _ in [.head(200, "Content-Length: 2"), .text("a"), .gate(gate), .text("b")] }
            let download = proxy.crowd(1, get: "/slow")
            try eventually("half is there") { download.answers[0].body.length == 1 }
            let askers = try [proxy.admin.connect(), proxy.admin.connect()]
            // They are accepted before this one.
            #expect(try proxy.admin.get("/healthz").status == 200)
            try proxy.whileStopped {
                for asker in askers { try asker.send(proxy.admin.request("POST", "/reload", body: "")) }
                proxy.terminate()
            }
            #expect(try askers[0].answer(to: "POST").status == 200)
            let second = try askers[1].answer(to: "POST")
            #expect(second.status == 503 && second.text.contains("the program is ending"), "\(second)")
            #expect(proxy.diagnostics.matches(of: #/info: reloaded /#).count == 1, "\(proxy.diagnostics)")
            gate.open()
            #expect(download.finished()[0].text == "ab")
            #expect(try proxy.exited() == .code(0))
        }
    }

    @Test func `a reload of a process takes its own file and flags`() throws {
        try scenario { origin, proxy in
            let words = ["reload", "--pid", "\(proxy.child)"]
            let done = try Program.run(words)
            #expect(done.exit == .code(0) && done.errors.isEmpty, "\(done)")
            #expect(done.output == "reloaded \(proxy.configurationPath)\n")
            try System.write("wrkers: 1\n", to: proxy.configurationPath)
            let failed = try Program.run(words)
            #expect(failed.exit == .code(78) && failed.output.isEmpty, "\(failed)")
            #expect(failed.errors.hasPrefix("\(proxy.configurationPath):1:1: `wrkers`"))
            #expect(failed.errors.split(separator: "\n").count == 1)
        }
    }

    @Test func `a process without an admin listener gets a signal to reload`() throws {
        let program = try Program.serve(upstream: "http://127.0.0.1:9", arguments: ["--admin", "off"])
        defer { program.stop() }
        let run = try Program.run("reload", "--pid", "\(program.child)")
        #expect(run.exit == .code(0) && run.output.isEmpty, "\(run)")
        #expect(run.errors == "process \(program.child) got SIGHUP; its log has the outcome\n")
        try eventually("it has reloaded") { program.diagnostics.contains("info: reloaded ") }
    }

    @Test(arguments: ["coalesced-1.2", "proxy"])
    func `a process is known by what it runs, whatever its file is called`(_ name: String) throws {
        let folder = try System.makeTemporaryFolder()
        try System.write(Setting.file([], upstream: "http://127.0.0.1:9"), to: "\(folder)/f")
        try System.link("\(folder)/\(name)", to: Program.path())
        let program = try Program(
            folder: folder, at: "\(folder)/\(name)",
            ["serve", "--config", "\(folder)/f", "--listen", "127.0.0.1:0", "--admin", "unix:\(folder)/admin.sock"])
        defer { program.stop() }
        try program.waitUntilListening(1)
        let run = try Program.run("reload", "--pid", "\(program.child)")
        #expect(run.exit == .code(0) && run.output == "reloaded \(folder)/f\n", "\(run)")
    }

    @Test func `no other process gets the signal`() throws {
        let run = try Program.run("reload", "--pid", "\(getpid())")
        #expect(run.exit == .code(69) && run.output.isEmpty, "\(run)")
        #expect(run.errors == "process \(getpid()) is no `coalesced serve`; give the number of one that is\n")
    }

    @Test func `a file with mistakes is reported and changes nothing`() throws {
        try scenario { origin, proxy in
            origin.on("/x") { _ in [.answer(200, "Cache-Control: no-store", body: "x")] }
            try System.write(Setting.fileWithFiveMistakes.text, to: proxy.configurationPath)
            proxy.signal(SIGHUP)
            try eventually("it says so") { proxy.diagnostics.contains(#/coalesced\.yaml:1:\d+/#) }
            #expect(try proxy.get("/x").text == "x")
        }
    }

    @Test func `the result of the last reload is on the admin pages`() throws {
        try scenario { origin, proxy in
            let fresh = try proxy.status()
            #expect(fresh["last_reload"] == nil && fresh["version"]?.string?.isEmpty == false)
            #expect(fresh["uptime_seconds"]?.number != nil)
            let began = try proxy.metric(.lastReloadSucceeded)
            #expect(began == 1, "the settings are those of the file")

            let good = System.contents(of: proxy.configurationPath)
            for (text, succeeded) in [(Setting.fileWithFiveMistakes.text, false), (good, true)] {
                try System.write(text, to: proxy.configurationPath)
                proxy.signal(SIGHUP)
                try eventually("the status says so") {
                    try proxy.status()["last_reload"]?["succeeded"] == .bool(succeeded)
                }
                let metric = try proxy.metric(.lastReloadSucceeded)
                #expect(metric == (succeeded ? 1 : 0))
            }
        }
    }

    @Test func `the resources that the process uses are in the metrics`() throws {
        try scenario { _, proxy in
            let memory = try proxy.metric(.residentBytes), open = try proxy.metric(.openDescriptors)
            // Each measurement is of another moment.
            #expect(abs(memory - proxy.residentBytes) < 32 << 20)
            #expect(abs(open - proxy.openDescriptors) < 20)
            let limit = try proxy.metric(.mostDescriptors), start = try proxy.metric(.startTime)
            #expect(limit >= open)
            #expect(abs(System.secondsNow - start) < 60)
        }
    }

    @Test func `a reload signal does not end a program that waits for its file`() throws {
        let folder = try System.makeTemporaryFolder()
        let path = "\(folder)/fifo"
        #expect(unsafe mkfifo(path, 0o600) == 0)
        let program = try Program(
            folder: folder, ["--config", path, "--listen", "127.0.0.1:0", "--admin", "unix:\(folder)/admin"])
        defer { program.stop() }
        // Opened by its reader first.
        var writer: Int32 = -1
        try eventually("it reads") {
            writer = unsafe open(path, O_WRONLY | O_NONBLOCK | O_CLOEXEC)
            return writer >= 0
        }
        program.signal(SIGHUP)
        let file = Array(Setting.file([], upstream: "http://127.0.0.1:9").utf8)
        let written = unsafe write(writer, file, file.count)
        #expect(written == file.count)
        Socket.close(writer)
        try program.waitUntilListening(1)
    }

    @Test func `an empty file is reported and changes nothing`() throws {
        try scenario { origin, proxy in
            origin.on("/x") { _ in [.answer(200, "Cache-Control: no-store", body: "x")] }
            try System.write("", to: proxy.configurationPath)
            proxy.signal(SIGHUP)
            try eventually("it says so") { proxy.diagnostics.contains("coalesced.yaml:1:1: the file is empty") }
            #expect(try proxy.get("/x").text == "x")
        }
    }

    @Test func `a reload without a file reports that there is nothing to reload`() throws {
        let folder = try System.makeTemporaryFolder()
        let program = try Program(folder: folder, ["--listen", "127.0.0.1:0", "--upstream", "http://127.0.0.1:9"])
        defer { program.stop() }
        try program.waitUntilListening(1)
        program.signal(SIGHUP)
        try eventually("it says so") { program.diagnostics.contains("nothing to reload") }
    }

    @Test func `a reload opens the access log again`() throws {
        try scenario(.accessLog) { origin, proxy in
            origin.on("/x") { _ in [.answer(200, body: "x")] }
            try proxy.get("/x")
            try eventually("a line") { try proxy.accessLog.count == 1 }
            System.rename("\(proxy.folder)/access.log", to: "\(proxy.folder)/access.log.1")
            proxy.signal(SIGHUP)
            try eventually("a new file") { System.exists("\(proxy.folder)/access.log") }
            try proxy.get("/x")
            try eventually("a line in it") { try proxy.accessLog.count == 1 }
        }
    }

    @Test func `an access log that cannot be opened again is reported and stays open`() throws {
        try scenario(.accessLog) { origin, proxy in
            origin.on("/x") { _ in [.answer(200, body: "x")] }
            let path = "\(proxy.folder)/access.log"
            System.rename(path, to: path + ".1")
            #expect(unsafe mkdir(path, 0o700) == 0)
            proxy.signal(SIGHUP)
            try eventually("it says so") {
                proxy.diagnostics.contains(
                    "access log: \(path) cannot be opened again: Is a directory; lines go on into the file that was open before\n"
                )
            }
            try proxy.get("/x")
            try eventually("a line in the old file") {
                System.contents(of: path + ".1").split(separator: "\n").count == 1
            }
            #expect(!proxy.diagnostics.contains("lines lost"))
        }
    }

    @Test(arguments: ["a bad file", "while ending"])
    func `a reload opens the access log again in spite of any mistake`(_ matter: String) throws {
        try scenario(.accessLog) { origin, proxy in
            let gate = Gate()
            origin.on("/slow") { _ in [.head(200, "Content-Length: 2"), .text("a"), .gate(gate), .text("b")] }
            let download = proxy.crowd(1, get: "/slow")
            try eventually("half is there") { download.answers[0].body.length == 1 }
            if matter == "while ending" {
                proxy.terminate()
                try eventually("it is ending") { proxy.diagnostics.contains("no new connections") }
            } else {
                try System.write(Setting.fileWithFiveMistakes.text, to: proxy.configurationPath)
            }
            System.rename("\(proxy.folder)/access.log", to: "\(proxy.folder)/access.log.1")
            proxy.signal(SIGHUP)
            try eventually("a new file") { System.exists("\(proxy.folder)/access.log") }
            gate.open()
            try eventually("a line in it") { try proxy.accessLog.count == 1 }
        }
    }

    @Test func `the log level of the new file applies to workers too`() throws {
        func level(_ word: String) -> Setting { .other(section: "", key: "log-level", value: word) }
        let dead = "http://127.0.0.1:1"
        let proxy = try Program.serve(upstream: dead, [level("error")])
        defer { proxy.stop() }
        try proxy.get("/quiet")
        try proxy.rewriteConfiguration(upstream: dead, level("info"))
        proxy.signal(SIGHUP)
        try eventually("it is loaded") { proxy.diagnostics.contains("reloaded") }
        try proxy.get("/loud")
        try eventually("it tells") { proxy.diagnostics.contains("/loud") }
        try proxy.rewriteConfiguration(upstream: dead, level("critical"))
        proxy.signal(SIGHUP)
        var round = 0
        try eventually("it is quiet again") {
            round += 1
            try proxy.get("/again/\(round)")
            return !proxy.diagnostics.contains("/again/\(round)")
        }
        #expect(!proxy.diagnostics.contains("/quiet"))
    }

    @Test func `each origin connection is logged at debug level, with the reason why it was closed`() throws {
        let debug = Setting.other(section: "", key: "log-level", value: "debug")
        let origin = try ScriptedOrigin()
        defer { origin.stop() }
        let gate = Gate()
        origin.on("/kept") { _ in [.answer(200, body: "kept")] }
        origin.on("/last") { _ in [.answer(200, "Connection: close", body: "last")] }
        origin.on("/idle") { _ in [.answer(200, body: "idle"), .gate(gate), .close] }
        let proxy = try Program.serve(upstream: origin.url, [.workers(1)])
        defer { proxy.stop() }
        try proxy.get("/last")
        try proxy.rewriteConfiguration(upstream: origin.url, .workers(1), debug)
        proxy.signal(SIGHUP)
        try eventually("it is loaded") { proxy.diagnostics.contains("reloaded") }
        func connections() -> [Substring] {
            proxy.diagnostics.split(separator: "\n").filter { $0.contains("connect") && $0.contains("upstream ") }
        }
        for path in ["/kept", "/kept", "/last", "/idle"] { try proxy.get(path) }
        gate.open()
        try eventually("two were opened and closed") { connections().count >= 4 }
        let told = connections()
        #expect(told.count == 4 && told.allSatisfy { $0.contains(" debug: ") })
        #expect(told[0].contains(/: connected to 127\.0\.0\.1:\d+ in \d+ µs/))
        #expect(told[1].hasSuffix(" closed after 3 requests: not reusable after its last response"))
        #expect(
            told[3].hasSuffix(
                " closed after 1 request: the server closed it while idle, or sent what was not asked for"))
    }

    @Test(arguments: ["a FIFO", "/dev/zero", "a large file"])
    func `a path that is no settings file is reported and changes nothing`(what: String) throws {
        try scenario { origin, proxy in
            origin.on("/x") { _ in [.answer(200, "Cache-Control: no-store", body: "x")] }
            let path = proxy.configurationPath
            System.remove(path)
            switch what {
            case "a FIFO": #expect(unsafe mkfifo(path, 0o600) == 0)
            case "/dev/zero": #expect(unsafe symlink("/dev/zero", path) == 0)
            default: try System.write(String(repeating: "# nothing\n", count: 200_000), to: path)
            }
            proxy.signal(SIGHUP)
            try eventually("it says so") { proxy.diagnostics.contains("not reloaded") }
            #expect(try proxy.get("/x").text == "x")
            proxy.terminate()
            #expect(try proxy.exited() == .code(0))
        }
    }

    @Test func `a route that is no longer cached neither validates a stored response nor serves it stale`() throws {
        try scenario(.workers(1)) { origin, proxy in
            origin.on("/x") { request in
                if request.number == 1 {
                    return [
                        .answer(
                            200, "Cache-Control: max-age=10, stale-if-error=600", "Age: 20", "ETag: \"a\"", body: "1")
                    ]
                }
                return request["if-none-match"] == nil
                    ? [.answer(500, body: "\(request.number)")] : [.head(304, "ETag: \"a\"")]
            }
            #expect(try proxy.get("/x").text == "1")
            #expect(try proxy.get("/x").text == "1")
            try proxy.rewriteConfiguration(
                upstream: origin.url, .other(section: "route", key: "cache", value: "false"), .hosts(["127.0.0.1"]))
            proxy.signal(SIGHUP)
            try eventually("the new settings hold") { try proxy.get("/", "Host: elsewhere").status == 421 }
            let answer = try proxy.get("/x")
            #expect(answer.status == 500 && answer.text == "3")
            #expect(answer.cacheStatus.contains("fwd=bypass"))
        }
    }

    @Test func `a route that is no longer cached serves no stored response`() throws {
        try scenario(.workers(1)) { origin, proxy in
            origin.on("/x") { [.answer(200, "Cache-Control: max-age=600", body: "\($0.number)")] }
            #expect(try proxy.get("/x").text == "1")
            #expect(try proxy.get("/x").text == "1")
            try proxy.rewriteConfiguration(upstream: origin.url, .other(section: "route", key: "cache", value: "false"))
            proxy.signal(SIGHUP)
            try eventually("the origin is asked") { try proxy.get("/x").text == "2" }
            #expect(try proxy.get("/x", "Cache-Control: max-stale").text == "3")
        }
    }
}
