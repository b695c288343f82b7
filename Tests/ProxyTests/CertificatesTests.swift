import Bytes
import Libevent
import Routing
import TLS
import Telemetry
import Testing

@testable import Proxy

/// What operators see of certificates and handshakes.
@Suite struct CertificatesTests {
    private static func settings(_ identities: [TLSIdentity]) -> ProxySettings {
        var settings = ProxySettings()
        var listener = ListenerSettings(.ipv4(.loopback, port: 0))
        listener.isSecure = true
        settings.listen = [listener]
        settings.tls.identities = identities
        return settings
    }

    @Test func `each certificate is reported once, with its names and its end, until other settings come`() throws {
        var (one, two) = (
            try TLSIdentity.selfSigned(names: ["a.example"], days: 3),
            try TLSIdentity.selfSigned(names: ["b.example", "*.b.example"], days: 90)
        )
        (one.certificate.path, two.certificate.path) = ("/one.pem", "/two.pem")
        let first = try Certificates().changed(to: Self.settings([one, two, one]), workers: 1)
        #expect(first.reports.map(\.path) == ["/one.pem", "/two.pem"])
        #expect(first.reports.map(\.names) == [["a.example"], ["b.example", "*.b.example"]])
        #expect(first.reports.map(\.notAfter) == [try one.summary().notAfter, try two.summary().notAfter])
        let renewed = try first.changed(to: Self.settings([two]), workers: 1)
        #expect(renewed.reports.map(\.path) == ["/two.pem"])
        #expect(try renewed.changed(to: ProxySettings(), workers: 1).reports.isEmpty)
    }

    @Test func `a failed handshake is counted by the name that the failure has`() {
        for kind in TLSFailure.Kind.allCases { #expect("\(HandshakeFailure(kind).name)" == kind.rawValue) }
        let own = HandshakeFailure.allCases.filter { reason in
            !TLSFailure.Kind.allCases.contains { HandshakeFailure($0) == reason }
        }
        #expect(own == [.plain])
    }
}
