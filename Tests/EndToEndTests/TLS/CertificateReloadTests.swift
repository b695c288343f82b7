import CertificateMaking
import Glibc
import Synchronization
import TLS
import Testing

/// Certificates that are replaced while the program runs.
@Suite(.heavyScenario) struct CertificateReloadTests {
    /// Of the certificate that a new connection gets.
    private func fingerprint(_ site: SecureSite) throws -> String {
        try Self.fingerprint(Command.openssl(site, ["-noservername"]).output)
    }

    private static func fingerprint(_ text: String) throws -> String {
        guard let begin = text.firstRange(of: "-----BEGIN CERTIFICATE-----"),
            let end = text.firstRange(of: "-----END CERTIFICATE-----")
        else { return text }
        let certificate = String(text[begin.lowerBound..<end.upperBound]) + "\n"
        return try Command.run(["openssl", "x509", "-noout", "-fingerprint", "-sha256"], input: certificate).output
    }

    @Test func `a certificate replaced under load twenty times fails no request, and is used from then on`() throws {
        try SecureSite.run(.workers(2)) { site in
            site.origin.on("/miss") { _ in [.answer(200, "Cache-Control: no-store", body: "hello")] }
            let hits = Passersby(3, at: site.proxy, get: "/x", expecting: "hello")
            let misses = Passersby(2, at: site.proxy, get: "/miss", expecting: "hello")
            let open = try site.connect()
            let script = try Python(
                Self.script, importing: "requests", "\(site.port)", "\(site.folder)/authority.pem")
            for round in 1...20 {
                let identity = TestIdentity.authority.identity(for: "127.0.0.1", key: round % 4 == 0 ? .rsa : .ecdsa)
                try TestIdentity.write(identity, to: "\(site.folder)/site0")
                let before = site.proxy.diagnostics.matches(of: #/info: reloaded /#).count
                site.proxy.signal(SIGHUP)
                try eventually("it is reloaded; \(site.proxy.diagnostics.suffix(500))") {
                    site.proxy.diagnostics.matches(of: #/info: reloaded /#).count > before
                }
                let expected = try Self.fingerprint(identity.certificate.text)
                for _ in 0..<2 { #expect(try fingerprint(site) == expected, "round \(round)") }
                // The first connection of all has lived through it.
                try open.send(site.proxy.request("GET", "/x"))
                #expect(try open.answer().text == "hello")
            }
            #expect(try hits.stop(after: 200) == [])
            #expect(try misses.stop(after: 100) == [])
            script.terminate()
            try eventually("Python ends; \(script.errors)") { script.exit != nil }
            #expect(script.errors == "")
            #expect((Int(script.lines.last ?? "") ?? 0) > 20, "\(script.lines)")
        }
    }

    /// A new connection for each request, until it is told to end; prints how many it made.
    private static let script = """
        import requests, signal, sys
        over = False
        def end(*_):
            global over
            over = True
        signal.signal(signal.SIGTERM, end)
        count = 0
        while not over:
            response = requests.get("https://127.0.0.1:" + sys.argv[1] + "/x", verify=sys.argv[2], timeout=20)
            assert response.status_code == 200 and response.text == "hello", response
            count += 1
        print(count)
        """

    @Test func `a damaged certificate is refused, and the former one stays`() throws {
        try SecureSite.run { site in
            let before = try fingerprint(site)
            let other = TestAuthority("Other").identity(for: "127.0.0.1")
            for (certificate, key) in [
                ("nonsense", other.key.text), (other.certificate.text, "nonsense"),
                (other.certificate.text, TestIdentity.ofProgram.key.text), ("", ""),
            ] {
                try System.write(certificate, to: "\(site.folder)/site0.pem")
                try System.write(key, to: "\(site.folder)/site0.key")
                let outcome = try site.proxy.admin.send("POST", "/reload", body: "")
                #expect(outcome.status != 200 && outcome.text.contains("site0"), "\(outcome.text)")
                #expect(try fingerprint(site) == before)
                #expect(try site.get("/x").text == "hello")
            }
        }
    }

    @Test func `a certificate that OpenSSL refuses is refused at its place in the file`() throws {
        try SecureSite.run { site in
            let before = try fingerprint(site)
            try TestIdentity.write(
                TestIdentity.authority.identity(for: "127.0.0.1", key: .shortRSA), to: "\(site.folder)/site0")
            let outcome = try site.proxy.admin.send("POST", "/reload", body: "")
            #expect(outcome.status != 200)
            #expect(
                outcome.text.contains(
                    #/coalesced\.yaml:[0-9]+:[0-9]+: `certificate: \S+site0\.pem`: OpenSSL refuses it/#)
                    && !outcome.text.contains("coalesced.yaml:1:1:"), "\(outcome.text)")
            #expect(try fingerprint(site) == before)
        }
    }

    @Test func `the log tells which listeners speak TLS`() throws {
        try SecureSite.run { site in
            let said = site.proxy.diagnostics
            #expect(said.contains("listening on 127.0.0.1:\(site.port) (TLS)\n"), "\(said)")
            #expect(said.contains("listening on 127.0.0.1:\(site.plain.endpoint.port)\n"), "\(said)")
        }
    }

    @Test func `a handshake that is under way over a reload comes to its end`() throws {
        try SecureSite.run { site in
            let (client, end) = (try site.raw.connect(), TLSEnd(.client))
            #expect(end.shake() == .needsBytes)
            let hello = end.takeOutgoing()
            try client.send(Array(hello[..<40]))
            try TestIdentity.write(
                TestIdentity.authority.identity(for: "127.0.0.1"), to: "\(site.folder)/site0")
            try site.reload()
            try client.send(Array(hello[40...]))
            var outcome = TLSEnd.Outcome.needsBytes
            while outcome == .needsBytes {
                end.give(try client.bytes(1)[...])
                outcome = end.shake()
            }
            #expect(outcome == .done)
        }
    }
}
