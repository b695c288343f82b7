import CertificateMaking
import TLS
import Testing

/// Certificates of clients: who is asked, what the origin is told, and what is shared.
@Suite(.scenario) struct ClientCertificateTests {
    private static let clients = TestAuthority("Clients")
    private static let ann = clients.identity(for: "ann")
    private static let bob = clients.identity(for: "bob")
    private static let stranger = TestAuthority("Strangers").identity(for: "ann")
    private static let late = clients.identity(for: "ann", valid: TestAuthority.past)
    private static let field = ["client-ca": "FILES/clients.pem", "client-subject-field": "x-client-subject"]
    private static let files = ["clients.pem": clients.file.text]
    private static let sites = ["a.test", "b.test"].map { TestIdentity.authority.identity(for: $0) }

    private func run(_ rule: String, _ settings: Setting..., body: (SecureSite) throws -> Void) throws {
        let listener = rule == "off" ? "" : ", client-certificates: \(rule)"
        // The rule applies as well to names in the settings.
        try SecureSite.run(
            .accessLog, identities: Self.sites, listener: listener, tls: Self.field, files: Self.files, body)
    }

    private func isRefused(_ site: SecureSite, _ identity: TLSIdentity?) -> Bool {
        (try? site.get("/x", offer: TLSEnd.Offer(identity: identity)).status) != 200
    }

    @Test func `where none is asked for, nobody has a subject`() throws {
        try run("off") { site in
            for identity in [nil, Self.ann, Self.stranger] as [TLSIdentity?] {
                let answer = try site.get("/x?\(identity == nil)", offer: TLSEnd.Offer(identity: identity))
                #expect(answer.text == "hello")
            }
            #expect(site.origin.requests("/x").allSatisfy { $0["x-client-subject"] == nil })
        }
    }

    @Test func `where they are offered, a client may have none, and a bad one is refused`() throws {
        try run("offered") { site in
            let (without, with) = try (site.get("/x"), site.get("/x?a", offer: TLSEnd.Offer(identity: Self.ann)))
            #expect(without.text == "hello" && with.text == "hello")
            #expect(site.origin.requests("/x").map { $0["x-client-subject"] } == [nil, "CN=ann"])
            #expect(isRefused(site, Self.stranger))
            #expect(isRefused(site, Self.late))
        }
    }

    @Test func `where they are required, a client without one is refused`() throws {
        try run("required") { site in
            #expect(isRefused(site, nil))
            #expect(isRefused(site, Self.stranger))
            #expect(isRefused(site, Self.late))
            #expect(site.origin.total == 0)
            #expect(try site.get("/x", offer: TLSEnd.Offer(identity: Self.bob)).text == "hello")
            #expect(site.origin.requests("/x")[0]["x-client-subject"] == "CN=bob")
            try eventually("it is told") { site.proxy.diagnostics.contains("certificate") }
        }
    }

    @Test func `curl shows its certificate`() throws {
        try run("required") { site in
            try TestIdentity.write(Self.ann, to: "\(site.folder)/ann")
            let files = ("\(site.folder)/ann.pem", "\(site.folder)/ann.key")
            let run = try Command.curl(site, name: "a.test", "--cert", files.0, "--key", files.1)
            #expect(run.output == "hello")
            #expect(site.origin.requests("/x")[0]["x-client-subject"] == "CN=ann")
            #expect(try Command.curl(site, name: "a.test").exit != .code(0))
        }
    }

    @Test(arguments: ["X-Client-Subject: CN=root", "x-client-subject: CN=root", "X-CLIENT-SUBJECT:CN=root"])
    func `a client cannot set the field of the subject`(_ line: String) throws {
        try run("offered") { site in
            #expect(try site.get("/x?1", line).text == "hello")
            #expect(try site.get("/x?2", line, offer: TLSEnd.Offer(identity: Self.ann)).text == "hello")
            #expect(try site.plain.get("/x?3", line).text == "hello")
            // Neither as a trailer nor as an option of the connection.
            #expect(try site.plain.get("/x?4", line, "Connection: x-client-subject").text == "hello")
            let named = try site.get(
                "/x?5", "Connection: x-client-subject", offer: TLSEnd.Offer(identity: Self.ann))
            #expect(named.text == "hello")
            #expect(
                site.origin.requests("/x").map { $0["x-client-subject"] } == [nil, "CN=ann", nil, nil, "CN=ann"])
        }
    }

    @Test func `names that origins take for that of the field are removed, too`() throws {
        try run("offered") { site in
            // CGI and WSGI make the same variable of both (HTTP_X_CLIENT_SUBJECT).
            _ = try site.plain.get("/x?1", "X_Client_Subject: CN=root")
            _ = try site.get("/x?2", "X_Client_Subject: CN=root", offer: TLSEnd.Offer(identity: Self.ann))
            #expect(site.origin.requests("/x").allSatisfy { $0["x_client_subject"] == nil })
        }
    }

    @Test func `the answer to a client with a subject is neither shared nor stored`() throws {
        try run("offered") { site in
            site.origin.on("/me") { request in
                [.answer(200, "Cache-Control: max-age=600", body: request["x-client-subject"] ?? "nobody")]
            }
            for (identity, text) in [(Self.ann, "CN=ann"), (Self.bob, "CN=bob"), (nil, "nobody")]
                as [(TLSIdentity?, String)]
            {
                for _ in 0..<2 {
                    let answer = try site.get("/me", offer: TLSEnd.Offer(identity: identity))
                    #expect(answer.text == text)
                }
            }
            // Those of the clients without a certificate are stored.
            #expect(site.origin.count("/me") == 5)
        }
    }

    @Test func `clients with subjects wait for no answer to one another`() throws {
        try run("offered") { site in
            let gate = Gate()
            site.origin.on("/slow") { request in
                [.head(200, "Content-Length: 6"), .gate(gate), .text(request["x-client-subject"] ?? "nobody")]
            }
            let clients = try [Self.ann, Self.bob, nil].map { identity in
                let client = try site.connect(TLSEnd.Offer(identity: identity))
                try client.send(site.proxy.request("GET", "/slow"))
                return client
            }
            try eventually("each has its fetch") { site.origin.count("/slow") == 3 }
            gate.open()
            #expect(try clients.map { try $0.answer().text } == ["CN=ann", "CN=bob", "nobody"])
        }
    }

    @Test func `a request for another host than that of the handshake gets 421`() throws {
        try run("offered") { site in
            let client = try site.connect(TLSEnd.Offer(name: "a.test", identity: Self.ann))
            for (host, status) in [("a.test", 200), ("b.test", 421), ("A.TEST:\(site.port)", 200), ("c.test", 421)] {
                try client.send(site.proxy.request("GET", "/x", ["Host: \(host)"]))
                #expect(try client.answer().status == status, "\(host)")
            }
            #expect(site.origin.requests("/x").allSatisfy { $0["host"]?.lowercased().hasPrefix("a.test") == true })
        }
    }

    @Test func `where no certificates are asked for, a connection serves all hosts`() throws {
        try run("off") { site in
            let client = try site.connect(TLSEnd.Offer(name: "a.test"))
            for host in ["a.test", "b.test", "c.test"] {
                try client.send(site.proxy.request("GET", "/x", ["Host: \(host)"]))
                #expect(try client.answer().status == 200)
            }
        }
    }
}
