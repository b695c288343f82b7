import Bytes
import Libevent
import Routing
import TLS

/// The certificates of the TLS listeners under the present settings, in one `TLSServer` for each worker.
///
/// Owned by the server, confined to the control loop.
struct Certificates {
    private var settings = TLSSettings()
    private var keys = TicketKeys()
    /// Empty without a TLS listener.
    private(set) var servers: [TLSServer] = []
    /// What operators are told of the certificates, in the order of the settings.
    private(set) var reports: [CertificateReport] = []

    /// The certificates under other settings. Settings that are the same keep their sessions.
    /// - Throws: if a file is damaged; nothing has changed then.
    func changed(to new: ProxySettings, workers count: Int) throws(ProxyServer.StartError) -> Certificates {
        do throws(TLSSettingsError) { return try made(for: new, workers: count) } catch { throw .tls(error) }
    }

    /// - Returns: `nil` without a TLS listener.
    func snapshot(at targets: [ListenTarget], _ settings: ProxySettings) -> TLSSnapshot? {
        guard !servers.isEmpty else { return nil }
        let secured = targets.filter { settings.secureListeners[$0.configured] != nil }
        return TLSSnapshot(addresses: secured.map(\.address), certificates: reports)
    }

    private func made(for new: ProxySettings, workers count: Int) throws(TLSSettingsError) -> Certificates {
        if new.secureListeners.isEmpty { return Certificates() }
        if new.tls == settings, servers.count == count { return self }
        var changed = Certificates()
        changed.settings = new.tls
        changed.keys = keys
        if new.tls.ticketKeys != settings.ticketKeys {
            if let file = new.tls.ticketKeys {
                changed.keys = try TicketKeys(file)
            } else {
                changed.keys = TicketKeys()
            }
        }
        var made = TLSServerSettings()
        made.identities = new.tls.identities
        made.minimumVersion = new.tls.minimumVersion
        made.protocols = ["h2", "http/1.1"]
        made.refusesUnknownNames = new.tls.refusesUnknownNames
        made.ticketKeys = changed.keys
        if let file = new.tls.clientAuthorities { made.clientAuthorities = try TLSAuthorities(file) }
        for _ in 0..<count { changed.servers.append(try TLSServer(made)) }
        for identity in made.identities {
            let path = identity.certificate.path
            // A file that is named twice is one certificate.
            guard !changed.reports.contains(where: { $0.path == path }) else { continue }
            let summary = try identity.summary()
            changed.reports.append(CertificateReport(path: path, names: summary.names, notAfter: summary.notAfter))
        }
        return changed
    }
}

/// A certificate of the TLS listeners, as its file was when the settings were read.
package struct CertificateReport: Sendable, Equatable {
    /// The file, as the settings name it.
    package let path: String
    /// The names for which it is valid, in lower case.
    package let names: [String]
    /// When it expires, in seconds since 1970.
    package let notAfter: Int64
}
