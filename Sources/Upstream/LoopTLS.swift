import TLS

/// One loop's side of the TLS to the servers of an origin. Made with its pool, or with the checks: later memory may be
/// short. Confined to its loop.
final class LoopTLS {
    private let connector: TLSConnector
    private let settings: UpstreamSettings

    init(_ origin: OriginTLS, _ settings: UpstreamSettings) {
        connector = TLSConnector(origin.peers)
        self.settings = settings
    }

    /// How connections to the server are secured, with sessions of their own; `nil` for a server without TLS.
    func server(_ server: UpstreamServer) -> ServerTLS? {
        server.isSecure ? connector.server(at: settings.certificateHost(of: server)) : nil
    }
}

extension UpstreamSettings {
    /// The name that a server's certificate must have, and that is asked for.
    func certificateName(of server: UpstreamServer) -> String {
        tls.certificateName(ofHost: certificateHost(of: server))
    }

    /// The host in the name of which a server answers, without a port.
    fileprivate func certificateHost(of server: UpstreamServer) -> String {
        switch server.location {
        case .tcp(let host, _): host
        case .unix: host.map { String(Self.withoutPort($0)) } ?? server.host
        }
    }

    private static func withoutPort(_ authority: String) -> Substring {
        guard !authority.hasPrefix("[") else { return authority.dropFirst().prefix { $0 != "]" } }
        return authority.prefix { $0 != ":" }
    }
}
