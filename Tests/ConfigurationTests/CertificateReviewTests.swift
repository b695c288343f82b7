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
        #expect(review.warnings.map(\.key) == ["upstreams[0].tls.client-certificate.certificate"])
        #expect(review.warnings[0].message.contains(": servers refuse it; renew it"))
    }
}
