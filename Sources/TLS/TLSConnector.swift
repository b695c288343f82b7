public import Libevent

/// One loop's side of the TLS to servers. Made before the first connection: later memory may be short. Confined to its
/// loop.
public final class TLSConnector {
    fileprivate let client: Result<TLSClient, TLSSettingsError>
    private let settings: TLSPeerSettings

    public init(_ peers: TLSPeers) {
        settings = peers.settings
        client = peers.client.flatMap { settings in
            Result { () throws(TLSSettingsError) in try TLSClient(settings) }
        }
    }

    /// How connections to one server are secured, with sessions of their own.
    /// - Parameter host: its name or address, unless the settings give the name of its certificate.
    public func server(at host: String) -> ServerTLS { ServerTLS(self, to: settings.certificateName(ofHost: host)) }
}

/// How one loop secures its connections to one server. Sessions are resumed among the connections of one value only,
/// since a session is as good as the certificate that was compared when it began.
public struct ServerTLS {
    private let connector: TLSConnector
    private let name: String
    private let sessions = SessionSlot()

    fileprivate init(_ connector: TLSConnector, to name: String) { (self.connector, self.name) = (connector, name) }

    /// Lets the bytes of a connected socket pass through TLS from now on. `Socket.goOn(with:)` begins the handshake. On
    /// the loop.
    /// - Throws: why no handshake can begin.
    public func secure(_ socket: Socket) throws(TLSFailure) -> TLSStream {
        let client: TLSClient
        switch connector.client {
        case .success(let made): client = made
        case .failure(let error): throw TLSFailure(.certificate, "no certificate can be compared: \(error)")
        }
        let stream = client.connect(onDescriptor: socket.descriptorNumber, to: name, sessions: sessions)
        guard let stream else { throw TLSFailure(.shortage, "memory is short") }
        socket.secure(with: stream)
        return stream
    }
}

extension Socket {
    /// Goes on with the handshake, and watches the socket for the event that the handshake waits for. On the loop.
    /// - Returns: whether it is done.
    /// - Throws: why it has failed.
    public final func goOn(with handshake: TLSStream) throws(TLSFailure) -> Bool {
        switch handshake.advance() {
        case .needsBytes:
            disarmWrite()
            startReading()
            return false
        case .needsRoom:
            armWrite()
            return false
        case .done:
            disarmWrite()
            return true
        case .failed(let failure):
            throw failure
        }
    }
}
