import Bytes
import HTTPSemantics
import Libevent
import Logging
import Proxy
import Routing
import Storage
import TLS
import Telemetry
import Testing
import Upstream

@testable import Admin

/// What the pages say of listeners with TLS.
@Suite struct TLSPageTests {
    /// The page of a program with one listener, which speaks TLS if there is an identity.
    private static func page(_ path: String, _ identity: TLSIdentity?) throws -> String {
        let loop = try EventLoop()
        var settings = ProxySettings()
        settings.workers = 2
        var listener = ListenerSettings(.ipv4(.loopback, port: 0))
        listener.isSecure = identity != nil
        settings.listen = [listener]
        settings.tls.identities = identity.map { [$0] } ?? []
        let upstream = UpstreamSettings(name: "one", servers: [UpstreamServer(host: "127.0.0.1")])
        let server = ProxyServer(
            settings, upstreams: [upstream], storage: StorageSettings(), accessLog: AccessLogSettings(), on: loop,
            log: Logger(label: "tests") { _ in SwiftLogNoOpLogHandler() })
        let pages = AdminPages(server, AdminSettings(), version: "0", on: loop)
        var content = ""
        server.start { _ in
            pages.page(for: .get, path, content: "") { page in
                content = String(page.content)
                loop.stop()
            }
        }
        loop.run()
        server.stop()
        loop.finish()
        return content
    }

    @Test func `the metrics have handshakes and expiry only where there is TLS`() throws {
        let identity = try TLSIdentity.selfSigned(names: ["a.example"], days: 30)
        let page = try Self.page("/metrics", identity)
        let expected = [
            #"certificate_expiry_seconds{certificate="self-signed certificate"} \#(try identity.summary().notAfter)"#,
            #"tls_handshakes_total{version="1.2",resumed="false"} 0"#,
            #"tls_handshakes_total{version="1.3",resumed="true"} 0"#,
            #"tls_handshake_failures_total{reason="protocol"} 0"#, #"tls_handshake_failures_total{reason="plain"} 0"#,
        ]
        for line in expected { #expect(page.contains("\ncoalesced_\(line)\n"), "\(line)") }
        let without = try Self.page("/metrics", nil)
        #expect(without.contains("coalesced_requests_total") && !without.contains("tls"))
        #expect(!without.contains("certificate"))
    }

    @Test func `the status has the certificates with their names and the time left, only where there is TLS`() throws {
        let identity = try TLSIdentity.selfSigned(names: ["a.example", "b.example"], days: 30)
        let page = try Self.page("/status", identity).filter { $0 != "\n" && $0 != " " }
        #expect(page.contains(#""names":["a.example","b.example"],"not_after":\#(try identity.summary().notAfter),"#))
        let left = try #require(page.firstMatch(of: #/"expires_seconds":([0-9]+)/#).flatMap { Int($0.1) })
        #expect((29 * 86_400...30 * 86_400).contains(left))
        #expect(page.firstMatch(of: #/"tls":{"listeners":\["127\.0\.0\.1:[0-9]+"\]/#) != nil, "\(page)")
        #expect(!(try Self.page("/status", nil)).contains("tls"))
    }
}
