import CertificateMaking
import Testing

/// What operators see of TLS: in the metrics, the access log, `status`, `top` and the log.
@Suite(.scenario) struct TLSObservationTests {
    /// Handshakes of a client that asks for `a.test`, one for each version that it is told; `again` resumes the session
    /// of the one before. Prints what the client knows of each: version, cipher, whether it was resumed.
    private static let client = """
        import socket, ssl, sys
        port, words = int(sys.argv[1]), sys.argv[2].split(",")
        session, context = None, None
        for word in words:
            if word != "again":
                context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
                context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
                context.minimum_version = context.maximum_version = getattr(ssl.TLSVersion, word)
                session = None
            connection = context.wrap_socket(
                socket.create_connection(("127.0.0.1", port)), server_hostname="a.test", session=session)
            connection.sendall(b"GET /x HTTP/1.1\\r\\nHost: a.test\\r\\n\\r\\n")
            assert b"200 OK" in connection.recv(4096)
            session = connection.session
            print(connection.version(), connection.cipher()[0], connection.session_reused)
            connection.close()
        print("end")
        """

    private func handshakes(_ words: String, at site: SecureSite) throws -> [String] {
        let client = try Python(Self.client, importing: "ssl", "\(site.port)", words)
        try eventually("the client ends; \(client.errors)") { client.exit != nil }
        #expect(client.exit == .code(0), "\(client.errors)")
        return client.lines
    }

    private func count(_ family: String, _ labels: String..., at proxy: Program) throws -> Int {
        let names = labels.isEmpty ? "" : "{\(labels.joined(separator: ","))}"
        return try Int(Program.sum("coalesced_\(family)\(names)", in: proxy.admin.get("/metrics").wholeText))
    }

    @Test func `handshakes are counted by version and resumption, and each request is logged with what was agreed on`()
        throws
    {
        try SecureSite.run(.accessLog) { site in
            let proxy = site.proxy
            let seen = try handshakes("TLSv1_3,again,TLSv1_2,again,again", at: site)
            #expect(seen.last == "end" && seen.count == 6)
            for (version, resumed, expected) in [
                ("1.2", "false", 1), ("1.2", "true", 2), ("1.3", "false", 1), ("1.3", "true", 1),
            ] {
                let labels = ["version=\"\(version)\"", "resumed=\"\(resumed)\""]
                #expect(try count("tls_handshakes_total", labels[0], labels[1], at: proxy) == expected, "\(labels)")
            }
            try eventually("five lines") { try proxy.accessLog.count == 5 }
            let lines = try proxy.accessLog
            #expect(lines.count { $0["verdict"]?.string == "hit" } == 4, "\(lines)")
            #expect(lines.allSatisfy { $0["sni"]?.string == "a.test" && $0["status"]?.number == 200 })
            #expect(
                lines.map { $0["tls_version"]?.string ?? "" }.sorted()
                    == ["TLSv1.2", "TLSv1.2", "TLSv1.2", "TLSv1.3", "TLSv1.3"])
            // Python has OpenSSL's names, which in TLS 1.3 are those of the IANA.
            for line in lines where line["tls_version"]?.string == "TLSv1.3" {
                let cipher = try #require(line["tls_cipher"]?.string)
                #expect(seen.contains { $0.hasPrefix("TLSv1.3 \(cipher) ") }, "\(cipher): \(seen)")
            }
        }
    }

    @Test func `failed handshakes are counted by reason`() throws {
        try SecureSite.run { site in
            func failures(_ reason: String) throws -> Int {
                try count("tls_handshake_failures_total", "reason=\"\(reason)\"", at: site.proxy)
            }
            #expect(try site.raw.get("/x").status == 400)
            #expect(try failures("plain") == 1)
            let broken = try site.raw.connect()
            try broken.send([22, 3, 1, 0xFF, 0xFF])
            try eventually("it is counted") { try failures("protocol") == 1 }
            let leaving = try site.raw.connect()
            try leaving.send([22, 3, 1])
            leaving.finishSending()
            try eventually("it is counted") { try failures("cut") == 1 }
            // curl does not know who has issued the certificate, and says so.
            let curl = try Command.run(["curl", "-sS", "--max-time", "10", "https://\(site.raw.host)/x"])
            #expect(curl.exit != .code(0))
            try eventually("it is counted") { try failures("alert") == 1 }
            #expect(try count("tls_handshake_failures_total", at: site.proxy) == 4)
            #expect(site.origin.total == 0)
        }
    }

    @Test func `the certificate's end is told by the metrics, the status and top`() throws {
        let life = 10 * 86_400 + 3600
        let identity = TestIdentity.authority.identity(for: "a.test", "www.a.test", valid: -60...life)
        try SecureSite.run(identities: [identity]) { site in
            let (path, proxy) = ("\(site.folder)/site0.pem", site.proxy)
            let end = try count("certificate_expiry_seconds", "certificate=\"\(path)\"", at: proxy)
            #expect(abs(end - System.secondsNow - life) < 600)
            let tls = try #require(try proxy.status()["tls"])
            let certificate = try #require(tls["certificates"]?.elements.first)
            #expect(certificate["certificate"]?.string == path)
            #expect(certificate["names"]?.elements.map(\.string) == ["a.test", "www.a.test"])
            #expect(certificate["not_after"]?.number == Double(end))
            let left = try #require(certificate["expires_seconds"]?.number)
            #expect((10 * 86_400...Double(life)).contains(left))
            #expect(tls["listeners"]?.elements.map(\.string) == [site.raw.host])
            let top = try proxy.command("top", "--once").output
            #expect(top.contains("tls       0 handshakes/s"), "\(top)")
            #expect(top.contains("site0.pem EXPIRES in 10d 0h"), "\(top)")
        }
    }

    @Test(.inTheClear("it is about listeners without TLS")) func `without TLS there is nothing of all that`() throws {
        try scenario(.accessLog) { origin, proxy in
            origin.on("/x") { _ in [.answer(200, body: "hello")] }
            try proxy.get("/x")
            try eventually("a line") { try proxy.accessLog.count == 1 }
            let line = try proxy.accessLog[0]
            #expect(line["tls_version"] == nil && line["tls_cipher"] == nil && line["sni"] == nil)
            let metrics = try proxy.admin.get("/metrics").wholeText
            #expect(!metrics.contains("_tls_") && !metrics.contains("certificate"))
            #expect(try proxy.status()["tls"] == nil)
            #expect(try !proxy.command("top", "--once").output.contains("tls"))
        }
    }

    @Test(.overHTTP1("it sends bytes that are no request"), .inTheClear("it is about listeners without TLS"))
    func `a hello of TLS on a listener without TLS gets an alert, a line in the log, and that of a bad request`()
        throws
    {
        try scenario(.accessLog) { _, proxy in
            let client = try proxy.connect()
            try client.send([22, 3, 1, 2, 0, 1, 0, 1, 0xFC, 3, 3])
            #expect(try client.bytes(7) == [21, 3, 1, 0, 2, 2, 70])
            #expect(client.isClosed() && !client.isReset)
            for words in [
                ["curl", "-sS", "https://\(proxy.host)/x"], ["openssl", "s_client", "-connect", proxy.host],
            ] {
                let run = try Command.run(words)
                #expect(run.errors.contains("alert protocol version"), "\(words): \(run.everything)")
            }
            try eventually("three lines") { try proxy.accessLog.count == 3 }
            for line in try proxy.accessLog {
                #expect(line["status"]?.number == 400 && line["verdict"]?.string == "refused")
                #expect(line["method"] == nil && line["tls_version"] == nil && line["bytes"]?.number == 0)
            }
            #expect(try proxy.metric(.malformed) == 3)
            #expect(
                proxy.diagnostics.contains("a TLS hello on a listener without TLS: use https:// in `listen`"),
                "\(proxy.diagnostics)")
        }
    }

    @Test(.overHTTP1("it sends bytes that are no request"), .inTheClear("it is about listeners without TLS"))
    func `a hello behind a request is answered as any malformed request`() throws {
        try scenario { origin, proxy in
            origin.on("/x") { _ in [.answer(200, body: "hello")] }
            let client = try proxy.connect()
            try client.send(proxy.request("GET", "/x"))
            #expect(try client.answer().status == 200)
            try client.send([22, 3, 1, 2, 0, 1, 0, 1, 0xFC, 3, 3])
            #expect(try client.answer().status == 400)
        }
    }
}
