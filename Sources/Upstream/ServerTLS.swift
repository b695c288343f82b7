import Libevent
import TLS

/// One loop's side of the TLS to the servers of an origin. Made with its pool, or with the checks: later memory may be
/// short. Confined to its loop.
final class LoopTLS {
    fileprivate let client: Result<TLSClient, TLSSettingsError>
    private let settings: UpstreamSettings

    init(_ origin: OriginTLS, _ settings: UpstreamSettings) {
        client = origin.settings.flatMap { settings in
            Result { () throws(TLSSettingsError) in try TLSClient(settings) }
        }
        self.settings = settings
    }

    /// How connections to the server are secured, with sessions of their own; `nil` for a server without TLS.
    func server(_ server: UpstreamServer) -> ServerTLS? {
        server.isSecure ? ServerTLS(self, to: settings.certificateName(of: server)) : nil
    }
}

/// How one loop secures its connections to one server. Sessions are resumed among the connections of one value only,
/// since a session is as good as the certificate that was compared when it began.
struct ServerTLS {
    private let tls: LoopTLS
    private let name: String
    private let sessions = SessionSlot()

    fileprivate init(_ tls: LoopTLS, to name: String) { (self.tls, self.name) = (tls, name) }

    /// Lets the bytes of a connected socket pass through TLS from now on. `Socket.goOn(with:)` begins the handshake.
    func secure(_ socket: Socket) throws(TLSFailure) -> TLSStream {
        let client: TLSClient
        switch tls.client {
        case .success(let made): client = made
        case .failure(let error): throw TLSFailure(.certificate, "no certificate can be compared: \(error)")
        }
        let stream = client.connect(onDescriptor: socket.descriptorNumber, to: name, sessions: sessions)
        guard let stream else { throw TLSFailure(.shortage, "memory is short") }
        socket.secure(with: stream)
        return stream
    }
}

extension UpstreamSettings {
    /// The name that a server's certificate must have, and that is asked for (RFC 6066 §3: without a dot at its end).
    func certificateName(of server: UpstreamServer) -> String {
        if let name = tls.serverName { return name }
        let name: Substring
        switch server.location {
        case .tcp(let host, _): name = host[...]
        case .unix: name = host.map(Self.withoutPort) ?? server.host[...]
        }
        return String(name.hasSuffix(".") ? name.dropLast() : name)
    }

    private static func withoutPort(_ authority: String) -> Substring {
        guard !authority.hasPrefix("[") else { return authority.dropFirst().prefix { $0 != "]" } }
        return authority.prefix { $0 != ":" }
    }
}

extension Socket {
    /// Goes on with the handshake, and makes the loop report what it waits for.
    /// - Returns: whether it is done.
    func goOn(with handshake: TLSStream) throws(TLSFailure) -> Bool {
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
