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

    @Test func `where the system has no authorities, that is a warning for who needs them`() throws {
        var shelf = Shelf.usual
        for keys in ["servers: https://a", "servers: http://a", "servers: https://a, tls: {verify: off}"] {
            #expect(try shelf.load("upstreams: [{name: u, \(keys)}]\n").get().warnings.isEmpty)
        }
        shelf.systemMistake = "there is no file"
        let missing =
            "warning: no certificate of these servers can be compared: there is no file; install that package, or name a file in `tls: {ca: /file}`"
        func warnings(_ keys: String) throws -> [String] {
            try shelf.load("upstreams: [{name: u, \(keys)}]\n").get().warnings.map(\.warning)
        }
        #expect(try warnings("servers: https://a") == ["f:1:32: \(missing)"])
        for keys in [
            "servers: http://a", "servers: https://a, tls: {verify: off}", "servers: https://a, tls: {ca: /b.pem}",
        ] {
            #expect(try warnings(keys) == [])
        }
        var flags = Overrides()
        flags.servers = [Self.server("a", 443)]
        #expect(try shelf.loadWithoutFile([:], flags).get().warnings.map(\.warning) == ["--upstream: \(missing)"])
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
            "{verify: off, client-certificate: {certificate: /a.pem, key: /b.key}}", 108,
            "`key: /b.key`: this key does not belong to the certificate in /a.pem"
        ),
        (
            "{sni: a}", 48,
            "`sni` is unknown; remove it. Keys allowed here: `server-name`, `ca`, `verify`, `client-certificate`"
        ),
    ])
    func `a mistake is reported at its place`(_ tls: String, _ column: Int, _ mistake: String) {
        let found = Shelf.usual.load("upstreams: [{name: u, servers: [https://a], tls: \(tls)}]\n").mistakes
        #expect(found == ["f:1:\(column + 3): \(mistake)"])
    }

    @Test(arguments: [
        (
            "http://a", "{server-name: b}",
            ["`tls` has no effect, since no server of `u` has `https://`; give it one, or remove `tls`"]
        ),
        ("https://a", "{verify: off}", []),
        (
            "https://a", "{verify: off, ca: /a.pem}",
            [
                "`ca` has no effect with `verify: off`; remove one of them"
            ]
        ),
        ("https://a", "{ca: /a.pem}", []),
    ])
    func `a key without effect causes a warning`(
        _ server: String, _ tls: String, _ warnings: [String]
    ) throws {
        let settings = try Shelf.usual.load("upstreams: [{name: u, servers: '\(server)', tls: \(tls)}]\n").get()
        #expect(settings.warnings.map(\.message) == warnings)
    }
}
