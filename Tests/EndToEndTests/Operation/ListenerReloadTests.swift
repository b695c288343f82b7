import Glibc
import Testing

/// Listeners come and go with a reload, whose outcome is told.
@Suite(.scenario) struct ListenerReloadTests {
    private struct Listening {
        let origin: ScriptedOrigin
        let proxy: Program

        func write(_ listen: String, _ more: String = "") throws {
            try System.write(
                "listen: [\(listen)]\n\(more)upstreams: [{name: origin, servers: [\(origin.url)]}]\n",
                to: proxy.configurationPath)
        }
    }

    /// A program whose listeners are those of its file: one at any port, and what a reload adds.
    private func listening(
        shell: String? = nil, passing passed: [Int32] = [], at first: String = "127.0.0.1:0",
        _ body: (Listening) throws -> Void
    ) throws {
        let origin = try ScriptedOrigin()
        defer { origin.stop() }
        origin.on("/x") { _ in [.answer(200, "Cache-Control: max-age=600", body: "x")] }
        let folder = try System.makeTemporaryFolder()
        let path = "\(folder)/coalesced.yaml"
        try System.write(
            "listen: [\(first)]\nworkers: 2\nupstreams: [{name: origin, servers: [\(origin.url)]}]\n", to: path)
        let proxy = try Program(
            folder: folder, ["serve", "--config", path, "--admin", "unix:\(folder)/admin.sock"], shell: shell,
            passing: passed)
        defer { proxy.stop() }
        try proxy.waitUntilListening(1)
        try body(Listening(origin: origin, proxy: proxy))
    }

    private func refuses(_ place: Address) -> Bool {
        guard let client = try? place.connect() else { return true }
        client.close()
        return false
    }

    @Test func `no client fails while reloads add and remove listeners, three times`() throws {
        try listening { here in
            let (origin, proxy) = (here.origin, here.proxy)
            let clients = Passersby(50, at: proxy, get: "/x", expecting: "x")
            let port = try Socket.freePort()
            let (added, path) = (Address(endpoint: .tcp(port)), "\(proxy.folder)/added")
            for round in 1...3 {
                try eventually("some are served", within: .seconds(60)) {
                    clients.served >= round * UpgradeTests.requests / 4
                }
                try here.write("127.0.0.1:0, 127.0.0.1:\(port), unix:\(path)", "workers: 2\n")
                let more = try proxy.command("reload")
                #expect(more.exit == .code(0) && more.output == "reloaded \(proxy.configurationPath)\n", "\(more)")
                // Several each, so that every worker has its turn.
                for _ in 1...8 {
                    for place in [added, Address(endpoint: .unix(path))] { #expect(try place.get("/x").text == "x") }
                }
                let open = try (0..<8).map { _ in try added.connect() }
                for client in open.prefix(4) { try client.send(added.request("GET", "/x")) }
                for client in open.prefix(4) { #expect(try client.answer().text == "x") }
                try here.write("127.0.0.1:0", "workers: 2\n")
                let fewer = try proxy.command("reload")
                #expect(fewer.exit == .code(0), "\(fewer)")
                #expect(refuses(added) && !System.exists(path))
                // Connections that are open stay.
                for client in open {
                    try client.send(added.request("GET", "/x"))
                    let answer = try client.answer()
                    #expect(answer.text == "x" && answer["connection"] == nil)
                }
            }
            let failures = try clients.stop(after: UpgradeTests.requests)
            #expect(failures.isEmpty, "\(failures.count) of \(clients.served): \(failures.prefix(5))")
            note("requests while listeners came and went three times", clients.served)
            // One for each Host.
            #expect(origin.count("/x") == 3)
            #expect(!proxy.diagnostics.contains("after a restart"), "\(proxy.diagnostics)")
        }
    }

    @Test func `clients that wait in the queue of a listener that goes are served`() throws {
        try listening { here in
            let (proxy, port) = (here.proxy, try Socket.freePort())
            let added = Address(endpoint: .tcp(port))
            try here.write("127.0.0.1:0, 127.0.0.1:\(port)", "workers: 2\n")
            #expect(try proxy.command("reload").exit == .code(0))
            try here.write("127.0.0.1:0", "workers: 2\n")
            var waiting: [Conversation] = []
            try proxy.whileStopped {
                waiting = try (0..<100).map { _ in try added.connect() }
                for client in waiting { try client.send(added.request("GET", "/x")) }
                proxy.signal(SIGHUP)
            }
            for client in waiting { #expect(try client.answer().text == "x") }
            try eventually("nobody listens there") { refuses(added) }
        }
    }

    @Test func `an address that cannot be bound is a mistake with its place, and nothing changes`() throws {
        let taken = try Socket.listen()
        defer { Socket.close(taken.descriptor) }
        try listening { here in
            let free = try Socket.freePort()
            try here.write("127.0.0.1:0, 127.0.0.1:\(free), 127.0.0.1:\(taken.port)", "hosts: [elsewhere.example]\n")
            let run = try here.proxy.command("reload")
            #expect(run.exit == .code(78) && run.output.isEmpty)
            #expect(
                run.errors.hasPrefix(
                    "\(here.proxy.configurationPath):1:1: cannot listen on 127.0.0.1:\(taken.port): Address already in use"
                ),
                "\(run.errors)")
            #expect(run.errors.split(separator: "\n").count == 1)
            #expect(refuses(Address(endpoint: .tcp(free))))
            #expect(try here.proxy.get("/x").text == "x", "the former hosts are served")
            #expect(try here.proxy.status()["last_reload"]?["succeeded"] == .bool(false))
        }
    }

    @Test func `a listener may change from one address to all, at the same port`() throws {
        try listening { here in
            let port = try Socket.freePort()
            for address in ["127.0.0.1", "0.0.0.0", "127.0.0.1"] {
                try here.write("127.0.0.1:0, \(address):\(port)", "workers: 2\n")
                let run = try here.proxy.command("reload")
                #expect(run.exit == .code(0), "\(run)")
                #expect(try Address(endpoint: .tcp(port)).get("/x").text == "x")
                #expect(
                    try here.proxy.status()["listeners"]
                        == .array(
                            [.string("127.0.0.1:\(here.proxy.endpoint.port)"), .string("\(address):\(port)")]))
            }
        }
    }

    @Test func `a socket of the service manager does not go with a reload`() throws {
        let socket = try Socket.listen()
        defer { Socket.close(socket.descriptor) }
        try listening(
            shell: "export LISTEN_PID=$$ LISTEN_FDS=1; exec \"$@\"", passing: [socket.descriptor],
            at: "127.0.0.1:\(socket.port)"
        ) { here in
            try here.write("127.0.0.1:0", "workers: 2\n")
            let run = try here.proxy.command("reload")
            #expect(run.exit == .code(78) && run.errors.contains("passed a socket listening on"), "\(run)")
            #expect(try here.proxy.get("/x").text == "x")
        }
    }

    @Test func `the reload command prints each mistake, and what needs a restart`() throws {
        try scenario { origin, proxy in
            try System.write(Setting.fileWithFiveMistakes.text, to: proxy.configurationPath)
            let wrong = try proxy.command("reload")
            #expect(wrong.exit == .code(78) && wrong.output.isEmpty)
            for line in Setting.fileWithFiveMistakes.lines {
                #expect(wrong.errors.contains("coalesced.yaml:\(line):"), "\(wrong.errors)")
            }
            #expect(wrong.errors.split(separator: "\n").count == 5)
            try proxy.rewriteConfiguration(upstream: origin.url, .workers(7), .memory(mebibytes: 99))
            let right = try proxy.command("reload")
            #expect(right.exit == .code(0))
            #expect(right.output.contains("changed, but only takes effect after a restart: workers, storage"))
        }
    }

    @Test func `the reload command without a proxy exits with 69`() throws {
        let run = try Program.run("reload", "--admin", "unix:@/nobody")
        #expect(run.exit == .code(69) && run.errors.hasPrefix("no coalesced at unix:"), "\(run)")
        // A signal may still reach a proxy without an admin listener.
        let off = try Program.run("reload", "--config", "@/f", files: ["f": "admin: {address: off}\n"])
        #expect(off.exit == .code(69) && off.errors.contains("admin.address"), "\(off)")
    }

    @Test func `a reload through the admin listener is protected as a purge is`() throws {
        try scenario { _, proxy in
            #expect(try proxy.admin.get("/reload").status == 405)
            let foreign = try proxy.admin.send("POST", "/reload", "Origin: http://elsewhere.example", body: "")
            #expect(foreign.status == 403)
            #expect(!proxy.diagnostics.contains("reloaded"))
        }
        try scenario(.other(section: "admin", key: "purge", value: "false")) { _, proxy in
            let answer = try proxy.admin.send("POST", "/reload", body: "")
            #expect(answer.status == 403)
        }
    }
}
