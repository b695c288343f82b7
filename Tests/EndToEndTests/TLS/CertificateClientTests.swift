import Testing

/// Certificates from an authority, as docs/operating.md says.
@Suite(.timeLimit(.minutes(10)))
struct CertificateClientTests {
    private static let settings = """
        upstreams: [{name: o, servers: ["http://127.0.0.1:1"]}]
        routes: [{respond: {status: 200, body: yes}}]

        """

    /// Obtains a certificate, serves it, renews it and serves the new one.
    /// - Parameters:
    ///   - obtain: the words of the client; `@` stands for the program's folder.
    ///   - renew: likewise.
    private func check(
        _ obtain: (_ authority: Pebble, _ hook: String) -> [String],
        _ renew: (_ authority: Pebble, _ hook: String) -> [String]
    ) throws {
        let (plain, secure) = (try Socket.freePort(), try Socket.freePort())
        // With this comment the listeners are those of the file, and no flag says otherwise.
        let head = "# without proxy-protocol\n"
        let program = try Program.serve(
            file: head + "listen: [\"127.0.0.1:\(plain)\"]\ntls: {acme-challenges: @/acme}\n" + Self.settings)
        let folder = program.folder
        // The webroot is there before its client, which makes only what is below.
        try Tool.run(["mkdir", "\(folder)/acme"])
        let authority = try Pebble(challengesAt: plain)
        let hook = "\(folder)/hook"
        let reload = [try Program.path(), "reload", "--admin", "unix:\(folder)/admin.sock"]
        // The script as it is installed, for another folder and this program.
        try System.write(
            """
            #!/bin/sh
            export CERTIFICATES=\(folder)/certificates GROUP="$(id -gn)" RELOAD="\(reload.joined(separator: " "))"
            exec sh \(Repository.folder)/config/deploy-hook "$@"
            """, to: hook)
        System.makeExecutable(hook)
        func run(_ words: [String]) throws {
            try Tool.run(
                words.map { $0.replacing("@/", with: "\(folder)/") },
                variables: ["LEGO_CA_CERTIFICATES=\(authority.ownCertificate)", "HOME=\(folder)"],
                within: .seconds(120))
        }
        try run(obtain(authority, hook))
        let certificate = "\(folder)/certificates/site.test"
        try System.write(
            """
            \(head)listen: ["127.0.0.1:\(plain)", "https://127.0.0.1:\(secure)"]
            tls:
              acme-challenges: \(folder)/acme
              certificates: [{certificate: \(certificate).pem, key: \(certificate).key}]
            \(Self.settings)
            """, to: program.configurationPath)
        try run(reload)
        let first = try Self.serial(at: secure)
        #expect(first == (try Self.serial(of: "\(certificate).pem")))
        try run(renew(authority, hook))
        let renewed = try Self.serial(at: secure)
        #expect(renewed != first)
        #expect(renewed == (try Self.serial(of: "\(certificate).pem")))
    }

    /// The serial number of the certificate that is shown at a port.
    private static func serial(at port: UInt16) throws -> String {
        try Tool.run([
            "sh", "-c",
            "openssl s_client -connect 127.0.0.1:\(port) -servername site.test </dev/null 2>/dev/null | openssl x509 -noout -serial",
        ])
    }

    private static func serial(of file: String) throws -> String {
        try Tool.run(["openssl", "x509", "-noout", "-serial", "-in", file])
    }

    @Test func `lego obtains a certificate and renews it, and clients see the new one`() throws {
        func words(_ authority: Pebble) -> [String] {
            [
                "lego", "--server", authority.url, "--path", "@/lego", "--email", "admin@site.test", "--accept-tos",
                "--http", "--http.webroot", "@/acme", "--domains", "site.test",
            ]
        }
        try check(
            { words($0) + ["run", "--run-hook", $1] },
            { words($0) + ["renew", "--days", "10000", "--no-random-sleep", "--renew-hook", $1] })
    }

    /// acme.sh is in no distribution. After each issue and renewal it runs its `--reloadcmd` by sh(1), with the files that
    /// it has installed.
    @Test func `the hook takes the three words of acme_sh, and clients see the new certificate`() throws {
        func words(_ hook: String) -> [String] {
            let make = "openssl req -x509 -newkey rsa:2048 -nodes -subj /CN=site.test"
            return ["sh", "-c", "\(make) -keyout @/own.key -out @/own.pem && \(hook) site.test @/own.pem @/own.key"]
        }
        try check({ words($1) }, { words($1) })
    }

    @Test func `certbot obtains a certificate and renews it, and clients see the new one`() throws {
        let folders = ["--config-dir", "@/certbot", "--work-dir", "@/certbot-work", "--logs-dir", "@/certbot-log"]
        try check(
            {
                [
                    "certbot", "certonly", "--webroot", "-w", "@/acme", "-d", "site.test", "--server", $0.url,
                    "--no-verify-ssl", "--agree-tos", "-m", "admin@site.test", "--non-interactive", "--deploy-hook", $1,
                ] + folders
            },
            {
                [
                    "certbot", "renew", "--force-renewal", "--no-random-sleep-on-renew", "--server", $0.url,
                    "--no-verify-ssl", "--deploy-hook", $1,
                ] + folders
            })
    }
}
