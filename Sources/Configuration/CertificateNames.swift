import Bytes
import Libevent
import Routing
import TLS

/// Which certificate clients get for which name, as `TLSServer` chooses it.
extension Settings {
    /// The certificates that no client gets, since a later one has the same names and the same kind of key, each with
    /// the path of its key and the advice.
    var replacedCertificates: [(key: String, message: String)] {
        let identities = proxy.tls.identities
        var last: [CertificateSlot: Int] = [:]
        var found: [(key: String, message: String)] = []
        for (index, identity) in identities.enumerated() {
            guard let summary = try? identity.summary() else { continue }
            let slot = CertificateSlot(names: summary.names.sorted(), keyKind: summary.keyKind)
            guard let former = last.updateValue(index, forKey: slot) else { continue }
            let replaced = Spelling.shown(identities[former].certificate.path)
            found.append(
                (
                    CertificateReview.key(ofCertificate: former),
                    "no client gets the certificate in \(replaced): that in \(Spelling.shown(identity.certificate.path)) comes later and has the same names and kind of key (\(summary.keyKind)); remove one of them"
                ))
        }
        return found
    }

    /// The entries of `hosts` for which clients that speak TLS get a certificate of another name. Addresses are left out:
    /// requests for them mostly come from health checks, and few authorities issue certificates for them.
    var hostsWithoutCertificate: [String] {
        guard !proxy.secureListeners.isEmpty else { return [] }
        let names = Set(proxy.tls.identities.flatMap { (try? $0.summary())?.names ?? [] })
        // The certificate has a mistake then, which is told elsewhere.
        guard !names.isEmpty else { return [] }
        return proxy.hosts.filter { !$0.isNamed(by: names) }.map(\.text)
    }
}

/// Of the certificates of one kind of key for the same names, one is used.
private struct CertificateSlot: Hashable {
    let names: [String]
    let keyKind: String
}

extension HostPattern {
    /// Whether certificates with these names are good for this host; of a wildcard, for some host that it matches.
    fileprivate func isNamed(by names: Set<String>) -> Bool {
        if text.hasPrefix("*.") { return names.contains { covers(HostPattern($0)) } }
        let host = text.hasSuffix(".") ? String(text.dropLast()) : text
        guard !host.hasPrefix("["), IPv4Address(host) == nil, !names.contains(host) else { return true }
        // A wildcard of a certificate is for one label (RFC 9525 §6.3).
        guard let dot = host.firstIndex(of: ".") else { return false }
        return names.contains("*\(host[dot...])")
    }
}
