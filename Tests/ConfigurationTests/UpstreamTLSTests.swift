import Bytes
import Routing
import TLS
import Testing
import Upstream

@testable import Configuration

@Suite struct `TLS with servers` {
    private func upstream(_ keys: String, _ shelf: Shelf = .usual) throws -> UpstreamSettings {
        try shelf.load("upstreams: [{name: u, \(keys)}]\n").get().upstreams[0]
    }

    private static func server(_ host: String, _ port: UInt16) -> UpstreamServer {
        var server = UpstreamServer(host: host, port: port)
        server.isSecure = true
        return server
    }

    @Test(arguments: [
        ("https://a.example", server("a.example", 443)), ("HTTPS://A.example/", server("a.example", 443)),
        ("https://a.example:80", server("a.example", 80)), ("https://[::1]:8443", server("::1", 8443)),
    ])
    func `is for those with https`(_ url: String, _ expected: UpstreamServer) throws {
        #expect(try upstream("servers: ['\(url)'], tls: {ca: /a.pem}").servers == [expected])
        #expect(try upstream("servers: {url: '\(url)'}, tls: {ca: /a.pem}").servers == [expected])
        let written = ScalarSyntax.server.text(of: expected)
        #expect(try ScalarSyntax.server.value(of: written) == expected)
    }

    @Test func `has a share and may be a backup beside servers without TLS`() throws {
        let text = "servers: [http://a, {url: https://b, weight: 2}, {url: https://c, backup: true}], tls: {ca: /a.pem}"
        let servers = try upstream(text).servers
        #expect(servers.map(\.isSecure) == [false, true, true])
        #expect(servers[1].weight == 2 && servers[2].isBackup)
        let settings = try Shelf.usual.load("upstreams: [{name: u, \(text)}]\n").get()
        let written = DefaultFile.lines(of: KeyTable.all, in: settings).joined(separator: "\n")
        #expect(try Shelf.usual.load(written + "\n").get().upstreams == settings.upstreams)
    }

    @Test func `takes a name, authorities and a certificate, and is written so that it reads the same`() throws {
        let text =
            "{server-name: app.internal, ca: /b.pem, verify: on, client-certificate: {certificate: /a.pem, key: /a.key}}"
        let tls = try upstream("servers: https://a, tls: \(text)").tls
        #expect(tls.serverName == "app.internal" && tls.verifies)
        #expect(tls.authorities?.content == ByteSlice(Shelf.usual.texts["/b.pem"] ?? ""))
        #expect(try tls.identity?.summary().names == ["a.example"])
        #expect(UpstreamTLSKeys.tls.write(tls) == [text])
        #expect(UpstreamTLSKeys.tls.write(UpstreamTLSSettings()) == ["{verify: on}"])
    }

    @Test func `believes the authorities of the system by default, whose file is read`() throws {
        var shelf = Shelf.usual
        let path = "/etc/pki/tls/certs/ca-bundle.crt"
        shelf.texts[path] = shelf.texts["/b.pem"]
        let tls = try upstream("servers: https://a", shelf).tls
        #expect(tls.authorities?.path == path && tls.authorities?.content.isEmpty == false)
        #expect(UpstreamTLSKeys.tls.write(tls) == ["{verify: on}"])
        for keys in ["servers: http://a", "servers: https://a, tls: {verify: off}"] {
            #expect(try upstream(keys, shelf).tls.authorities == nil)
        }
        let missing =
            "this machine has no file with the authorities of certificates; install the package ca-certificates, or name a file in `tls: {ca: /file}`"
        #expect(
            Shelf.usual.load("upstreams: [{name: u, servers: https://a}]\n").mistakes == ["f:1:32: \(missing)"])
        var flags = Overrides()
        flags.servers = [Self.server("a", 443)]
        #expect(Shelf.usual.loadWithoutFile([:], flags).mistakes == ["--upstream: \(missing)"])
        #expect(try shelf.loadWithoutFile([:], flags).get().upstreams[0].servers == flags.servers)
    }

    @Test(arguments: [
        ("{ca: /missing}", 52, "`ca: /missing` cannot be read: Permission denied; let us"),
        ("{ca: /a.key}", 52, "`ca: /a.key`: it holds no certificate in PEM form"),
        (
            "{server-name: 'a:443'}", 61,
            "`server-name: a:443`: not understood; give a host such as `app.internal`, without a port"
        ),
        ("{verify: maybe}", 56, "`verify: maybe`: not understood; give `on` or `off`"),
        (
            "{verify: off, client-certificate: {certificate: /a.pem, key: /b.key}}", 109,
            "`key: /b.key`: this key does not belong to the certificate in /a.pem"
        ),
        (
            "{sni: a}", 48,
            "`sni` is unknown; remove it. Keys allowed here: `server-name`, `ca`, `verify`, `client-certificate`"
        ),
    ])
    func `a mistake is reported at its place`(_ tls: String, _ column: Int, _ mistake: String) {
        var shelf = Shelf.usual
        shelf.texts["/etc/ssl/cert.pem"] = shelf.texts["/b.pem"]
        let found = shelf.load("upstreams: [{name: u, servers: [https://a], tls: \(tls)}]\n").mistakes
        #expect(found == ["f:1:\(column + 3): \(mistake)"])
    }

    @Test(arguments: [
        (
            "http://a", "{verify: on}",
            ["`tls` has no effect, since no server of `u` has `https://`; give it one, or remove `tls`"]
        ),
        (
            "https://a", "{verify: off}",
            [
                "with `verify: off` every certificate is believed, so that whoever is on the way can answer and read; name the authority in `ca` instead"
            ]
        ),
        (
            "https://a", "{verify: off, ca: /a.pem}",
            [
                "with `verify: off` every certificate is believed, so that whoever is on the way can answer and read; name the authority in `ca` instead",
                "`ca` has no effect with `verify: off`; remove one of them",
            ]
        ),
        ("https://a", "{ca: /a.pem}", []),
    ])
    func `keys without effect, and trust in everybody, cause a warning`(
        _ server: String, _ tls: String, _ warnings: [String]
    ) throws {
        let settings = try Shelf.usual.load("upstreams: [{name: u, servers: '\(server)', tls: \(tls)}]\n").get()
        #expect(settings.warnings.map(\.message) == warnings)
    }
}
