import Bytes
import Configuration
import HTTPSemantics
import Routing
import Storage
import Testing
import Upstream

/// `config/examples` can be used as it is, and does what its comments say.
@Suite struct `The example files` {
    private func load(_ name: String) throws -> Settings {
        try Configuration.load(text: String(contentsOfRepositoryFile: "config/examples/\(name)"), path: name).get()
    }

    @Test func `the example file for a proxy behind TLS trusts the server in front`() throws {
        let settings = try load("behind-tls.yaml")
        #expect(settings.proxy.hosts == ["www.example.com"])
        #expect(settings.proxy.clients.trustedProxies.count == 2)
    }

    @Test func `the example file for TLS redirects to it, and serves challenges without it`() throws {
        let settings = try load("tls.yaml")
        #expect(settings.proxy.listen.map(\.isSecure) == [false, false, true, true])
        #expect(settings.proxy.tls.identities.count == 1 && settings.proxy.tls.acmeChallenges == "/var/lib/acme")
        #expect(settings.proxy.routes.map(\.scheme) == [.http, nil] && settings.warnings.isEmpty)
    }

    @Test func `the example file for downloads gives them separate slots and enough memory`() throws {
        let settings = try load("downloads.yaml")
        let (site, downloads) = (settings.upstreams[0], settings.upstreams[1])
        #expect(site.servers == downloads.servers)
        #expect(settings.proxy.routes.map(\.upstream) == ["downloads", "site"])
        #expect(settings.proxy.routes[0].rangeMisses == .part)
        let inUse = settings.storage.memory / 100 * settings.storage.inUsePercent
        #expect(downloads.maxConcurrentFetches * settings.storage.streamingWindow <= inUse)
    }
}
