import COpenSSL
import CertificateMaking
import Testing

/// Which certificate a client gets.
@Suite(.scenario) struct CertificateChoiceTests {
    private static let authority = TestIdentity.authority
    private static let sites = [
        authority.identity(for: "a.test", "www.a.test"), authority.identity(for: "*.b.test"),
        authority.identity(for: "c.test"), authority.identity(for: "c.test", key: .rsa),
    ]

    /// The names of the certificate that `openssl s_client` gets.
    private func names(_ site: SecureSite, _ name: String?, _ more: [String] = []) throws -> String {
        let asked = name.map { ["-servername", $0] } ?? ["-noservername"]
        let run = try Command.openssl(site, asked + more + ["-showcerts"])
        guard let begin = run.output.firstRange(of: "-----BEGIN CERTIFICATE-----"),
            let end = run.output.firstRange(of: "-----END CERTIFICATE-----")
        else { return run.everything }
        let text = String(run.output[begin.lowerBound..<end.upperBound]) + "\n"
        return try Command.run(["openssl", "x509", "-noout", "-ext", "subjectAltName"], input: text).output
    }

    @Test func `a client gets the certificate of the name that it asks for`() throws {
        try SecureSite.run(identities: Self.sites) { site in
            for name in ["a.test", "www.a.test", "A.TEST"] {
                let names = try names(site, name)
                #expect(names.contains("DNS:a.test, DNS:www.a.test"))
            }
            let (second, third) = try (names(site, "x.b.test"), names(site, "c.test"))
            #expect(second.contains("DNS:*.b.test") && third.contains("DNS:c.test"))
        }
    }

    @Test func `a wildcard is for one label`() throws {
        try SecureSite.run(identities: Self.sites) { site in
            for name in ["x.y.b.test", "b.test"] {
                let names = try names(site, name)
                #expect(names.contains("DNS:a.test"))
            }
        }
    }

    @Test func `a client without a name, or with an unknown one, gets the first certificate`() throws {
        try SecureSite.run(identities: Self.sites) { site in
            for name in [nil, "unknown.test", "127.0.0.1"] as [String?] {
                let names = try names(site, name)
                #expect(names.contains("DNS:a.test"))
            }
        }
    }

    @Test func `an unknown name is refused with an alert where the settings say so`() throws {
        try SecureSite.run(identities: Self.sites, tls: ["unknown-name": "refuse"]) { site in
            let run = try Command.openssl(site, ["-servername", "unknown.test"])
            #expect(run.exit != .code(0) && run.everything.contains("unrecognized name"))
            #expect(try names(site, nil).contains("DNS:a.test"))
            #expect(try names(site, "c.test").contains("DNS:c.test"))
            try eventually("it is told") { site.proxy.diagnostics.contains("TLS handshake with") }
        }
    }

    @Test(arguments: ["1.2", "1.3"])
    func `certificates with an ECDSA and an RSA key go to the clients that understand them`(_ version: String) throws {
        try SecureSite.run(identities: Self.sites) { site in
            func key(_ algorithms: String) throws -> String {
                let flag = version == "1.2" ? "-tls1_2" : "-tls1_3"
                let run = try Command.openssl(site, ["-servername", "c.test", flag, "-sigalgs", algorithms])
                return run.output.split(separator: "\n").first { $0.hasPrefix("Peer signature type") }.map(String.init)
                    ?? run.everything
            }
            // Those who understand both say in TLS 1.3 which one they like better.
            let offers = ["ECDSA+SHA256", "RSA-PSS+SHA256", "ECDSA+SHA256:RSA-PSS+SHA256"]
            for (offer, chosen) in zip(offers, ["ECDSA", "RSA-PSS", "ECDSA"]) {
                let key = try key(offer)
                #expect(key.hasSuffix(chosen), "\(offer): \(key)")
            }
        }
    }

    @Test func `both versions are spoken, and older ones are not`() throws {
        try SecureSite.run { site in
            for version in [TLS1_2_VERSION, TLS1_3_VERSION] {
                #expect(try site.get("/x", offer: TLSEnd.Offer(maximumVersion: version)).text == "hello")
            }
            let old = try Command.openssl(site, ["-tls1_1", "-cipher", "ALL:@SECLEVEL=0"])
            #expect(old.exit != .code(0) && old.everything.contains("alert protocol version"))
        }
    }

    @Test func `a minimum version refuses clients of older ones`() throws {
        try SecureSite.run(tls: ["minimum-version": "\"1.3\""]) { site in
            #expect(try site.get("/x").text == "hello")
            let old = try Command.openssl(site, ["-tls1_2"])
            #expect(old.exit != .code(0) && old.everything.contains("alert protocol version"))
        }
    }

    /// Mozilla's intermediate configuration.
    @Test func `ciphers without forward secrecy or authentication are refused`() throws {
        try SecureSite.run(identities: [Self.authority.identity(for: "c.test", key: .rsa)]) { site in
            for cipher in ["AES128-SHA", "AES128-GCM-SHA256", "ECDHE-RSA-AES128-SHA", "AECDH-AES128-SHA"] {
                let run = try Command.openssl(site, ["-tls1_2", "-cipher", "\(cipher):@SECLEVEL=0"])
                #expect(run.exit != .code(0), "\(cipher)")
            }
            let good = try Command.openssl(site, ["-tls1_2", "-cipher", "ECDHE-RSA-AES128-GCM-SHA256"])
            #expect(good.everything.contains("ECDHE-RSA-AES128-GCM-SHA256"))
        }
    }

    @Test
    func `ALPN agrees on HTTP2 where the client offers it, otherwise on HTTP 1.1, and refuses what is not spoken`()
        throws
    {
        try SecureSite.run { site in
            let both = try Command.openssl(site, ["-alpn", "http/1.1,h2"])
            #expect(both.output.contains("ALPN protocol: h2"))
            let one = try Command.openssl(site, ["-alpn", "http/1.1"])
            #expect(one.output.contains("ALPN protocol: http/1.1"))
            let other = try Command.openssl(site, ["-alpn", "acme-tls/1"])
            #expect(other.everything.contains("no application protocol"))
        }
    }
}
