import Testing

/// The engine of the shared tier with TLS.
@Suite(.scenario) struct SecureEngineTests {
    private func withEngine(_ body: (OwnAuthority, RedisEngine, _ url: String) throws -> Void) throws {
        let authority = try OwnAuthority()
        defer { System.removeFolder(authority.folder) }
        try authority.issue("engine")
        try authority.issue("proxy")
        let port = try Socket.freePort()
        let base = "\(authority.folder)/engine"
        let engine = try RedisEngine([
            "--tls-port", "\(port)", "--bind", "127.0.0.1", "--tls-cert-file", "\(base).pem", "--tls-key-file",
            "\(base).key", "--tls-ca-cert-file", authority.file, "--tls-auth-clients", "yes",
        ])
        try body(authority, engine, "rediss://127.0.0.1:\(port)")
    }

    private func tls(_ authority: OwnAuthority, ca: String? = nil) -> String {
        let own = "\(authority.folder)/proxy"
        return
            "{server-name: engine, ca: \(ca ?? authority.file), client-certificate: {certificate: \(own).pem, key: \(own).key}}"
    }

    private func settings(_ url: String, _ tls: String) -> [Setting] {
        [
            .workers(2), .sharedTimeout("300ms"), .other(section: "shared", key: "engine", value: url),
            .other(section: "shared", key: "tls", value: tls),
        ]
    }

    @Test func `machines share what one has fetched, and hear of purges`() throws {
        try withEngine { authority, _, url in
            let origin = try ScriptedOrigin()
            defer { origin.stop() }
            origin.on("*") { _ in [.answer(200, "Cache-Control: max-age=600", body: "page")] }
            let machines = try (0..<2).map { _ in
                try Program.serve(servers: [origin.url], settings(url, tls(authority)))
            }
            defer { for machine in machines { machine.stop() } }
            for machine in machines { try SharedMachines.waitForTier(machine) }
            for round in 1...2 {
                for machine in machines {
                    #expect(try machine.send("GET", "/a", [SharedMachines.site]).text == "page")
                }
                #expect(origin.count("/a") == round)
                guard round == 1 else { break }
                #expect(try machines[0].command("purge", "--all").exit == .code(0))
                try eventually("the purge is heard of") {
                    try machines[1].send("GET", "/a", [SharedMachines.site, "Cache-Control: only-if-cached"]).status
                        == 504
                }
            }
            #expect(try machines[0].status()["shared"]?["nodes"]?.elements.first?["node"]?.string == url)
        }
    }

    @Test func `an engine that is not believed is told of with the reason, and requests go on without it`() throws {
        try withEngine { authority, _, url in
            let origin = try ScriptedOrigin()
            defer { origin.stop() }
            origin.on("*") { _ in [.answer(200, "Cache-Control: max-age=600", body: "page")] }
            try authority.selfSign("other")
            let wrong = settings(url, tls(authority, ca: "\(authority.folder)/other.pem"))
            let machine = try Program.serve(servers: [origin.url], wrong)
            defer { machine.stop() }
            #expect(try machine.send("GET", "/a", []).text == "page")
            let reason = "no TLS with the engine: self-signed certificate in certificate chain"
            try eventually("the log says why") { machine.diagnostics.contains("no connection to \(url): \(reason)") }
            #expect(try machine.admin.get("/status").wholeText.contains(reason))
            let run = try Program.run(
                ["check", "--config", "@/c.yaml"], files: ["c.yaml": Setting.file(wrong, servers: [origin.url])])
            #expect(run.exit == .code(0) && run.errors.contains(reason), "\(run.everything)")
        }
    }
}
