import Bytes
import CertificateMaking
import Libevent
import LoopTesting
import TLS
import Testing

/// What two ends agree on.
@Suite(.timeLimit(.minutes(10)))
struct TLSHandshakeTests {
    private var client: TLSClientSettings {
        get throws { TLSClientSettings(authorities: try SecurePair.authority.authorities) }
    }

    /// Reads once at the client, so that it gets its ticket.
    private func takeTicket(_ pair: SecurePair) { #expect(pair.client.isSilent) }

    @Test(arguments: [TLSVersion.tls12, .tls13])
    func `a client that returns resumes its session`(version: TLSVersion) throws {
        try onLoop { loop in
            let server = try TLSServer(SecurePair.serverSettings)
            var own = try client
            own.minimumVersion = version
            let client = try TLSClient(own)
            let sessions = SessionSlot()
            for isResumed in [false, true, true] {
                let pair = try SecurePair(on: loop, server, .off, client, name: "localhost", sessions: sessions)
                #expect(pair.serverStream.isResumed == isResumed)
                takeTicket(pair)
                // A session whose connection broke is not resumed.
                pair.client.close()
                withExtendedLifetime(pair) {}
            }
            loop.stop()
        }
    }

    @Test func `a session of one name is not resumed under another`() throws {
        try onLoop { loop in
            var settings = SecurePair.serverSettings
            settings.identities = [SecurePair.authority.identity(for: "a.test", "b.test")]
            let (server, client) = (try TLSServer(settings), try TLSClient(client))
            let sessions = SessionSlot()
            takeTicket(try SecurePair(on: loop, server, .off, client, name: "a.test", sessions: sessions))
            let pair = try SecurePair(on: loop, server, .off, client, name: "b.test", sessions: sessions)
            #expect(!pair.serverStream.isResumed)
            loop.stop()
        }
    }

    @Test func `a session without a certificate is not resumed where one is required`() throws {
        try onLoop { loop in
            var settings = SecurePair.serverSettings
            settings.clientAuthorities = try SecurePair.authority.authorities
            var own = try client
            own.identity = SecurePair.authority.identity(for: "client")
            let (server, client) = (try TLSServer(settings), try TLSClient(own))
            let sessions = SessionSlot()
            takeTicket(try SecurePair(on: loop, server, .off, client, name: "localhost", sessions: sessions))
            let pair = try SecurePair(on: loop, server, .required, client, name: "localhost", sessions: sessions)
            #expect(!pair.serverStream.isResumed)
            #expect(pair.serverStream.peerSubject == "CN=client")
            loop.stop()
        }
    }

    @Test func `each name gets its certificate, and an unknown one the first`() throws {
        let (authority, names) = (SecurePair.authority, ["a.test", "b.test", "x.w.test"])
        var settings = TLSServerSettings()
        settings.identities = [
            authority.identity(for: "a.test"), authority.identity(for: "b.test"), authority.identity(for: "*.w.test"),
        ]
        let server = try TLSServer(settings)
        for name in names { #expect(server.knows(name)) }
        #expect(!server.knows("w.test"))
        #expect(!server.knows("x.y.w.test"))
        try onLoop { loop in
            let client = try TLSClient(client)
            for name in names {
                let pair = try SecurePair(on: loop, server, .off, client, name: name, sessions: SessionSlot())
                #expect(pair.serverStream.serverName == name)
            }
            #expect(throws: SecurePair.Unfinished.self) {
                try SecurePair(on: loop, server, .off, client, name: "unknown.test", sessions: SessionSlot())
            }
            loop.stop()
        }
    }

    @Test func `of two certificates for the same names and with the same kind of key, clients get the last one`() throws
    {
        let authority = SecurePair.authority
        var settings = TLSServerSettings()
        settings.identities = [
            authority.identity(for: "a.test", "b.test"), authority.identity(for: "b.test", "a.test"),
            authority.identity(for: "a.test"),
        ]
        let server = try TLSServer(settings)
        try onLoop { loop in
            let client = try TLSClient(client)
            for name in ["a.test", "b.test"] {
                let pair = try SecurePair(on: loop, server, .off, client, name: name, sessions: SessionSlot())
                #expect(pair.clientStream.peerSubject == "CN=b.test")
            }
            loop.stop()
        }
    }

    @Test func `a certificate that OpenSSL refuses is refused when it is tried out, as by a server`() throws {
        let weak = SecurePair.authority.intermediate("Weak", key: .shortRSA)
        var chained = weak.identity(for: "a.test")
        chained.certificate.content = ByteSlice(String(chained.certificate.content) + String(weak.file.content))
        for identity in [SecurePair.authority.identity(for: "a.test", key: .shortRSA), chained] {
            var settings = TLSServerSettings()
            settings.identities = [identity]
            var refusals: [TLSSettingsError] = []
            do throws(TLSSettingsError) { try identity.tryOut() } catch { refusals.append(error) }
            do throws(TLSSettingsError) { _ = try TLSServer(settings) } catch { refusals.append(error) }
            #expect(refusals.count == 2 && refusals.first == refusals.last)
            #expect(refusals.first?.file == identity.certificate.path)
        }
        try SecurePair.identity.tryOut()
    }

    @Test func `a name that is refused ends the handshake with an alert`() throws {
        try onLoop { loop in
            var settings = SecurePair.serverSettings
            settings.refusesUnknownNames = true
            do {
                _ = try SecurePair(on: loop, server: settings, name: "unknown.test")
                Issue.record("the handshake was done")
            } catch let error as SecurePair.Unfinished {
                guard case .failed(let failure) = error.client else {
                    Issue.record("\(error.client)")
                    return
                }
                #expect(failure.kind == .alert)
            }
            loop.stop()
        }
    }

    @Test func `a client without a certificate is refused where one is required`() throws {
        try onLoop { loop in
            var settings = SecurePair.serverSettings
            settings.clientAuthorities = try SecurePair.authority.authorities
            do {
                _ = try SecurePair(on: loop, server: settings, .required)
                Issue.record("the handshake was done")
            } catch let error as SecurePair.Unfinished {
                guard case .failed(let failure) = error.server else {
                    Issue.record("\(error.server)")
                    return
                }
                #expect(failure.kind == .certificate)
            }
            loop.stop()
        }
    }

    @Test func `a certificate of another authority is refused, unless every one is believed`() throws {
        try onLoop { loop in
            let other = TestAuthority("Other")
            var settings = TLSServerSettings()
            settings.identities = [other.identity(for: "localhost")]
            #expect(throws: SecurePair.Unfinished.self) { try SecurePair(on: loop, server: settings) }
            let pair = try SecurePair(on: loop, server: settings, client: TLSClientSettings(authorities: nil))
            #expect(pair.clientStream.isOpen)
            loop.stop()
        }
    }
}
