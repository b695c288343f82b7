import TLS

/// What the TLS to the servers of one origin needs, for all loops: read and compared where the origin is made, on the
/// control thread, since that takes time. Immutable.
package struct OriginTLS: Sendable {
    let peers: TLSPeers

    /// `nil` if no server speaks TLS.
    init?(_ settings: UpstreamSettings) {
        guard settings.servers.contains(where: \.isSecure) else { return nil }
        peers = TLSPeers(settings.tls)
    }

    /// Why every handshake fails; `nil` if the settings are of use.
    package var mistake: String? { peers.mistake }
}
