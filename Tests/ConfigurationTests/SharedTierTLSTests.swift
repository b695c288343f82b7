import Bytes
import Routing
import TLS
import Testing

@testable import Configuration

@Suite struct `TLS with the engine of the shared tier` {
    private func tls(_ keys: String, _ shelf: Shelf = .usual) throws -> TLSPeerSettings {
        try shelf.load("shared: {\(keys)}\n").get().proxy.shared.tls
    }

    @Test func `takes the keys of an upstream, and is written so that it reads the same`() throws {
        let text =
            "{server-name: redis.internal, ca: /b.pem, verify: on, client-certificate: {certificate: /a.pem, key: /a.key}}"
        let tls = try tls("engine: 'rediss://a', tls: \(text)")
        #expect(tls.serverName == "redis.internal" && tls.verifies)
        #expect(tls.authorities?.content == ByteSlice(Shelf.usual.texts["/b.pem"] ?? ""))
        #expect(try tls.identity?.summary().names == ["a.example"])
        #expect(UpstreamTLSKeys.tls.write(tls) == [text])
    }

    @Test func `where the system has no authorities, that is a warning for who needs them`() throws {
        var shelf = Shelf.usual
        shelf.systemMistake = "there is no file"
        let missing =
            "no certificate of the engine can be compared: there is no file; install that package, or name a file in `tls: {ca: /file}`"
        func warnings(_ keys: String) throws -> [String] {
            try shelf.load("shared: {\(keys)}\n").get().warnings.map(\.warning)
        }
        #expect(try warnings("engine: 'rediss://a'") == ["f:1:18: warning: \(missing)"])
        for keys in [
            "engine: 'redis://a'", "engine: 'rediss://a', tls: {verify: off}",
            "engine: 'rediss://a', tls: {ca: /b.pem}",
        ] {
            #expect(try warnings(keys) == [])
        }
        var flags = Overrides()
        flags.engines = [try ScalarSyntax.engine.value(of: "rediss://a")]
        #expect(
            try shelf.loadWithoutFile([:], flags).get().warnings.map(\.warning) == ["--shared: warning: \(missing)"])
    }

    @Test func `is set by a variable, too, whose mistakes have its name`() throws {
        let (file, name) = ("shared: {engine: 'rediss://a'}\n", "COALESCED_SHARED_TLS")
        let settings = try Shelf.usual.load(file, [name: "{ca: /b.pem, server-name: redis.internal}"]).get()
        #expect(settings.proxy.shared.tls.serverName == "redis.internal")
        #expect(settings.proxy.shared.tls.authorities?.content == ByteSlice(Shelf.usual.texts["/b.pem"] ?? ""))
        #expect(
            Shelf.usual.load(file, [name: "{ca: /missing}"]).mistakes == [
                "\(name): `ca: /missing` cannot be read: Permission denied; let us"
            ])
    }

    @Test(arguments: [
        ("{ca: /missing}", "`ca: /missing` cannot be read: Permission denied; let us"),
        ("{ca: /a.key}", "`ca: /a.key`: it holds no certificate in PEM form"),
        (
            "{ca: /a.pem, client-certificate: {certificate: /a.pem, key: /b.key}}",
            "`key: /b.key`: this key does not belong to the certificate in /a.pem"
        ),
        (
            "{sni: a}",
            "`sni` is unknown; remove it. Keys allowed here: `server-name`, `ca`, `verify`, `client-certificate`"
        ),
    ])
    func `a mistake is reported at its place`(_ tls: String, _ mistake: String) {
        let found = Shelf.usual.load("shared:\n  engine: rediss://a\n  tls: \(tls)\n").mistakes
        #expect(found.count == 1 && found.allSatisfy { $0.hasPrefix("f:3:") && $0.hasSuffix(mistake) }, "\(found)")
    }

    @Test(arguments: [
        (
            "redis://a", "{server-name: a.example}",
            ["`tls` has no effect, since the engine has no `rediss://`; give it that, or remove `tls`"]
        ),
        ("redis://a", "{verify: on}", []),
        (
            "rediss://a", "{verify: off, ca: /a.pem}",
            ["`ca` has no effect with `verify: off`; remove one of them"]
        ),
        ("rediss://a", "{ca: /a.pem}", []),
    ])
    func `a key without effect causes a warning`(
        _ engine: String, _ tls: String, _ warnings: [String]
    ) throws {
        let settings = try Shelf.usual.load("shared: {engine: '\(engine)', tls: \(tls)}\n").get()
        #expect(settings.warnings.map(\.message) == warnings)
    }

    @Test func `a key that everybody can read causes a warning`() throws {
        var shelf = Shelf.usual
        shelf.open = ["/a.key"]
        let text =
            "shared: {engine: 'rediss://a', tls: {ca: /b.pem, client-certificate: {certificate: /a.pem, key: /a.key}}}\n"
        #expect(try shelf.load(text).get().warnings.contains { $0.message.contains("can be read by every user") })
    }
}
