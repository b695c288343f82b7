import TLS

/// What the TLS to the servers of one origin needs, for all loops: read and compared where the origin is made, on the
/// control thread, since that takes time. Immutable.
package struct OriginTLS: Sendable {
    /// An origin whose settings are no use takes no certificate: it must not believe everybody instead.
    let settings: Result<TLSClientSettings, TLSSettingsError>

    /// `nil` if no server speaks TLS.
    init?(_ settings: UpstreamSettings) {
        guard settings.servers.contains(where: \.isSecure) else { return nil }
        self.settings = Self.settings(of: settings.tls)
    }

    private static func settings(of tls: UpstreamTLSSettings) -> Result<TLSClientSettings, TLSSettingsError> {
        Result { () throws(TLSSettingsError) in
            var settings = TLSClientSettings(authorities: tls.verifies ? try authorities(of: tls) : nil)
            settings.identity = tls.identity
            // Shows now what is wrong with the files, and not at the first connection.
            _ = try TLSClient(settings)
            return settings
        }
    }

    private static func authorities(of tls: UpstreamTLSSettings) throws(TLSSettingsError) -> TLSAuthorities {
        guard let file = tls.authorities else { return try TLSAuthorities.system.get() }
        return try TLSAuthorities(file)
    }

    /// Why every handshake fails; `nil` if the settings are of use.
    package var mistake: String? {
        switch settings {
        case .success: nil
        case .failure(let error): "\(error)"
        }
    }
}
