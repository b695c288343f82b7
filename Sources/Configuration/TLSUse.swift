import Admin
import Bytes
import Routing
import TLS
import Upstream

/// Mistakes in the combination of TLS settings, each with the path of a key.
extension Settings {
    /// The settings that listeners lack to speak TLS.
    var tlsMistakes: [(key: String, message: String)] {
        let listeners = proxy.listen
        var mistakes: [(key: String, message: String)] = []
        if proxy.tls.identities.isEmpty, let index = listeners.firstIndex(where: \.isSecure) {
            mistakes.append(
                (
                    "listen[\(index)]",
                    "there is no certificate for the clients that speak TLS at \(listeners[index].address); name one in `tls: {certificates: [{certificate: /site.pem, key: /site.key}]}`"
                ))
        }
        if proxy.tls.clientAuthorities == nil,
            let index = listeners.firstIndex(where: { $0.isSecure && $0.clientCertificates != .off })
        {
            mistakes.append(
                (
                    "listen[\(index)].client-certificates",
                    "no certificate of a client can be good without authorities; name a file with them in `tls: {client-ca: /file}`"
                ))
        }
        if proxy.tls.identities.isEmpty, admin.isSecure {
            mistakes.append(
                (
                    "admin.address",
                    "there is no certificate for the admin listener, which speaks TLS; name one in `tls: {certificates: [{certificate: /site.pem, key: /site.key}]}`"
                ))
        }
        return mistakes
    }

    /// Settings that have no effect, and keys that are not kept secret.
    /// - Parameter files: `nil`: nothing is known of the files.
    func tlsWarnings(_ files: Files?) -> [(key: String, message: String)] {
        let (tls, listeners) = (proxy.tls, proxy.listen)
        var warnings: [(key: String, message: String)] = []
        if !tls.identities.isEmpty, !admin.isSecure, !listeners.contains(where: \.isSecure) {
            warnings.append(
                (
                    "tls.certificates",
                    "no client sees these certificates, since no listener speaks TLS; add one such as `https://0.0.0.0:443` to `listen`"
                ))
        }
        if tls.acmeChallenges != nil, listeners.allSatisfy(\.isSecure) {
            warnings.append(
                (
                    "tls.acme-challenges",
                    "challenges are asked for without TLS, and all listeners have it; add one such as `0.0.0.0:80` to `listen`"
                ))
        }
        if let folder = tls.acmeChallenges, files?.folder(folder) == .absent {
            warnings.append(
                (
                    "tls.acme-challenges",
                    "`acme-challenges: \(Spelling.shown(folder))` does not exist; make this folder, and let the proxy's user enter it"
                ))
        }
        let asks = listeners.contains { $0.clientCertificates != .off }
        for (key, isSet) in [
            ("client-ca", tls.clientAuthorities != nil), ("client-subject-field", tls.clientSubjectField != nil),
        ]
        where isSet && !asks {
            warnings.append(
                (
                    "tls.\(key)",
                    "`\(key)` has no effect, since no listener asks for clients' certificates; add `client-certificates: required` (or `offered`) to one"
                ))
        }
        if let index = upstreams.firstIndex(where: \.needsSystemAuthorities),
            let mistake = files?.systemAuthoritiesMistake()
        {
            warnings.append(
                (
                    "upstreams[\(index)].servers",
                    "no certificate of these servers can be compared: \(mistake); install that package, or name a file in `tls: {ca: /file}`"
                ))
        }
        if proxy.shared.isSecure, proxy.shared.tls.needsSystemAuthorities,
            let mistake = files?.systemAuthoritiesMistake()
        {
            warnings.append(
                (
                    "shared.engine",
                    "no certificate of the engine can be compared: \(mistake); install that package, or name a file in `tls: {ca: /file}`"
                ))
        }
        return warnings + openKeys(files)
    }

    /// Warnings about keys that everybody on this machine can read.
    private func openKeys(_ files: Files?) -> [(key: String, message: String)] {
        guard let files else { return [] }
        var keys = proxy.tls.identities.enumerated().map { ("tls.certificates[\($0)].key", $1.key.path) }
        if let file = proxy.tls.ticketKeys { keys.append(("tls.ticket-keys", file.path)) }
        for (index, upstream) in upstreams.enumerated() {
            guard let identity = upstream.tls.identity else { continue }
            keys.append(("upstreams[\(index)].tls.client-certificate.key", identity.key.path))
        }
        if let identity = proxy.shared.tls.identity {
            keys.append(("shared.tls.client-certificate.key", identity.key.path))
        }
        return keys.filter { files.isReadableByAll($1) }
            .map { key, path in
                let name = key.split(separator: ".").last ?? ""
                return (
                    key,
                    "`\(name): \(Spelling.shown(path))` can be read by every user of this machine; remove that right, as `chmod o-r` does"
                )
            }
    }
}

extension UpstreamSettings {
    /// Whether the certificates of its servers are compared with the authorities of the system.
    fileprivate var needsSystemAuthorities: Bool {
        tls.needsSystemAuthorities && servers.contains(where: \.isSecure)
    }
}

extension TLSPeerSettings {
    /// Whether certificates are compared with the authorities of the system.
    fileprivate var needsSystemAuthorities: Bool { authorities == nil && verifies }
}
