import Bytes
import CertificateMaking
import HTTPSemantics
import Libevent
import LoopTesting
import Testing

@testable import TLS
@testable import Upstream

/// Checks of servers that speak TLS.
@Suite(.timeLimit(.minutes(10))) struct SecureCheckTests {
    private typealias Origins = SecureOriginTests

    private static let script: [ScriptedServer.Step] = [
        .request(), .send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"), .close,
    ]

    /// Two checks, one after the other.
    /// - Parameter identity: of the server; `nil`: it speaks no TLS.
    private static func check(
        _ identity: TLSIdentity?, _ script: [ScriptedServer.Step] = script
    ) throws -> (ends: [CheckEnd], isResumed: [Bool?]) {
        var ends: [CheckEnd] = []
        var (check, server): (Check?, ScriptedServer?)
        try onLoop { loop in
            let tls = try identity.map { identity in
                var settings = TLSServerSettings()
                settings.identities = [identity]
                return try TLSServer(settings)
            }
            let scripted = try ScriptedServer(on: loop, [script, script], tls: tls)
            server = scripted
            var settings = UpstreamSettings(
                name: "origin", servers: [UpstreamServer(host: "127.0.0.1", port: scripted.port, isSecure: true)])
            settings.tls.authorities = Origins.authority.file
            var health = HealthSettings(path: "/up")
            health.timeout = script.count == 1 ? .milliseconds(50) : .seconds(5)
            let group = ServerGroup(settings)
            let loopTLS = try #require(group.tls.map { LoopTLS($0, settings) })
            func begin() {
                check = Check(
                    of: settings.servers[0], at: [.ipv4(.loopback, port: scripted.port)], health, settings,
                    loopTLS.server(settings.servers[0]), on: loop
                ) {
                    ends.append($0)
                    if ends.count == 2 { loop.stop() } else { begin() }
                }
                check?.start()
            }
            begin()
        }
        return (ends, server?.connections.map(\.stream?.isResumed) ?? [])
    }

    @Test func `each check compares the certificate anew`() throws {
        let result = try Self.check(Origins.good)
        #expect(result.ends == [.success, .success] && result.isResumed == [false, false])
    }

    @Test func `a server whose certificate is no good fails, with OpenSSL's reason`() throws {
        let expired = Origins.authority.identity(for: "127.0.0.1", valid: TestAuthority.past)
        let failure = CheckFailure.handshake("certificate has expired")
        #expect(try Self.check(expired).ends == [.failed(failure), .failed(failure)])
        #expect(failure.word == "handshake" && "\(failure)" == "no TLS handshake: certificate has expired")
    }

    @Test func `a server that speaks no TLS fails`() throws {
        let script: [ScriptedServer.Step] = [.send("HTTP/1.1 400 Bad Request\r\n\r\n"), .close]
        let failure = CheckFailure.handshake("wrong version number")
        #expect(try Self.check(nil, script).ends == [.failed(failure), .failed(failure)])
    }

    @Test func `a handshake takes no longer than a check may`() throws {
        let failure = CheckFailure.late(.milliseconds(50))
        #expect(try Self.check(nil, [.pause]).ends == [.failed(failure), .failed(failure)])
    }
}
