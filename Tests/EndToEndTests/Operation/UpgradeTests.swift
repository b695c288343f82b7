import Glibc
import Testing

/// `SIGUSR2`: the program at the path takes the place of the one that runs.
@Suite(.scenario) struct UpgradeTests {
    /// Requests of clients that open a connection for each; `.ci/long` has the whole number.
    static let requests = System.environment("COALESCED_TEST_ROUNDS").flatMap { Int($0) }.map { 5000 * $0 } ?? 3000

    private func withLinkedProgram(
        _ settings: Setting..., variables: [String] = [], _ body: (ScriptedOrigin, Program) throws -> Void
    ) throws {
        let origin = try ScriptedOrigin()
        defer { origin.stop() }
        origin.on("/x") { _ in [.answer(200, "Cache-Control: max-age=600", body: "x")] }
        let proxy = try Program.serve(
            file: Setting.file(settings, upstream: origin.url), variables: variables, isLinked: true)
        defer { proxy.stop() }
        try body(origin, proxy)
    }

    private func isGone(_ process: pid_t) -> Bool {
        let state = System.contents(of: "/proc/\(process)/stat").split(separator: ")").last?.split(separator: " ").first
        return state == nil || state == "Z"
    }

    @Test func `no client fails while three upgrades take place, with other numbers of workers`() throws {
        try scenario(.workers(2), .drainTimeout(.seconds(20))) { origin, proxy in
            origin.on("/x") { _ in [.answer(200, "Cache-Control: max-age=600", body: "x")] }
            let clients = Passersby(50, at: proxy, get: "/x", expecting: "x")
            for (round, workers) in [3, 1, 2].enumerated() {
                try eventually("some are served", within: .seconds(60)) {
                    clients.served >= (round + 1) * Self.requests / 4
                }
                try proxy.rewriteConfiguration(upstream: origin.url, .workers(workers), .drainTimeout(.seconds(20)))
                try proxy.upgrade()
            }
            let failures = try clients.stop(after: Self.requests)
            #expect(failures.isEmpty, "\(failures.count) of \(clients.served): \(failures.prefix(5))")
            note("requests while upgrading three times", clients.served)
            #expect(try proxy.exited() == .code(0))
            let last = try #require(proxy.successors.last)
            for process in proxy.successors.dropLast() { try eventually("\(process) ends") { isGone(process) } }
            #expect(try proxy.status()["workers"]?.number == 2)
            Spawn.signal(last, SIGTERM)
            try eventually("the last one ends") { isGone(last) }
            #expect(!System.exists("\(proxy.folder)/admin.sock"), "and removes what belongs to it")
        }
    }

    @Test(.overHTTP1("one asks for an upgrade"))
    func `what is under way goes on in the old program, until drain-timeout`() throws {
        try scenario(.workers(2), .drainTimeout(.seconds(4))) { origin, proxy in
            let gate = Gate()
            origin.on("/slow") { _ in
                [.head(200, "Content-Length: 100000"), .pattern(0..<50_000), .gate(gate), .pattern(50_000..<100_000)]
            }
            origin.on("/endless") { _ in [.head(200, "Content-Length: 100000"), .pattern(0..<50_000), .silence] }
            origin.on("/ws") { _ in [UpgradeTunnelTests.switching, .echo] }
            origin.on("/x") { _ in [.answer(200, body: "x")] }
            let (download, endless) = (proxy.crowd(3, get: "/slow"), proxy.crowd(1, get: "/endless"))
            let tunnel = try proxy.connect()
            try tunnel.send(proxy.request("GET", "/ws", ["Connection: Upgrade", "Upgrade: websocket"]))
            #expect(try tunnel.answer().status == 101)
            let kept = try proxy.connect()
            try kept.send(proxy.request("GET", "/x"))
            #expect(try kept.answer().text == "x")
            try eventually("half is there") {
                download.answers.allSatisfy { $0.body.length == 50_000 } && endless.answers[0].body.length == 50_000
            }
            let begun = Instant.now
            try proxy.upgrade()
            #expect(try proxy.get("/x").text == "x")
            #expect(try proxy.status()["fetches"] == .array([]), "the admin pages are those of the new one")
            try tunnel.send("ping")
            #expect(try tunnel.bytes(4) == Array("ping".utf8))
            // An idle connection closes with its next response, not before.
            #expect(!kept.isEndedByPeer)
            try kept.send(proxy.request("GET", "/x"))
            let last = try kept.answer()
            #expect(last.text == "x" && last["connection"] == "close" && kept.isClosed())
            gate.open()
            #expect(download.finished().allSatisfy { $0.isWhole(100_000) })
            #expect(proxy.exit() == nil)
            #expect(tunnel.isClosed() && .now - begun > .seconds(3))
            #expect(!endless.finished()[0].isClean)
            #expect(try proxy.exited() == .code(0))
            #expect(proxy.diagnostics.contains("1 request and 1 tunnel cut off after drain-timeout"))
        }
    }

    @Test func `a connection whose response had begun before the upgrade takes one more request`() throws {
        try scenario(.workers(2)) { origin, proxy in
            let gate = Gate()
            origin.on("/held") { _ in [.head(200, "Content-Length: 4"), .text("ab"), .gate(gate), .text("cd")] }
            origin.on("/x") { _ in [.answer(200, body: "x")] }
            let clients = try (0..<10).map { _ in try proxy.connect() }
            for client in clients {
                try client.send(proxy.request("GET", "/held"))
                try client.progress { $0.body.length == 2 }
            }
            try proxy.upgrade()
            gate.open()
            for client in clients {
                let held = try client.answer()
                #expect(held.text == "abcd" && held["connection"] == nil)
                try client.send(proxy.request("GET", "/x"))
                let last = try client.answer()
                #expect(last.text == "x" && last["connection"] == "close" && client.isClosed())
            }
            #expect(try proxy.exited() == .code(0))
        }
    }

    struct Broken: CustomTestStringConvertible {
        let testDescription: String
        /// `nil`: there is no file.
        let script: String?
        var isExecutable = true
        let reason: String
    }

    @Test(arguments: [
        Broken(testDescription: "missing", script: nil, reason: "cannot be started: No such file or directory"),
        Broken(
            testDescription: "not executable", script: "text", isExecutable: false,
            reason: "cannot be started: Permission denied"),
        Broken(testDescription: "ends", script: "#!/bin/sh\nexit 7\n", reason: "it ended with exit code 7"),
        Broken(testDescription: "is killed", script: "#!/bin/sh\nkill -9 $$\n", reason: "it was killed by signal 9"),
        Broken(
            testDescription: "hangs", script: "#!/bin/sh\nexec sleep 600\n",
            reason: "it does not accept clients after 0.3 seconds"),
        Broken(
            testDescription: "hangs, and does not end when it is asked to",
            script: "#!/bin/sh\ntrap '' TERM\nwhile :; do sleep 0.1; done\n",
            reason: "it does not accept clients after 0.3 seconds"),
        Broken(
            testDescription: "lets go of the connection, and hangs",
            script: "#!/bin/sh\nexec 3<&-\nexec sleep 600\n",
            reason: "it does not accept clients after 0.3 seconds"),
    ])
    func `a program that cannot take the place is reported, and the old one serves on`(_ broken: Broken) throws {
        // A busy machine may take long to start a shell.
        let limit = broken.reason.contains("does not accept") ? "300ms" : "20s"
        try withLinkedProgram(.other(section: "", key: "upgrade-timeout", value: limit)) { origin, proxy in
            let path = "\(proxy.folder)/coalesced"
            System.remove(path)
            if let script = broken.script {
                try System.write(script, to: path)
                if broken.isExecutable { System.makeExecutable(path) }
            }
            proxy.signal(SIGUSR2)
            let line =
                "error: not upgraded: \(path)\(broken.reason.hasPrefix("cannot") ? " " : ": ")\(broken.reason)"
            try eventually("it says why; \(proxy.diagnostics)") { proxy.diagnostics.contains(line) }
            #expect(proxy.diagnostics.matches(of: /not upgraded/).count == 1)
            #expect(try proxy.get("/x").text == "x" && proxy.exit() == nil)
            // With the right program there is nothing in the way.
            System.remove(path)
            try System.link(path, to: Program.path())
            try proxy.rewriteConfiguration(upstream: origin.url)
            proxy.signal(SIGHUP)
            try eventually("it has more time") { proxy.diagnostics.contains("info: reloaded") }
            try proxy.upgrade()
            #expect(try proxy.exited() == .code(0))
            #expect(try proxy.get("/x").text == "x")
        }
    }

    @Test func `a file with mistakes stops the upgrade, and the log has each of them`() throws {
        try withLinkedProgram { origin, proxy in
            try System.write(Setting.fileWithFiveMistakes.text, to: proxy.configurationPath)
            proxy.signal(SIGUSR2)
            try eventually("it says why") {
                proxy.diagnostics.contains(
                    "not upgraded: \(proxy.folder)/coalesced: it ended with exit code 78")
            }
            for line in Setting.fileWithFiveMistakes.lines {
                #expect(proxy.diagnostics.contains("coalesced.yaml:\(line):"), "\(proxy.diagnostics)")
            }
            #expect(try proxy.get("/x").text == "x" && proxy.exit() == nil)
            #expect(System.exists("\(proxy.folder)/admin.sock"))
            try proxy.rewriteConfiguration(upstream: origin.url)
            try proxy.upgrade()
            #expect(try proxy.get("/x").text == "x")
        }
    }

    @Test func `the service manager is told of the new main process, and of no end`() throws {
        let manager = try ManagerSocket()
        try withLinkedProgram(variables: ["NOTIFY_SOCKET=\(manager.path)"]) { _, proxy in
            var told: [String] = []
            try eventually("it is ready") {
                told += manager.read()
                return told == ["READY=1"]
            }
            let next = try proxy.upgrade()
            #expect(try proxy.exited() == .code(0))
            try eventually("the new one is ready; \(told)") {
                told += manager.read()
                return told.count >= 3
            }
            #expect(told == ["READY=1", "MAINPID=\(next)", "MAINPID=\(next)\nREADY=1"])
            Spawn.signal(next, SIGTERM)
            try eventually("it ends") { isGone(next) }
            #expect(manager.read() == ["STOPPING=1"])
        }
    }

    @Test func `signals during an upgrade reach the program that serves in the end`() throws {
        try withLinkedProgram { origin, proxy in
            let path = "\(proxy.folder)/coalesced"
            System.remove(path)
            // It waits for a file, and then becomes the program.
            let wait = "while [ ! -e \(proxy.folder)/go ]; do sleep 0.01; done"
            try System.write("#!/bin/sh\n\(wait)\nexec \(Program.path()) \"$@\"\n", to: path)
            System.makeExecutable(path)
            proxy.signal(SIGUSR2)
            try eventually("it is started") { proxy.diagnostics.contains("SIGUSR2: starting") }
            proxy.signal(SIGUSR2)
            try eventually("one at a time") { proxy.diagnostics.contains("another upgrade is under way") }
            proxy.signal(SIGHUP)
            proxy.signal(SIGUSR1)
            _ = try proxy.admin.get("/healthz")
            #expect(!proxy.diagnostics.contains("info: reloaded"))
            try System.write("", to: "\(proxy.folder)/go")
            try eventually("the new one reloads; \(proxy.diagnostics)") {
                proxy.diagnostics.contains("info: reloaded")
            }
            #expect(proxy.successors.count == 1)
            #expect(try proxy.get("/x").text == "x")
            #expect(try proxy.exited() == .code(0))
        }
    }

    @Test func `an ending signal during an upgrade ends both programs`() throws {
        try withLinkedProgram { _, proxy in
            let path = "\(proxy.folder)/coalesced"
            System.remove(path)
            try System.write("#!/bin/sh\necho $$ >\(proxy.folder)/pid\nexec sleep 600\n", to: path)
            System.makeExecutable(path)
            proxy.signal(SIGUSR2)
            var process: pid_t?
            try eventually("it is started") {
                process = pid_t(System.contents(of: "\(proxy.folder)/pid").prefix { $0.isNumber })
                return process != nil
            }
            proxy.terminate()
            #expect(try proxy.exited() == .code(0))
            try eventually("the other one ends") { isGone(process!) }
        }
    }

    @Test func `a program that drains after an upgrade is not cut short by the first signal`() throws {
        try scenario { origin, proxy in
            let gate = Gate()
            origin.on("/slow") { _ in [.head(200, "Content-Length: 4"), .text("ab"), .gate(gate), .text("cd")] }
            let download = proxy.crowd(1, get: "/slow")
            try eventually("half is there") { download.answers[0].body.length == 2 }
            try proxy.upgrade()
            for signal in [SIGUSR2, SIGTERM] { proxy.signal(signal) }
            try eventually("it heard both") {
                proxy.diagnostics.contains("not upgraded: this program is ending")
                    && proxy.diagnostics.contains("SIGTERM: no new connections")
            }
            gate.open()
            #expect(download.finished()[0].text == "abcd")
            #expect(try proxy.exited() == .code(0))
        }
    }

    @Test func `sockets of the service manager and paths of Unix sockets go on to the new program`() throws {
        let origin = try ScriptedOrigin()
        defer { origin.stop() }
        origin.on("/x") { _ in [.answer(200, body: "x")] }
        let folder = try System.makeTemporaryFolder()
        let socket = try Socket.listen()
        defer { Socket.close(socket.descriptor) }
        let own = Address(endpoint: .unix("\(folder)/own"))
        let arguments = ["127.0.0.1:\(socket.port)", "unix:\(folder)/own"].flatMap { ["--listen", $0] }
        let proxy = try Program(
            folder: folder, arguments + ["--upstream", origin.url, "--workers", "2"],
            shell: "export LISTEN_PID=$$ LISTEN_FDS=1; exec \"$@\"", passing: [socket.descriptor])
        defer { proxy.stop() }
        try proxy.waitUntilListening(1)
        for _ in 1...2 {
            let process = try proxy.upgrade()
            for place in [Address(endpoint: .tcp(socket.port)), own] {
                #expect(try place.get("/x").text == "x")
            }
            // The connection between the programs, and nothing of the former one, is open there.
            let files = System.list("/proc/\(process)/fd").compactMap {
                System.target(ofLink: "/proc/\(process)/fd/\($0)")
            }
            #expect(files.count(where: { $0.hasPrefix("socket:") }) < 16, "\(files)")
        }
        #expect(try proxy.exited() == .code(0))
        let last = try #require(proxy.successors.last)
        Spawn.signal(last, SIGTERM)
        try eventually("it ends") { isGone(last) }
        #expect(!System.exists("\(folder)/own"))
        // The service manager's socket is still there.
        let waiting = try Address(endpoint: .tcp(socket.port)).connect()
        #expect(!waiting.isEndedByPeer)
    }

    @Test func `the demonstration is not upgraded`() throws {
        let folder = try System.makeTemporaryFolder()
        let demo = try Program(folder: folder, ["demo", "--listen", "127.0.0.1:0"])
        defer { demo.stop() }
        try eventually("it serves") { demo.output.contains("Press Control-C") }
        demo.signal(SIGUSR2)
        try eventually("it says so") { demo.diagnostics.contains("not upgraded: this is a demonstration") }
    }
}
