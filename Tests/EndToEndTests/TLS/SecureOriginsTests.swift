import CertificateMaking
import Glibc
import TLS
import Testing

/// Origins over TLS, which are real programs, and what clients and the operator are told when one is not what it should
/// be.
@Suite(.scenario) struct SecureOriginsTests {
    private static let authority = TestIdentity.authority

    /// Runs a proxy for one origin whose certificates the test's authority issues.
    private func proxy(
        for url: String, tls: String, in folder: String, _ more: Setting..., body: (Program) throws -> Void
    ) throws {
        try System.write(TestIdentity.authorityText, to: "\(folder)/authority.pem")
        let all =
            more + [
                .other(section: "upstream", key: "tls", value: "{ca: \(folder)/authority.pem\(tls)}"),
                .other(section: "upstream", key: "retry", value: "off"),
            ]
        let proxy = try Program.serve(servers: [url], [.workers(1)] + all)
        defer { proxy.stop() }
        try body(proxy)
    }

    private func inFolder(_ body: (String) throws -> Void) throws {
        let folder = try System.makeTemporaryFolder()
        defer { System.removeFolder(folder) }
        try body(folder)
    }

    /// Runs OpenSSL's server with a certificate at a port of its own.
    private func server(with identity: TLSIdentity, in folder: String, body: (UInt16) throws -> Void) throws {
        try TestIdentity.write(identity, to: "\(folder)/origin")
        let port = try Socket.freePort()
        let child = try Spawn.start(
            "/usr/bin/openssl",
            [
                "s_server", "-www", "-accept", "127.0.0.1:\(port)", "-cert", "\(folder)/origin.pem", "-key",
                "\(folder)/origin.key",
            ], output: "\(folder)/out", errors: "\(folder)/err")
        defer {
            Spawn.signal(child, SIGKILL)
            while Spawn.poll(child) == nil { System.nap(.milliseconds(1)) }
        }
        try eventually("OpenSSL's server listens", within: .seconds(30)) {
            System.contents(of: "\(folder)/out").contains("ACCEPT")
        }
        try body(port)
    }

    private func expect(
        _ answer: Answer, _ status: UInt16, _ error: String, _ reason: String, of proxy: Program,
        at location: SourceLocation = #_sourceLocation
    ) {
        let said = answer["proxy-status"] ?? "none"
        #expect(answer.status == status && said.contains("error=\(error)"), "\(said)", sourceLocation: location)
        let log = proxy.diagnostics
        #expect(log.contains(reason), "\(log)", sourceLocation: location)
    }

    // MARK: Origins that are what they should be

    private static let application = """
        def app(environ, start_response):
            start_response("200 OK", [("Cache-Control", "no-store"), ("Content-Length", "5")])
            return [b"hello"]
        """

    @Test func `gunicorn is asked over TLS, verified, with a certificate of the proxy's own`() throws {
        try inFolder { folder in
            try TestIdentity.write(Self.authority.identity(for: "app.test"), to: "\(folder)/app")
            try TestIdentity.write(Self.authority.identity(for: "proxy.test"), to: "\(folder)/proxy")
            try System.write(TestIdentity.authorityText, to: "\(folder)/authority.pem")
            let origin = try Gunicorn(
                Self.application,
                [
                    "--certfile", "\(folder)/app.pem", "--keyfile", "\(folder)/app.key", "--ca-certs",
                    "\(folder)/authority.pem", "--cert-reqs", "2", "--keep-alive", "5", "--worker-class", "gthread",
                ])
            defer { origin.stop() }
            let own = ", client-certificate: {certificate: \(folder)/proxy.pem, key: \(folder)/proxy.key}"
            try proxy(for: origin.url, tls: ", server-name: app.test\(own)", in: folder) { proxy in
                let pages = try (1...5).map { _ in try proxy.get("/x").text }
                #expect(pages == Array(repeating: "hello", count: 5))
            }
            // Without the certificate, gunicorn refuses the handshake.
            try proxy(for: origin.url, tls: ", server-name: app.test", in: folder) { proxy in
                let answer = try proxy.get("/x")
                // gunicorn closes with the request unread, so that its alert may get lost.
                let said = answer["proxy-status"] ?? "none"
                let errors = ["error=tls_alert_received", "error=connection_terminated"]
                #expect(answer.status == 502 && errors.contains { said.contains($0) }, "\(said)")
            }
        }
    }

    @Test func `OpenSSL's server is asked over TLS`() throws {
        try inFolder { folder in
            try server(with: TestIdentity.ofOrigins, in: folder) { port in
                try proxy(for: "https://127.0.0.1:\(port)", tls: "", in: folder) { proxy in
                    let answer = try proxy.get("/x")
                    #expect(answer.status == 200 && answer.text.contains("TLSv1.3"))
                }
            }
        }
    }

    // MARK: Origins that are not

    struct Refusal: Sendable {
        let what: String
        let identity: TLSIdentity
        let reason: String
    }

    private static let refusals = [
        Refusal(
            what: "wrong name", identity: authority.identity(for: "other.test"), reason: "IP address mismatch"),
        Refusal(
            what: "expired", identity: authority.identity(for: "127.0.0.1", valid: TestAuthority.past),
            reason: "certificate has expired"),
        Refusal(
            what: "unknown issuer", identity: TestAuthority("Another").identity(for: "127.0.0.1"),
            reason: "unable to get local issuer certificate"),
        Refusal(
            what: "self-signed", identity: TestAuthority.selfSigned(for: "127.0.0.1"),
            reason: "self-signed certificate"),
    ]

    @Test(arguments: refusals)
    func `a certificate that is no good gives 502, with OpenSSL's reason in the log`(_ refusal: Refusal) throws {
        try inFolder { folder in
            try server(with: refusal.identity, in: folder) { port in
                try proxy(for: "https://127.0.0.1:\(port)", tls: "", in: folder) { proxy in
                    let answer = try proxy.get("/x")
                    expect(answer, 502, "tls_certificate_error", refusal.reason, of: proxy)
                }
                // A name with two addresses, of which only one listens.
                let name = ", server-name: 127.0.0.1"
                try proxy(for: "https://localhost:\(port)", tls: name, in: folder) { proxy in
                    let answer = try proxy.get("/x")
                    expect(answer, 502, "tls_certificate_error", refusal.reason, of: proxy)
                }
                // The operator may do without.
                try proxy(for: "https://127.0.0.1:\(port)", tls: ", verify: off", in: folder) { proxy in
                    let answer = try proxy.get("/x")
                    #expect(answer.status == 200)
                }
            }
        }
    }

    @Test(arguments: [
        ("HTTP/1.1 400 Bad Request\r\n\r\n", "tls_protocol_error", "speak no TLS on this port"),
        ("", "connection_terminated", "127.0.0.1"),
    ])
    func `an origin that answers a handshake in the clear, or cuts it, gives 502`(
        _ text: String, _ error: String, _ reason: String
    ) throws {
        let (listener, port) = try Socket.listen()
        var answering: Int32?
        defer { for descriptor in [listener, answering].compactMap(\.self) { Socket.close(descriptor) } }
        try inFolder { folder in
            try proxy(for: "https://127.0.0.1:\(port)", tls: "", in: folder) { proxy in
                let client = proxy.crowd(1, get: "/x")
                try eventually("the proxy connects") {
                    guard let connection = Socket.accept(listener) else { return false }
                    if text.isEmpty { Socket.close(connection) } else { answering = connection }
                    return true
                }
                if let answering { _ = Socket.writePlain(answering, Array(text.utf8), from: 0) }
                for answer in client.finished() { expect(answer, 502, error, reason, of: proxy) }
            }
        }
    }

    @Test func `a handshake holds its slot no longer than connect-timeout`() throws {
        // The kernel accepts, and nobody reads.
        let (listener, port) = try Socket.listen()
        defer { Socket.close(listener) }
        try inFolder { folder in
            try proxy(
                for: "https://127.0.0.1:\(port)", tls: "", in: folder, .maxConcurrentFetches(1),
                .connectTimeout(.milliseconds(300)), .maxFailures(1000)
            ) { proxy in
                let crowd = (1...3).map { proxy.crowd(1, get: "/\($0)") }
                for client in crowd {
                    for answer in client.finished() {
                        expect(answer, 504, "connection_timeout", "no TLS handshake in time", of: proxy)
                    }
                }
                let page = try proxy.admin.get("/metrics").wholeText
                #expect(Program.sum("coalesced_upstream_connections", in: page) == 0)
            }
        }
    }
}
