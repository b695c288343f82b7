import Bytes
import CertificateMaking
import Libevent
import LoopTesting
import TLS

/// Two sockets that are connected with each other through TLS.
struct SecurePair {
    let server: TestSocket
    let client: TestSocket
    let serverStream: TLSStream
    let clientStream: TLSStream

    static let authority = TestAuthority()
    static let identity = authority.identity(for: "localhost")

    /// Does the handshake at once.
    /// - Parameters:
    ///   - isNarrow: as in `socketPair`.
    ///   - sessions: where the client keeps its session, and from where it offers one.
    init(
        on loop: EventLoop, isNarrow: Bool = false, server settings: TLSServerSettings? = nil,
        _ certificates: ClientCertificates = .off, client: TLSClientSettings? = nil, name: String = "localhost",
        sessions: SessionSlot = SessionSlot()
    ) throws {
        try self.init(
            on: loop, isNarrow: isNarrow, TLSServer(settings ?? Self.serverSettings), certificates,
            TLSClient(client ?? TLSClientSettings(authorities: Self.authority.authorities)), name: name,
            sessions: sessions)
    }

    static var serverSettings: TLSServerSettings {
        var settings = TLSServerSettings()
        settings.identities = [identity]
        return settings
    }

    struct Unfinished: Error {
        let server: TLSStream.Progress
        let client: TLSStream.Progress
    }

    init(
        on loop: EventLoop, isNarrow: Bool = false, _ tls: TLSServer, _ certificates: ClientCertificates,
        _ tlsClient: TLSClient, name: String, sessions: SessionSlot
    ) throws {
        (server, client) = socketPair(on: loop, isNarrow: isNarrow)
        guard let serverStream = tls.accept(onDescriptor: server.descriptorNumber, certificates),
            let clientStream = tlsClient.connect(
                onDescriptor: client.descriptorNumber, to: name, sessions: sessions)
        else { throw SystemError.cut }
        (self.serverStream, self.clientStream) = (serverStream, clientStream)
        var (own, other) = (TLSStream.Progress.needsBytes, TLSStream.Progress.needsBytes)
        func mayGoOn(_ progress: TLSStream.Progress) -> Bool { progress == .needsBytes || progress == .needsRoom }
        for _ in 0..<64 {
            if mayGoOn(other) { other = clientStream.advance() }
            if mayGoOn(own) { own = serverStream.advance() }
        }
        guard own == .done, other == .done else { throw Unfinished(server: own, client: other) }
        server.secure(with: serverStream)
        client.secure(with: clientStream)
    }
}
