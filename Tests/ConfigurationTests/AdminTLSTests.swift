import Admin
import Bytes
import Libevent
import Testing

@testable import Configuration

@Suite struct `An admin listener with TLS` {
    private static let certificates = "tls: {certificates: [{certificate: /a.pem, key: /a.key}]}\n"

    @Test(arguments: [
        ("https://127.0.0.1:9901", true), ("HTTPS://127.0.0.1:9901/", true), ("http://127.0.0.1:9901", false),
        ("127.0.0.1:9901", false),
    ])
    func `has https before its address`(_ text: String, _ isSecure: Bool) throws {
        let settings = try Shelf.usual.load(
            "admin: {address: '\(text)'}\nlisten: https://[::1]:1\n" + Self.certificates
        )
        .get()
        let address = SocketAddress.ipv4(.loopback, port: 9901)
        #expect(settings.admin.address == address && settings.admin.isSecure == isSecure)
        let written = ScalarSyntax.adminListener.text(of: settings.admin.listener)
        #expect(written == (isSecure ? "https://" : "") + "127.0.0.1:9901")
        #expect(try ScalarSyntax.adminTarget.value(of: text) == .address(address, isSecure: isSecure))
        var flags = Overrides()
        flags.admin = try ScalarSyntax.adminTarget.value(of: text)
        #expect(Settings().overridden(by: flags).admin.isSecure == isSecure)
        let variables = ["COALESCED_ADMIN_ADDRESS": text]
        #expect(
            try Shelf.usual.load("listen: https://[::1]:1\n" + Self.certificates, variables).get().admin.isSecure
                == isSecure)
    }

    @Test func `needs a certificate, which is then of use`() throws {
        let lacking =
            "there is no certificate for the admin listener, which speaks TLS; name one in `tls: {certificates: [{certificate: /site.pem, key: /site.key}]}`"
        let text = "admin: {address: 'https://127.0.0.1:1'}\n"
        #expect(Shelf.usual.load(text).mistakes == ["f:1:18: \(lacking)"])
        #expect(try Shelf.usual.load(text + Self.certificates).get().warnings.isEmpty)
        #expect(
            Shelf.usual.load("admin: {address: 'https://unix:/a'}\n" + Self.certificates).mistakes == [
                "f:1:18: `address: https://unix:/a`: a Unix socket needs no TLS; write it as `unix:/path`"
            ])
    }

    @Test func `changes at a start only`() throws {
        let new = try Shelf.usual.load("admin: {address: 'https://127.0.0.1:8081'}\n" + Self.certificates).get()
        #expect(Settings().keysAtStart(changedBy: new) == ["admin.address"])
    }

    private static let files = Files { path in
        Shelf.usual.texts[path].map { .success(Array($0.utf8)) }
            ?? .failure(Files.Failure("Permission denied", remedy: "let us"))
    }

    @Test func `is known to commands with its certificates, as far as they can be read`() throws {
        let text = "wrkers: 1\nadmin: {address: 'https://127.0.0.1:9'}\n"
        func access(_ certificates: String) throws -> AdminAccess {
            try Configuration.adminAccess(
                text: text + certificates, path: "f", variables: Variables(), files: Self.files
            ).get()
        }
        // Its key is not read: it is not for those who ask.
        let known = try access("tls: {certificates: [{certificate: /a.pem, key: /secret}]}\n")
        #expect(known.isSecure && known.address == .ipv4(.loopback, port: 9))
        #expect(known.certificates.map(\.path) == ["/a.pem"] && known.certificates[0].content.isEmpty == false)
        #expect(try access("tls: {certificates: [{certificate: /no, key: /no}]}\n").certificates.isEmpty)
        #expect(try access("tls: 5\n").certificates.isEmpty)
    }
}
