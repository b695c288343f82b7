import Bytes
import CertificateMaking
import Configuration
import Routing
import TLS
import Testing

@Suite struct `A review of certificates` {
    private func review(_ shelf: Shelf, _ name: String = "/a.pem", after days: Int64 = 0) throws -> CertificateReview {
        let text = "listen: https://0.0.0.0:443\ntls: {certificates: [{certificate: \(name), key: /a.key}]}\n"
        let settings = try shelf.load(text).get()
        let start = try settings.proxy.tls.identities[0].summary().notBefore
        return CertificateReview(of: settings, at: start + 3600 + days * 86_400)
    }

    @Test func `names each with its issuer and its expiry`() throws {
        let review = try review(.usual)
        #expect(review.lines.count == 1 && review.warnings.isEmpty)
        #expect(
            review.lines[0].hasPrefix(
                "certificate /a.pem: a.example; ECDSA key; issued by CN=a.example; valid until 20"))
        #expect(review.lines[0].hasSuffix(" UTC"))
    }

    @Test func `shows a few of many names`() throws {
        var shelf = Shelf()
        try shelf.add("a", for: (1...9).map { "\($0).example" })
        #expect(
            try review(shelf).lines[0].contains(": 1.example, 2.example, 3.example, 4.example, 5.example and 4 more;"))
    }

    @Test func `warns of one that expires within two weeks, has expired, or is not valid yet`() throws {
        #expect(try review(.usual, after: 15).warnings.isEmpty)
        func warning(_ days: Int64) throws -> String {
            let warnings = try review(.usual, after: days).warnings
            #expect(warnings.count == 1 && warnings[0].key == "tls.certificates[0].certificate")
            return warnings.first?.message ?? ""
        }
        #expect(try warning(17).hasPrefix("the certificate in /a.pem expires in 13 days, on 20"))
        #expect(try warning(29).hasPrefix("the certificate in /a.pem expires in 24 hours, on 20"))
        #expect(try warning(31).contains("expired on 20") && warning(31).contains("clients refuse it; renew it"))
        #expect(try warning(-1).contains("is not valid before 20") && warning(-1).contains("set this machine's clock"))
    }

    @Test func `warns of a chain that is not in order`() throws {
        var shelf = Shelf.usual
        shelf.texts["/chain"] = (shelf.texts["/a.pem"] ?? "") + (shelf.texts["/b.pem"] ?? "")
        #expect(
            try review(shelf, "/chain").warnings.map(\.message) == [
                "the chain in /chain is not in order: certificate 2 (CN=b.example) has not issued certificate 1 (CN=a.example); each must be followed by its issuer"
            ])
    }

    @Test func `has the certificates that are shown to servers`() throws {
        let text =
            "upstreams: [{name: u, servers: https://u, tls: {ca: /b.pem, client-certificate: {certificate: /a.pem, key: /a.key}}}]\n"
        let settings = try Shelf.usual.load(text).get()
        let review = CertificateReview(of: settings, at: 4_000_000_000)
        #expect(review.lines.count == 1)
        #expect(
            review.warnings.map(\.key) == [
                "upstreams[0].tls.client-certificate.certificate", "upstreams[0].tls.ca",
            ])
        #expect(review.warnings[0].message.contains(": servers refuse it; renew it"))
    }

    // MARK: What clients stumble over

    /// The warnings about certificates `NAME.pem`, which are all valid for long enough.
    private func warnings(
        _ shelf: Shelf, _ names: String..., hosts: String = "[]", listen: String = "https://0.0.0.0:443",
        more: String = ""
    ) throws -> [String] {
        let list = names.map { "{certificate: /\($0).pem, key: /\($0).key}" }.joined(separator: ", ")
        let text = "listen: '\(listen)'\nhosts: \(hosts)\ntls: {certificates: [\(list)]}\n\(more)"
        let settings = try shelf.load(text).get()
        let now = try settings.proxy.tls.identities[0].summary().notBefore + 7200
        return CertificateReview(of: settings, at: now).warnings.map { "\($0.key): \($0.message)" }
    }

    private static let root = TestAuthority("Root")
    private static let issuing = root.intermediate("Issuing")
    private static let withIssuerPlace: TestAuthority.Traits = {
        var traits = TestAuthority.Traits()
        traits.issuerPlace = "http://issuer.test/issuing.der"
        return traits
    }()

    private static func identity(
        _ names: String, key: TestAuthority.Key = .ecdsa, _ traits: TestAuthority.Traits = .init()
    ) -> TLSIdentity {
        issuing.identity(for: names, key: key, valid: TestAuthority.month, with: traits)
    }

    @Test func `warns of a certificate without that of its issuer`() throws {
        var shelf = Shelf.usual
        shelf.add("alone", Self.identity("a.test", Self.withIssuerPlace))
        shelf.add("whole", Self.identity("a.test", Self.withIssuerPlace), issuers: Self.issuing)
        // An authority that names no place has a certificate that clients have already.
        shelf.add("short", Self.identity("a.test"))
        func message(_ key: String, _ peers: String) -> String {
            "\(key): /alone.pem holds this certificate alone, so that \(peers) may refuse it: they need that of its issuer (CN=Issuing), too; name the file with the chain, such as `fullchain.pem`"
        }
        #expect(try warnings(shelf, "alone") == [message("tls.certificates[0].certificate", "clients")])
        for name in ["whole", "short", "a"] { #expect(try warnings(shelf, name) == []) }
        #expect(
            try warnings(
                shelf, "a",
                more:
                    "upstreams: [{name: u, servers: https://u, tls: {client-certificate: {certificate: /alone.pem, key: /alone.key}}}]\n"
            ) == [message("upstreams[0].tls.client-certificate.certificate", "servers")])
    }

    @Test func `warns of a certificate for clients that has its name in the subject only`() throws {
        var shelf = Shelf.usual
        var traits = TestAuthority.Traits()
        traits.hasAlternativeNames = false
        shelf.add("old", Self.identity("old.test", traits))
        #expect(
            try warnings(shelf, "old") == [
                "tls.certificates[0].certificate: the certificate in /old.pem has no subjectAltName: browsers and most other clients refuse it; have it issued with its hosts in subjectAltName"
            ])
        #expect(
            try warnings(
                shelf, "a",
                more:
                    "upstreams: [{name: u, servers: https://u, tls: {client-certificate: {certificate: /old.pem, key: /old.key}}}]\n"
            ) == [])
    }

    @Test func `warns of a certificate that a later one replaces`() throws {
        var shelf = Shelf.usual
        shelf.add("first", Self.issuing.identity(for: "a.test", "b.test", valid: TestAuthority.month))
        shelf.add("last", Self.issuing.identity(for: "b.test", "a.test", valid: TestAuthority.month))
        shelf.add("rsa", Self.issuing.identity(for: "a.test", "b.test", key: .rsa, valid: TestAuthority.month))
        shelf.add("other", Self.identity("a.test"))
        #expect(
            try warnings(shelf, "first", "rsa", "last", "other") == [
                "tls.certificates[0].certificate: no client gets the certificate in /first.pem: that in /last.pem comes later and has the same names and kind of key (ECDSA); remove one of them"
            ])
        #expect(try warnings(shelf, "first", "rsa", "other") == [])
    }

    @Test func `warns of hosts that no certificate names`() throws {
        var shelf = Shelf()
        try shelf.add("a", for: ["a.example", "*.b.example"])
        let good =
            "[a.example, a.example., X.b.example, '*.b.example', '*.example', 127.0.0.1, '[::1]']"
        #expect(try warnings(shelf, "a", hosts: good) == [])
        #expect(
            try warnings(shelf, "a", hosts: "[a.example, b.example, x.y.b.example, '*.a.example', '*.x.b.example']")
                == [
                    "hosts: no certificate names b.example, x.y.b.example, *.a.example, *.x.b.example, so that clients that speak TLS refuse the connection; name one that does in `tls.certificates`, or remove the host here"
                ])
        let many = (1...9).map { "\($0).c.example" }.joined(separator: ", ")
        #expect(try warnings(shelf, "a", hosts: "[\(many)]")[0].contains(" 5.c.example and 4 more, so that"))
        // Without a listener for TLS, a certificate is for nobody.
        #expect(try warnings(shelf, "a", hosts: "[c.example]", listen: "0.0.0.0:80") == [])
    }

    @Test(arguments: [
        ("upstreams: [{name: u, servers: https://u, tls: {ca: /NAME.pem}}]\n", "upstreams[0].tls.ca", "servers"),
        ("shared: {engine: 'rediss://e', tls: {ca: /NAME.pem}}\n", "shared.tls.ca", "the engine"),
        (
            "listen: {address: 'https://0.0.0.0:1', client-certificates: required}\ntls: {certificates: {certificate: /a.pem, key: /a.key}, client-ca: /NAME.pem}\n",
            "tls.client-ca", "clients"
        ),
    ])
    func `warns of an authority that expires`(_ text: String, _ key: String, _ peers: String) throws {
        var shelf = Shelf.usual
        let start = try Shelf.usual.load("tls: {certificates: {certificate: /a.pem, key: /a.key}}\n").get()
            .proxy.tls.identities[0].summary().notBefore
        let good = TestAuthority("Good")
        shelf.texts["/good.pem"] = String(good.file.content)
        for (name, valid) in [("old", TestAuthority.past), ("ending", -3600...3 * 86_400 + 7200)] {
            shelf.texts["/\(name).pem"] =
                String(good.file.content) + String(TestAuthority(name, valid: valid).file.content)
        }
        func warnings(_ name: String) throws -> [String] {
            let settings = try shelf.load(text.replacing("NAME", with: name)).get()
            return CertificateReview(of: settings, at: start + 3600).warnings.map { "\($0.key): \($0.message)" }
        }
        #expect(try warnings("good") == [])
        let (old, ending) = (try warnings("old"), try warnings("ending"))
        #expect(old.count == 1 && ending.count == 1)
        #expect(old.first?.hasPrefix("\(key): the certificate of CN=old in /old.pem expired on 20") == true, "\(old)")
        #expect(
            old.first?.hasSuffix(
                ": what it has issued for \(peers) is refused; name a file with its successor, and reload") == true,
            "\(old)")
        #expect(
            ending.first?.hasPrefix("\(key): the certificate of CN=ending in /ending.pem expires in 3 days, on 20")
                == true, "\(ending)")
        // A collection of them, like that of the system, has an expired one now and then.
        shelf.texts["/many.pem"] = String(repeating: shelf.texts["/old.pem"] ?? "", count: 11)
        #expect(try warnings("many") == [])
    }

    @Test func `does not warn of authorities that are not asked`() throws {
        var shelf = Shelf.usual
        shelf.texts["/old.pem"] = String(TestAuthority("old", valid: TestAuthority.past).file.content)
        let settings = try shelf.load(
            "upstreams: [{name: u, servers: https://u, tls: {ca: /old.pem, verify: off}}]\n"
        ).get()
        #expect(CertificateReview(of: settings, at: 4_000_000_000).warnings.isEmpty)
    }
}
