import Bytes
import CertificateMaking
import HTTPSemantics
import Libevent
import TLS
import Telemetry
import Testing

@testable import Upstream

/// What comes of origins whose TLS is not as it should be.
@Suite(.timeLimit(.minutes(10))) struct SecureOriginFailureTests {
    private typealias Origins = SecureOriginTests

    private static func expect(
        _ asker: Asker, _ reason: UpstreamError.Reason, _ type: ProxyError, _ status: UInt16, _ words: String
    ) {
        let failure = asker.failure
        #expect(failure?.reason == reason && failure?.isBeforeRequest == true)
        #expect(failure?.proxyError == type && failure?.status.code == status)
        #expect(failure?.detail.contains(words) == true, "\(failure?.detail ?? "")")
        #expect(asker.counted(.failures(reason == .handshakeLate ? .connectTimeout : .handshake)) == 1)
        // No connection was established, so none is open.
        #expect(asker.metrics.read().upstreamConnectionsOpen == 0 && asker.metrics.read()[.upstreamConnects] == 0)
    }

    struct Refusal: Sendable {
        let identity: TLSIdentity
        let words: String
    }

    private static let refusals = [
        Refusal(identity: Origins.authority.identity(for: "other.test"), words: "IP address mismatch"),
        Refusal(
            identity: Origins.authority.identity(for: "127.0.0.1", valid: TestAuthority.past),
            words: "certificate has expired"),
        Refusal(identity: Origins.other.identity(for: "127.0.0.1"), words: "unable to get local issuer certificate"),
        Refusal(identity: TestAuthority.selfSigned(for: "127.0.0.1"), words: "self-signed certificate"),
    ]

    @Test(arguments: refusals)
    func `a certificate that is no good is refused, with OpenSSL's reason`(refusal: Refusal) throws {
        let asker = try Origins.asker([Origins.answer], refusal.identity)
        #expect(asker.ask(asker.exchange()) == ["failed handshake"])
        Self.expect(asker, .tlsCertificate, .tlsCertificateError, 502, refusal.words)
        #expect(asker.servers[0].requests.isEmpty)
    }

    @Test func `the name of the settings is compared, not the server's`() throws {
        let asker = try Origins.asker([Origins.answer]) { $0.tls.serverName = "www.test" }
        #expect(asker.ask(asker.exchange()) == ["failed handshake"])
        Self.expect(asker, .tlsCertificate, .tlsCertificateError, 502, "ostname mismatch")
    }

    @Test func `a server that answers in the clear is told`() throws {
        let asker = try Origins.plainAsker([.send("HTTP/1.1 400 Bad Request\r\n\r\n")])
        #expect(asker.ask(asker.exchange()) == ["failed handshake"])
        Self.expect(asker, .tlsProtocol, .tlsProtocolError, 502, "the server seems to speak no TLS on this port")
    }

    @Test func `a connection that ends in the handshake is no connection`() throws {
        let asker = try Origins.plainAsker([.close])
        #expect(asker.ask(asker.exchange()) == ["failed handshake"])
        Self.expect(asker, .tlsCut, .connectionTerminated, 502, "127.0.0.1:\(asker.servers[0].port): ")
    }

    @Test func `a handshake takes no longer than the connect-timeout`() throws {
        let asker = try Origins.plainAsker([.pause]) { $0.connectTimeout = .milliseconds(50) }
        #expect(asker.ask(asker.exchange()) == ["failed connect-timeout"])
        Self.expect(asker, .handshakeLate, .connectionTimeout, 504, "no TLS handshake in time")
        asker.run(untilTrue: { asker.servers[0].connections[0].hasEnded })
    }

    @Test func `an alert in the handshake is told`() throws {
        let asker = try Origins.asker([Origins.answer]) {
            $0.tls.serverName = "www.test"
        } server: {
            $0.refusesUnknownNames = true
        }
        #expect(asker.ask(asker.exchange()) == ["failed handshake"])
        Self.expect(asker, .tlsAlert, .tlsAlertReceived, 502, "unrecognized name")
    }

    @Test func `an alert behind the handshake is told, as for a certificate that is missing`() throws {
        let asker = try Origins.asker(
            [Origins.answer], server: { $0.clientAuthorities = try Origins.other.authorities })
        asker.servers[0].clientCertificates = .required
        // The server decides after our last message of the handshake (TLS 1.3).
        #expect(asker.ask(asker.exchange(.post)) == ["failed closed"])
        #expect(asker.failure?.reason == .tlsAlert && asker.failure?.proxyError == .tlsAlertReceived)
        #expect(asker.failure?.detail.contains("certificate required") == true, "\(asker.failure?.detail ?? "")")
    }

    @Test func `without authorities no handshake succeeds`() throws {
        let asker = try Origins.asker([Origins.answer]) { $0.tls.authorities = NamedFile(path: "/empty.pem") }
        #expect(asker.group.tls?.mistake == "/empty.pem: it holds no certificate in PEM form")
        #expect(asker.ask(asker.exchange()) == ["failed handshake"])
        Self.expect(asker, .tlsCertificate, .tlsCertificateError, 502, "/empty.pem: it holds no certificate")
    }

    @Test func `another server is asked, and the one that fails is left alone`() throws {
        let asker = try Asker(
            [[[.close], [.close], [.close]], [Origins.answer + Origins.answer + Origins.answer]], tls: nil
        ) {
            $0.servers[0].isSecure = true
            $0.tls.authorities = Origins.authority.file
            $0.maxFailures = 1
        }
        for _ in 1...3 { #expect(asker.ask(asker.exchange(.post)) == Origins.whole) }
        #expect(asker.inUse == [false, true])
        #expect(asker.servers[0].connections.count == 1)
    }
}
