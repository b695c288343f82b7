import CertificateMaking
import TLS
import Testing

@Suite(.scenario) struct CheckCertificateTests {
    /// For a.example and *.b.example, until 2126.
    private static let certificate = """
        -----BEGIN CERTIFICATE-----
        MIIBojCCAUigAwIBAgIULhjwh+UDgHaNwFj2wwDavw3UNBYwCgYIKoZIzj0EAwIw
        FDESMBAGA1UEAwwJYS5leGFtcGxlMCAXDTI2MTEyNzE3MDgxNloYDzIxMjYxMTAz
        MTcwODE2WjAUMRIwEAYDVQQDDAlhLmV4YW1wbGUwWTATBgcqhkjOPQIBBggqhkjO
        PQMBBwNCAAT+e/qmQrF7u63bbNo+tPUYYXer7eTHQsDQ43rBy6jURvGDwpxs7WUw
        MNPbAp7D8xgCGANKAxaDNse7c07TkNkJo3YwdDAdBgNVHQ4EFgQUZkAY3JMiZKcs
        N9E9MKcoR2V8N/IwHwYDVR0jBBgwFoAUZkAY3JMiZKcsN9E9MKcoR2V8N/IwDwYD
        VR0TAQH/BAUwAwEB/zAhBgNVHREEGjAYgglhLmV4YW1wbGWCCyouYi5leGFtcGxl
        MAoGCCqGSM49BAMCA0gAMEUCIQCeqy+dVr7GViDfiwLPYyfS2By31Hn43pOzKo6z
        zxlgEQIgIEr4iX5PKBgd8gk36OdHIMwfzTCpDdu/uf3ZHQdt+h4=
        -----END CERTIFICATE-----

        """

    private static let key = """
        -----BEGIN PRIVATE KEY-----
        MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQg4NBpSZ9KMjavpIn/
        4KrZvSPX+i3p6+MVkHXjhacJSL6hRANCAAT+e/qmQrF7u63bbNo+tPUYYXer7eTH
        QsDQ43rBy6jURvGDwpxs7WUwMNPbAp7D8xgCGANKAxaDNse7c07TkNkJ
        -----END PRIVATE KEY-----

        """

    private func check(_ words: [String], _ text: String) throws -> Program.Run {
        let folder = try System.makeTemporaryFolder()
        defer { System.removeFolder(folder) }
        try System.write(Self.certificate, to: "\(folder)/site.pem")
        try System.write(Self.key, to: "\(folder)/site.key")
        try System.write(text.replacing("@", with: folder), to: "\(folder)/c.yaml")
        return try Program.run(["check", "\(folder)/c.yaml"] + words.map { $0.replacing("@", with: folder) })
    }

    private static var line: Regex<Substring> {
        #/certificate \S+/site\.pem: a\.example, \*\.b\.example; ECDSA key; issued by CN=a\.example; valid until 2126-\d\d-\d\d \d\d:\d\d UTC\n/#
    }

    @Test func `check prints the names, the issuer and the expiry of each certificate`() throws {
        let run = try check(
            [], "listen: https://127.0.0.1:8443\ntls: {certificates: {certificate: @/site.pem, key: @/site.key}}\n")
        #expect(run.exit == .code(0) && run.output.contains(Self.line), "\(run.everything)")
        #expect(run.output.hasSuffix("c.yaml: ok\n"))
    }

    @Test func `flags give a listener with TLS and its certificate`() throws {
        let flags = [
            "--listen", "https://127.0.0.1:8443", "--tls-certificate", "@/site.pem", "--tls-key", "@/site.key",
        ]
        let run = try check(flags, "workers: 1\n")
        #expect(run.exit == .code(0) && run.output.contains(Self.line), "\(run.everything)")
        let printed = try check(flags + ["--print"], "workers: 1\n").output
        #expect(printed.contains(#/listen: \[https://127\.0\.0\.1:8443\] +# --listen/#), "\(printed)")
        #expect(printed.contains(#/certificates: \[\{certificate: \S+/site\.pem, .*# --tls-certificate/#), "\(printed)")
        #expect(!printed.contains("BEGIN"))
    }

    @Test func `a listener with TLS and no certificate is a mistake, wherever it comes from`() throws {
        let missing = "there is no certificate for the clients that speak TLS at 127.0.0.1:8443"
        let file = try check([], "listen: https://127.0.0.1:8443\n")
        #expect(file.exit == .code(78) && file.errors.contains("c.yaml:1:9: \(missing)"), "\(file.everything)")
        let flag = try Program.run("serve", "--listen", "https://127.0.0.1:8443", "--upstream", "http://127.0.0.1:1")
        #expect(flag.exit == .code(78) && flag.errors.hasPrefix("--listen: \(missing)"), "\(flag.everything)")
    }

    /// The certificates as `site.pem` and `site.key` in a folder of their own, for a configuration that names them.
    private func withSite(_ identity: TLSIdentity, _ body: (_ folder: String, _ file: String) throws -> Void) throws {
        let folder = try System.makeTemporaryFolder()
        defer { System.removeFolder(folder) }
        try TestIdentity.write(identity, to: "\(folder)/site")
        let path = "\(folder)/c.yaml"
        try System.write(
            """
            listen: https://127.0.0.1:0
            admin: {address: off}
            tls:
              certificates:
                - certificate: \(folder)/site.pem
                  key: \(folder)/site.key
            hosts: [a.test, b.test]
            upstreams: [{name: u, servers: http://127.0.0.1:9}]

            """, to: path)
        try body(folder, path)
    }

    @Test func `check refuses a certificate that OpenSSL refuses, as the start does, at its place`() throws {
        try withSite(TestIdentity.authority.identity(for: "a.test", key: .shortRSA)) { _, file in
            for command in ["check", "serve"] {
                let run = try Program.run([command] + (command == "serve" ? ["--config"] : []) + [file])
                #expect(run.exit == .code(78), "\(run.everything)")
                #expect(
                    run.errors.contains("c.yaml:5:20: `certificate: ")
                        && run.errors.contains("(ee key too small); have it"),
                    "\(run.everything)")
                #expect(run.errors.count { $0 == "\n" } == 1, "\(run.everything)")
            }
        }
    }

    @Test func `check warns of hosts without a certificate at their key`() throws {
        try withSite(TestIdentity.authority.identity(for: "a.test", valid: TestAuthority.month)) { _, file in
            let run = try Program.run(["check", file])
            #expect(run.exit == .code(0), "\(run.everything)")
            #expect(
                run.errors.contains(#/^\S+c\.yaml:7:1: warning: no certificate names b\.test, so that .*\n$/#),
                "\(run.everything)")
        }
    }

    @Test(arguments: [
        (["--tls-key", "/a"], "--tls-key needs --tls-certificate beside it"),
        (["--tls-certificate", "/a"], "--tls-certificate needs --tls-key beside it"),
        (["--tls-certificate", "", "--tls-key", "/a"], "it is empty; name a file"),
        (["--listen", "127.0.0.1:0", "--listen", "https://127.0.0.1:0"], "is given with https:// and without"),
    ])
    func `flags that do not fit together are refused`(_ words: [String], _ reason: String) throws {
        let run = try Program.run(["check"] + words)
        #expect(run.exit == .code(64) && run.errors.contains(reason), "\(run.everything)")
    }
}
