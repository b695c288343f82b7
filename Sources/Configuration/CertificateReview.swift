import Bytes
import Routing
import TLS
import Upstream

/// The facts about certificates that operators should know, from settings with their files: `check` prints them, and each
/// start and reload logs them.
package struct CertificateReview: Sendable {
    /// Seconds before the expiry of a certificate from which on it causes a warning: most are renewed a month before, so
    /// that renewal has failed for two weeks by then.
    package static let shortLife: Int64 = 14 * day
    private static let day: Int64 = 86_400
    /// The most names of a certificate, and of hosts, that are shown.
    private static let mostNames = 5
    /// The most certificates of a file with authorities whose times are compared. A larger file is a collection like
    /// that of the system, in which some expire at any time.
    private static let mostAuthorities = 20

    /// One line for each certificate.
    package private(set) var lines: [String] = []
    /// Present and coming faults, each with the path of the key that names the certificate.
    package private(set) var warnings: [(key: String, message: String)] = []
    private let now: Int64

    /// - Parameter now: seconds since 1970.
    package init(of settings: Settings, at now: Int64) {
        self.now = now
        for (index, identity) in settings.proxy.tls.identities.enumerated() {
            let key = Self.key(ofCertificate: index)
            review(identity, at: key, shownTo: "clients")
            reviewNames(of: identity, at: key)
        }
        for (key, message) in settings.replacedCertificates { warnings.append((key, message)) }
        if let file = settings.proxy.tls.clientAuthorities {
            reviewAuthorities(file, at: "tls.client-ca", of: "clients")
        }
        reviewHosts(settings.hostsWithoutCertificate)
        for (index, upstream) in settings.upstreams.enumerated() {
            review(upstream.tls, at: "upstreams[\(index)].tls", "servers")
        }
        review(settings.proxy.shared.tls, at: "shared.tls", "the engine")
    }

    /// The key that names a certificate for clients.
    static func key(ofCertificate index: Int) -> String { "tls.certificates[\(index)].certificate" }

    private mutating func review(_ tls: TLSPeerSettings, at key: String, _ peers: String) {
        if let identity = tls.identity {
            review(identity, at: "\(key).client-certificate.certificate", shownTo: peers)
        }
        if let file = tls.authorities, tls.verifies { reviewAuthorities(file, at: "\(key).ca", of: peers) }
    }

    private mutating func review(_ identity: TLSIdentity, at key: String, shownTo peers: String) {
        // A file that cannot be read is a mistake of the configuration, which is reported elsewhere.
        guard let summary = try? identity.summary() else { return }
        let path = Spelling.shown(identity.certificate.path)
        lines.append(
            "certificate \(path): \(Self.some(of: summary.names) ?? "no names"); \(summary.keyKind) key; issued by \(Spelling.shown(summary.issuer)); valid until \(Self.text(summary.notAfter))"
        )
        let refusal = peers == "the engine" ? "the engine refuses it" : "\(peers) refuse it"
        reviewTimes((summary.notBefore, summary.notAfter), at: key, "in \(path)", refusal, "renew it")
        if let mistake = summary.chainMistake {
            warnings.append((key, "the chain in \(path) is not in order: \(mistake)"))
        }
        if summary.lacksIssuer {
            warnings.append(
                (
                    key,
                    "\(path) holds this certificate alone, so that \(peers) may refuse it: they need that of its issuer (\(Spelling.shown(summary.issuer))), too; name the file with the chain, such as `fullchain.pem`"
                ))
        }
    }

    private mutating func reviewNames(of identity: TLSIdentity, at key: String) {
        guard let summary = try? identity.summary(), !summary.hasAlternativeNames else { return }
        warnings.append(
            (
                key,
                "the certificate in \(Spelling.shown(identity.certificate.path)) has no subjectAltName: browsers and most other clients refuse it; have it issued with its hosts in subjectAltName"
            ))
    }

    private mutating func reviewAuthorities(_ file: NamedFile, at key: String, of peers: String) {
        guard let all = try? TLSAuthorities.validity(in: file), all.count <= Self.mostAuthorities else { return }
        for authority in all {
            reviewTimes(
                (authority.notBefore, authority.notAfter), at: key,
                "of \(Spelling.shown(authority.subject)) in \(Spelling.shown(file.path))",
                "what it has issued for \(peers) is refused", "name a file with its successor")
        }
    }

    private mutating func reviewHosts(_ hosts: [String]) {
        guard let some = Self.some(of: hosts) else { return }
        warnings.append(
            (
                "hosts",
                "no certificate names \(some), so that clients that speak TLS refuse the connection; name one that does in `tls.certificates`, or remove the host here"
            ))
    }

    /// - Parameters:
    ///   - which: tells which certificate this is.
    ///   - refusal: the consequence of a certificate that is not valid.
    private mutating func reviewTimes(
        _ times: (start: Int64, end: Int64), at key: String, _ which: String, _ refusal: String, _ remedy: String
    ) {
        let (start, end) = times
        if end <= now {
            warnings.append(
                (key, "the certificate \(which) expired on \(Self.text(end)): \(refusal); \(remedy), and reload"))
        } else if end - now < Self.shortLife {
            warnings.append(
                (
                    key,
                    "the certificate \(which) expires in \(Self.left(end - now)), on \(Self.text(end)); \(remedy), and reload"
                ))
        }
        if start > now {
            warnings.append(
                (
                    key,
                    "the certificate \(which) is not valid before \(Self.text(start)): \(refusal) until then; set this machine's clock, or use another certificate"
                ))
        }
    }

    /// The first ones of a list, and how many more there are; `nil` if it is empty.
    private static func some(of names: [String]) -> String? {
        let shown = names.prefix(mostNames).map { Spelling.shown($0) }
        let more = names.count - shown.count
        return names.isEmpty ? nil : shown.joined(separator: ", ") + (more > 0 ? " and \(more) more" : "")
    }

    private static func left(_ seconds: Int64) -> String {
        let (count, unit) = seconds < 2 * day ? (seconds / 3600, "hour") : (seconds / day, "day")
        return "\(count) \(unit)\(count == 1 ? "" : "s")"
    }

    /// Such as `2027-01-05 12:00 UTC`.
    private static func text(_ seconds: Int64) -> String {
        let time = CivilTime(unixSeconds: seconds)
        func two(_ number: Int) -> String { number < 10 ? "0\(number)" : "\(number)" }
        return
            "\(time.date.year)-\(two(time.date.month))-\(two(time.date.day)) \(two(time.hour)):\(two(time.minute)) UTC"
    }
}
