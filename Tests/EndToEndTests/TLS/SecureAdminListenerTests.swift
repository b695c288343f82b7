import Glibc
import Testing

/// The admin listener with TLS, as scrapers and the commands of this program find it.
@Suite(.scenario, .clientsInTheClear("flags would take the place of the certificates in the file"))
struct SecureAdminListenerTests {
    private func withProxy(
        _ body: (_ authority: OwnAuthority, _ proxy: Program, _ address: String) throws -> Void
    ) throws {
        let authority = try OwnAuthority()
        defer { System.removeFolder(authority.folder) }
        try authority.issue("site.test")
        let address = "https://127.0.0.1:\(try Socket.freePort())"
        let base = "\(authority.folder)/site.test"
        let proxy = try Program.serve(
            file: """
                upstreams: [{name: o, servers: ["http://127.0.0.1:1"]}]
                routes: [{respond: {status: 200, body: yes}}]
                tls: {certificates: [{certificate: \(base).pem, key: \(base).key}]}
                admin: {address: "\(address)"}

                """, arguments: ["--admin", address])
        defer { proxy.stop() }
        try body(authority, proxy, address)
    }

    private func command(_ words: String..., of proxy: Program, _ more: String...) throws -> Program.Run {
        try Program.run(words + ["--config", proxy.configurationPath] + more)
    }

    private func serial(_ address: String) throws -> String {
        let place = address.dropFirst("https://".count)
        return try Tool.run([
            "sh", "-c", "openssl s_client -connect \(place) </dev/null 2>/dev/null | openssl x509 -noout -serial",
        ])
    }

    @Test func `scrapers and commands ask it over TLS, and a request in the clear is told so`() throws {
        try withProxy { authority, proxy, address in
            let page = try Tool.run(["curl", "-sS", "--cacert", authority.file, "\(address)/metrics"])
            #expect(page.contains("coalesced_"))
            let status = try command("status", of: proxy)
            #expect(status.exit == .code(0) && status.output.contains("\"running\""), "\(status.everything)")
            #expect(try command("purge", "--all", of: proxy).output.hasPrefix("purged 0"))
            #expect(try command("top", "--once", of: proxy, "--admin", address).exit == .code(0))
            let clear = try command("status", of: proxy, "--admin", String(address.dropFirst("https://".count)))
            #expect(clear.exit == .code(69) && clear.errors.contains("speaks TLS"), "\(clear.everything)")
        }
    }

    @Test func `a renewed certificate is reloaded by the command, and the next handshake has it`() throws {
        try withProxy { authority, proxy, address in
            let former = try serial(address)
            try authority.issue("site.test")
            // The proxy still shows the former one, which the file names no more: its authority counts.
            let reload = try command("reload", of: proxy)
            #expect(reload.exit == .code(0), "\(reload.everything)")
            #expect(try serial(address) != former)
            #expect(try command("status", of: proxy).exit == .code(0))
        }
    }

    @Test func `a listener that is not believed is not told anything`() throws {
        try withProxy { authority, proxy, address in
            try authority.selfSign("other")
            let base = "\(authority.folder)/other"
            let run = try Program.run(
                ["purge", "--all", "--admin", address, "--config", "@/c.yaml"],
                files: [
                    "c.yaml": """
                    upstreams: [{name: o, servers: ["http://127.0.0.1:1"]}]
                    tls: {certificates: [{certificate: \(base).pem, key: \(base).key}]}

                    """
                ])
            #expect(
                run.exit == .code(69) && run.errors.contains("its certificate is none that tls.certificates names"),
                "\(run.everything)")
            #expect(run.output.isEmpty)
        }
    }
}
