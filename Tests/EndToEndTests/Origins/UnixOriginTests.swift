import Glibc
import Testing

/// Origins at Unix sockets: what an application server on the same machine listens at.
@Suite(.scenario) struct UnixOriginTests {
    private static func answer(_ server: ScriptedOrigin, _ name: String, _ cacheControl: String = "no-store") {
        server.on("*") { _ in [.requestBody, .answer(200, "Cache-Control: \(cacheControl)", body: name)] }
    }

    /// An origin at a path, and the program in front of it. Both are gone afterwards.
    private func atPath(
        _ settings: Setting..., conversation: (_ origin: ScriptedOrigin, _ proxy: Program) throws -> Void
    ) throws {
        let origin = try ScriptedOrigin(path: "\(System.makeTemporaryFolder())/app.sock")
        defer { origin.stop() }
        let proxy = try Program.serve(upstream: origin.url, [.workers(1)] + settings)
        defer { proxy.stop() }
        try conversation(origin, proxy)
    }

    @Test func `a response is fetched once and stored, and its connection is reused`() throws {
        try atPath { origin, proxy in
            Self.answer(origin, "app", "max-age=60")
            for target in ["/a", "/a", "/b", "/a"] {
                let answer = try proxy.get(target)
                #expect(answer.status == 200 && answer.text == "app")
            }
            let posted = try proxy.send("POST", "/c", body: "content")
            #expect(posted.status == 200 && origin.requests("/c").first?.body.text == "content")
            #expect(origin.count("/a") == 1 && origin.count("/b") == 1 && origin.acceptedConnections == 1)
            let hits = try proxy.metric(.hits)
            #expect(hits == 2)
        }
    }

    @Test(.overHTTP1("one request is of HTTP/1.0")) func `Host is the requested host, and localhost if there was none`()
        throws
    {
        try atPath { origin, proxy in
            Self.answer(origin, "app")
            try proxy.get("/asked")
            #expect(origin.requests("/asked").first?["host"] == proxy.host)
            let client = try proxy.connect()
            try client.send("GET /old HTTP/1.0\r\n\r\n")
            let old = try client.answer()
            #expect(old.status == 200 && origin.requests("/old").first?["host"] == "localhost")
        }
        try atPath(.other(section: "upstream", key: "host", value: "app.example")) { origin, proxy in
            Self.answer(origin, "app")
            try proxy.get("/asked")
            #expect(origin.requests("/asked").first?["host"] == "app.example")
        }
    }

    @Test func `logs, status and metrics name a Unix origin by its path`() throws {
        try atPath(.accessLog) { origin, proxy in
            Self.answer(origin, "app")
            try proxy.get("/x")
            try eventually("a line") { try proxy.accessLog.count == 1 }
            #expect(try proxy.accessLog[0]["upstream"]?.string == origin.url)
            #expect(proxy.diagnostics.contains("forwarding to \(origin.url) (upstream origin)"))
            guard case .array(let upstreams) = try proxy.status()["upstreams"],
                case .array(let servers) = upstreams.first?["servers"]
            else {
                Issue.record("no servers")
                return
            }
            #expect(servers.map { $0["server"]?.string } == [origin.url])
            let page = try proxy.admin.get("/metrics").wholeText
            #expect(Program.sum("coalesced_upstream_server_up{server=\"\(origin.url)\"}", in: page) == 1)
        }
    }

    @Test func `a missing socket gives 502 until the socket exists`() throws {
        let path = try "\(System.makeTemporaryFolder())/app.sock"
        let proxy = try Program.serve(upstream: "unix:\(path)", [.workers(1), .maxFailures(1)])
        defer { proxy.stop() }
        let missing = try proxy.get("/x")
        #expect(missing.status == 502 && missing["proxy-status"]?.contains("connection_refused") == true)
        #expect(proxy.diagnostics.contains("connect: unix:\(path): No such file or directory"), "\(proxy.diagnostics)")
        let origin = try ScriptedOrigin(path: path)
        defer { origin.stop() }
        Self.answer(origin, "here")
        let answer = try proxy.get("/x")
        #expect(answer.status == 200 && answer.text == "here")
        // The path stays, as of a program that was killed.
        origin.goDown()
        #expect(try proxy.get("/x").status == 502)
        let again = try ScriptedOrigin(path: path)
        defer { again.stop() }
        Self.answer(again, "again")
        #expect(try proxy.get("/x").text == "again")
    }

    @Test(.enabled(if: geteuid() != 0, "root may connect to any"))
    func `a socket without permission gives 502, and the log reports the permission and the user`() throws {
        try atPath { origin, proxy in
            let path = String(origin.url.dropFirst("unix:".count))
            #expect(unsafe chmod(path, 0) == 0)
            let answer = try proxy.get("/x")
            #expect(answer.status == 502 && answer["proxy-status"]?.contains("connection_refused") == true)
            let line =
                "connect: \(origin.url): Permission denied; this program runs as uid \(geteuid()), gid \(getegid()), "
                + "which needs write permission on the socket, and search permission on the folders above it"
            #expect(proxy.diagnostics.contains(line), "\(proxy.diagnostics)")
            #expect(unsafe chmod(path, 0o600) == 0)
            Self.answer(origin, "app")
            let text = try proxy.get("/x").text
            #expect(text == "app")
        }
    }

    @Test func `a stale response is served for a Unix origin that is gone`() throws {
        try atPath { origin, proxy in
            origin.on("/x") { _ in
                [.answer(200, "Cache-Control: max-age=10, stale-if-error=600", "Age: 20", body: "stored")]
            }
            try proxy.get("/x")
            origin.goDown()
            let answer = try proxy.get("/x")
            #expect(answer.status == 200 && answer.text == "stored")
        }
    }

    @Test func `a Unix server and a TCP server are used in turn, and each serves when the other fails`() throws {
        let servers = try [ScriptedOrigin(path: "\(System.makeTemporaryFolder())/app.sock"), ScriptedOrigin()]
        defer { for server in servers { server.stop() } }
        for (server, name) in zip(servers, ["socket", "port"]) { Self.answer(server, name) }
        let proxy = try Program.serve(
            servers: servers.map(\.url), [.workers(1), .maxFailures(1), .failureCooldown(.seconds(3600))])
        defer { proxy.stop() }
        let answers = try (0..<4).map { try proxy.get("/\($0)").text }
        #expect(answers == ["socket", "port", "socket", "port"])
        servers[0].goDown()
        let others = try (0..<4).map { try proxy.send("POST", "/\($0)", body: "x").text }
        #expect(others == Array(repeating: "port", count: 4))
        #expect(proxy.diagnostics.contains("server \(servers[0].url) not used for"), "\(proxy.diagnostics)")
    }

    @Test(.overHTTP1("it is about an upgrade")) func `an upgraded connection goes through a Unix socket`() throws {
        try atPath { origin, proxy in
            origin.on("/ws") { _ in [UpgradeTunnelTests.switching, .echo] }
            let client = try proxy.connect()
            try client.send(proxy.request("GET", "/ws", ["Connection: Upgrade", "Upgrade: websocket"]))
            let status = try client.answer().status
            #expect(status == 101)
            try client.send("ping")
            let echo = try client.bytes(4)
            #expect(echo == Array("ping".utf8))
        }
    }

    @Test func `simultaneous clients share one fetch of a large response`() throws {
        try atPath(.memory(mebibytes: 128)) { origin, proxy in
            let size = 4 << 20
            let gate = Gate()
            origin.on("/x") { _ in
                [.head(200, "Cache-Control: max-age=60", "Content-Length: \(size)"), .gate(gate), .pattern(0..<size)]
            }
            let crowd = proxy.crowd(20, get: "/x")
            try proxy.joined(20)
            gate.open()
            let visitors = crowd.finished()
            #expect(visitors.allSatisfy { $0.status == 200 && $0.isClean && $0.body.length == size })
            #expect(origin.count("/x") == 1)
        }
    }

    @Test func `a Unix origin may be given on the command line`() throws {
        let origin = try ScriptedOrigin(path: "\(System.makeTemporaryFolder())/app.sock")
        defer { origin.stop() }
        Self.answer(origin, "app")
        let proxy = try Program.serve(upstream: "http://127.0.0.1:9", arguments: ["--upstream", origin.url])
        defer { proxy.stop() }
        let text = try proxy.get("/x").text
        #expect(text == "app")
    }

    @Test func `the socket path of clients is refused as an origin`() throws {
        let run = try Program.run("--listen", "unix:@/s", "--upstream", "unix:@/s")
        #expect(run.exit == .code(64) && run.errors.contains("this proxy itself"), "\(run.everything)")
    }
}
