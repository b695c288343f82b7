import Bytes
import Libevent
import Routing
import TLS
import Testing
import Upstream

@testable import Configuration

@Suite struct `TLS with clients` {
    private static let site = "tls: {certificates: [{certificate: /a.pem, key: /a.key}]}\n"

    private static func listener(
        _ port: UInt16, _ certificates: ClientCertificates? = .off, isProxied: Bool = false
    ) -> ListenerSettings {
        var listener = ListenerSettings(.ipv4(.any, port: port))
        listener.isSecure = certificates != nil
        listener.clientCertificates = certificates ?? .off
        listener.isProxied = isProxied
        return listener
    }

    @Test(arguments: [
        ("https://0.0.0.0:443", [listener(443)], "[https://0.0.0.0:443]"),
        ("HTTPS://0.0.0.0:443/", [listener(443)], "[https://0.0.0.0:443]"),
        ("http://0.0.0.0:80", [listener(80, nil)], "[0.0.0.0:80]"),
        (
            "[0.0.0.0:80, 'https://0.0.0.0:443']", [listener(80, nil), listener(443)],
            "[0.0.0.0:80, https://0.0.0.0:443]"
        ),
        ("{address: 0.0.0.0:443, tls: true}", [listener(443)], "[https://0.0.0.0:443]"),
        (
            "[{address: 0.0.0.0:1, tls: on, client-certificates: required}]", [listener(1, .required)],
            "[{address: 0.0.0.0:1, tls: true, client-certificates: required}]"
        ),
        (
            "[{address: https://0.0.0.0:1, client-certificates: offered, proxy-protocol: true}]",
            [listener(1, .offered, isProxied: true)],
            "[{address: 0.0.0.0:1, tls: true, client-certificates: offered, proxy-protocol: true}]"
        ),
        (
            "[{address: 0.0.0.0:1, client-certificates: off, proxy-protocol: true}]",
            [listener(1, nil, isProxied: true)], "[{address: 0.0.0.0:1, proxy-protocol: true}]"
        ),
    ])
    func `a listener has it by its scheme or by a key, and is written so that it reads the same`(
        _ text: String, _ expected: [ListenerSettings], _ written: String
    ) throws {
        let rest = "\nclients: {trusted-proxies: [unix]}\n\(Self.site.dropLast(2)), client-ca: /b.pem}\n"
        let settings = try Shelf.usual.load("listen: \(text)\(rest)").get()
        #expect(settings.proxy.listen == expected)
        let syntax = ValueSyntax<[ListenerSettings]>.listeners
        #expect(syntax.write(expected) == [written])
        #expect(try Shelf.usual.load("listen: \(written)\(rest)").get().proxy.listen == expected)
    }

    @Test func `a socket has it by a key only`() throws {
        let settings = try Shelf.usual.load("listen: {address: 'unix:/s', tls: true}\n\(Self.site)").get()
        #expect(settings.proxy.secureListeners == [.unix(path: "/s"): .off])
        #expect(
            ValueSyntax<[ListenerSettings]>.listeners.write(settings.proxy.listen) == [
                "[{address: unix:/s, tls: true}]"
            ])
    }

    @Test func `a variable names listeners and certificates as the file does`() throws {
        let variables = [
            "COALESCED_LISTEN": "http://0.0.0.0:80, https://0.0.0.0:443",
            "COALESCED_TLS_CERTIFICATES": "[{certificate: /a.pem, key: /a.key}, {certificate: /b.pem, key: /b.key}]",
            "COALESCED_TLS_MINIMUM_VERSION": "1.3", "COALESCED_TLS_UNKNOWN_NAME": "refuse",
        ]
        for result in [
            Shelf.usual.load("workers: 1", variables), Shelf.usual.loadWithoutFile(variables, Overrides()),
        ] {
            let proxy = try result.get().proxy
            #expect(proxy.listen == [Self.listener(80, nil), Self.listener(443)])
            #expect(proxy.tls.identities.map(\.certificate.path) == ["/a.pem", "/b.pem"])
            #expect(proxy.tls.minimumVersion == .tls13 && proxy.tls.refusesUnknownNames)
        }
    }

    @Test func `flags give a listener and a certificate in place of those of the file`() throws {
        var flags = Overrides()
        flags.listeners = [try ScalarSyntax.listener.value(of: "https://0.0.0.0:443")]
        flags.identity = TLSIdentity(certificate: NamedFile(path: "/b.pem"), key: NamedFile(path: "/b.key"))
        for result in [Shelf.usual.load(Self.site, [:], flags), Shelf.usual.loadWithoutFile([:], flags)] {
            let settings = try result.get()
            #expect(settings.proxy.listen == [Self.listener(443)])
            #expect(try settings.proxy.tls.identities.map { try $0.summary().names } == [["b.example", "*.b.example"]])
            #expect(settings.warnings.isEmpty)
        }
        let sources = Sources(file: (path: "f", text: Self.site), variables: Variables(), flags: flags)
        let printed = Configuration.printout(try Shelf.usual.load(Self.site, [:], flags).get(), from: sources)
        #expect(printed.contains { $0.hasPrefix("listen: [https://0.0.0.0:443] ") && $0.hasSuffix("# --listen") })
        #expect(
            printed.contains {
                $0.hasPrefix("  certificates: [{certificate: /b.pem, key: /b.key}]")
                    && $0.hasSuffix("# --tls-certificate")
            })
    }

    @Test func `files are printed by their paths, without what is in them`() throws {
        let text = "listen: https://0.0.0.0:443\n\(Self.site)"
        let settings = try Shelf.usual.load(text).get()
        let sources = Sources(file: (path: "f", text: text), variables: Variables(), flags: Overrides())
        let printed = Configuration.printout(settings, from: sources).joined(separator: "\n")
        #expect(printed.contains("certificates: [{certificate: /a.pem, key: /a.key}] # f:2:7"))
        #expect(!printed.contains("BEGIN"))
        #expect(try Shelf.usual.load(printed).get().proxy.tls == settings.proxy.tls)
    }

    @Test func `a file that has changed makes the settings differ, so that a reload uses it`() throws {
        let text = """
            listen: {address: https://0.0.0.0:443, client-certificates: offered}
            tls: {certificates: {certificate: /a.pem, key: /a.key}, client-ca: /b.pem, ticket-keys: /t}
            upstreams: [{name: u, servers: https://u, tls: {ca: /ca.pem, client-certificate: {certificate: /c.pem, key: /c.key}}}]
            """
        var shelf = Shelf.usual
        try shelf.add("ca", for: ["ca"])
        try shelf.add("c", for: ["c"])
        shelf.texts["/t"] = String(repeating: "1", count: 80)
        let former = try shelf.load(text).get()
        #expect(try shelf.load(text).get() == former)
        #expect(former.proxy.tls.identities[0].key.content == ByteSlice(shelf.texts["/a.key"] ?? ""))
        for names in [["a"], ["b"], ["ca"], ["c"]] {
            var renewed = shelf
            try renewed.add(names[0], for: names)
            #expect(try renewed.load(text).get() != former, "\(names)")
        }
        shelf.texts["/t"] = String(repeating: "2", count: 160)
        #expect(try shelf.load(text).get().proxy != former.proxy)
    }

    @Test func `takes a certificate and its key from one file, and only once the same`() throws {
        var shelf = Shelf.usual
        shelf.texts["/both"] = (shelf.texts["/a.key"] ?? "") + (shelf.texts["/a.pem"] ?? "")
        let settings = try shelf.load(
            "listen: https://0.0.0.0:443\ntls: {certificates: {certificate: /both, key: /both}}\n"
        ).get()
        #expect(try settings.proxy.tls.identities[0].summary().names == ["a.example"])
        #expect(
            shelf.load(
                "listen: https://0.0.0.0:443\ntls: {certificates: [{certificate: /a.pem, key: /a.key}, {certificate: /a.pem, key: /a.key}]}\n"
            ).mistakes == ["f:2:58: `certificates` has `/a.pem` twice; remove one of them"])
    }

    @Test func `a route for https needs no trusted proxy where a listener has it`() throws {
        let routes =
            "routes: [{scheme: http, redirect: {to: 'https://a.example${target}'}}, {scheme: https, upstream: origin}, {upstream: origin}]\n"
        let text = "listen: [0.0.0.0:80, 'https://0.0.0.0:443']\n\(Self.site)\(routes)"
        #expect(try Shelf.usual.load(text).get().warnings.map(\.warning) == [])
        #expect(try Shelf.usual.load(routes).get().warnings.count == 1)
    }
}
