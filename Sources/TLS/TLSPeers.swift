public import Bytes

/// An operator's settings for TLS with the servers to which this program connects.
public struct TLSPeerSettings: Sendable, Equatable {
    /// The name that certificates must have, and that is asked for (SNI); `nil`: the host of each server.
    public var serverName: String?
    /// The authorities of the certificates; `nil`: the authorities that the system believes.
    public var authorities: NamedFile?
    /// Whether certificates are compared at all. Without that, anyone on the way can answer.
    public var verifies = true
    /// The certificate shown to servers that ask for one.
    public var identity: TLSIdentity?

    public init() {}

    /// The name that the certificate of a server must have, and that is asked for (RFC 6066 §3: without a dot at its
    /// end).
    public func certificateName(ofHost host: String) -> String {
        serverName ?? (host.hasSuffix(".") ? String(host.dropLast()) : host)
    }
}

/// The settings and files of TLS with servers, for all loops. `init` reads and compares the files, which takes time and
/// so must not be on a loop of requests. Immutable; any thread.
public struct TLSPeers: Sendable {
    /// Settings that are no use let no handshake begin: it must not believe everybody instead.
    let client: Result<TLSClientSettings, TLSSettingsError>
    let settings: TLSPeerSettings

    public init(_ settings: TLSPeerSettings) {
        self.settings = settings
        client = Result { () throws(TLSSettingsError) in
            var made = TLSClientSettings(authorities: settings.verifies ? try Self.authorities(of: settings) : nil)
            made.identity = settings.identity
            // Reports mistakes in the files now, and not at the first connection.
            _ = try TLSClient(made)
            return made
        }
    }

    private static func authorities(of settings: TLSPeerSettings) throws(TLSSettingsError) -> TLSAuthorities {
        guard let file = settings.authorities else { return try TLSAuthorities.system.get() }
        return try TLSAuthorities(file)
    }

    /// Why every handshake fails; `nil` if the settings are of use.
    public var mistake: String? {
        switch client {
        case .success: nil
        case .failure(let error): "\(error)"
        }
    }
}
