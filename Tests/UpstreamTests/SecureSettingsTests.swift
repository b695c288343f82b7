import Bytes
import CertificateMaking
import HTTPSemantics
import Libevent
import TLS
import Telemetry
import Testing

@testable import Upstream

/// Servers with TLS in settings, and what a reload changes.
@Suite(.timeLimit(.minutes(10))) struct SecureSettingsTests {
    private typealias Origins = SecureOriginTests

    @Test func `a server with TLS has a port and a URL of its own`() {
        #expect("\(UpstreamServer(host: "app.test", isSecure: true))" == "https://app.test:443")
        #expect("\(UpstreamServer(host: "::1", port: 8443, isSecure: true))" == "https://[::1]:8443")
        #expect("\(UpstreamServer(host: "app.test"))" == "http://app.test:80")
    }

    @Test(
        arguments: [
            (UpstreamServer(host: "app.test", isSecure: true), nil, nil, "app.test"),
            (UpstreamServer(host: "app.test.", isSecure: true), nil, "www.test", "app.test"),
            (UpstreamServer(host: "::1", isSecure: true), nil, nil, "::1"),
            (UpstreamServer(host: "app.test", isSecure: true), "name.test", "www.test", "name.test"),
            (UpstreamServer.unix(path: "/run/app"), nil, nil, "localhost"),
            (UpstreamServer.unix(path: "/run/app"), nil, "www.test:8443", "www.test"),
            (UpstreamServer.unix(path: "/run/app"), nil, "[::1]:8443", "::1"),
            (UpstreamServer.unix(path: "/run/app"), "name.test", "www.test", "name.test"),
        ] as [(UpstreamServer, String?, String?, String)])
    func `the certificate's name is that of the settings, else the server's host`(
        server: UpstreamServer, serverName: String?, host: String?, name: String
    ) {
        var settings = UpstreamSettings(name: "origin", servers: [server])
        (settings.tls.serverName, settings.host) = (serverName, host)
        #expect(settings.certificateName(of: server) == name)
    }

    private static func group(
        after former: ServerGroup? = nil, isSecure: Bool, _ change: (inout UpstreamTLSSettings) -> Void = { _ in }
    ) -> ServerGroup {
        let servers = ["192.0.2.1", "192.0.2.2"].map { UpstreamServer(host: $0, port: 8000, isSecure: isSecure) }
        var settings = UpstreamSettings(name: "origin", servers: servers)
        settings.servers[1].isSecure = false
        settings.tls.authorities = Origins.authority.file
        change(&settings.tls)
        return ServerGroup(settings, after: former)
    }

    @Test func `a reload that changes the TLS of a server makes another place of it`() {
        let plain = Self.group(isSecure: false)
        let secure = Self.group(after: plain, isSecure: true)
        let same = Self.group(after: secure, isSecure: true)
        let changed = Self.group(after: same, isSecure: true) { $0.serverName = "www.test" }
        let back = Self.group(after: changed, isSecure: false)
        let first = [plain, secure, same, changed, back].map { $0.entries[0].place }
        #expect(first[0] !== first[1] && first[1] === first[2] && first[2] !== first[3] && first[3] !== first[4])
        // The other server is the same in all of them.
        #expect(back.entries[1].place === plain.entries[1].place)
        #expect([plain, secure, back].map { $0.tls != nil } == [false, true, false])
    }

    @Test func `a drained server stays drained with TLS`() {
        let plain = Self.group(isSecure: false)
        #expect(plain.drain(.server(plain.settings.servers[0].location), true, at: 0))
        let secure = Self.group(after: plain, isSecure: true)
        #expect(secure.entries.map(\.place.isInUse) == [false, true])
    }

    @Test func `no connection of former settings carries a request of the new ones`() throws {
        // The same server gets the requests of both pools; by then it speaks TLS.
        let asker = try Origins.asker([Origins.answer + Origins.answer, Origins.answer])
        #expect(asker.ask(asker.exchange()) == Origins.whole)
        var settings = asker.group.settings
        settings.tls.serverName = "app.test"
        let pool = UpstreamPool(
            ServerGroup(settings, after: asker.group), on: asker.loop, resolver: Resolver(on: asker.loop),
            names: NameResolution(), buffers: BufferStock(bufferCapacity: 1 << 16, most: 4), metrics: asker.metrics,
            onNews: { _ in })
        asker.pool.retire()
        #expect(asker.ask(asker.exchange(on: pool)) == Origins.whole)
        let connections = asker.servers[0].connections
        #expect(connections.map(\.requests.count) == [1, 1])
        // What the first certificate was good for says nothing of the other name.
        #expect(connections.map(\.stream?.serverName) == [nil, "app.test"])
        #expect(connections.map(\.stream?.isResumed) == [false, false])
    }
}
