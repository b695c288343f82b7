import Bytes
import Routing
import TLS
import Upstream

/// What operators should know of the certificates in settings whose files have been read: `check` prints it, and each
/// start and reload logs it.
package struct CertificateReview: Sendable {
    /// Seconds before the expiry of a certificate from which on it causes a warning: most are renewed a month before, so
    /// that renewal has failed for two weeks by then.
    package static let shortLife: Int64 = 14 * day
    private static let day: Int64 = 86_400
    /// The most names of a certificate that are shown.
    private static let mostNames = 5

    /// One line for each certificate.
    package private(set) var lines: [String] = []
    /// What is wrong or will soon be, each with the path of the key that names the certificate.
    package private(set) var warnings: [(key: String, message: String)] = []
    private let now: Int64

    /// - Parameter now: seconds since 1970.
    package init(of settings: Settings, at now: Int64) {
        self.now = now
        for (index, identity) in settings.proxy.tls.identities.enumerated() {
            review(identity, at: "tls.certificates[\(index)].certificate", refusedBy: "clients refuse it")
        }
        for (index, upstream) in settings.upstreams.enumerated() {
            guard let identity = upstream.tls.identity else { continue }
            review(
                identity, at: "upstreams[\(index)].tls.client-certificate.certificate", refusedBy: "servers refuse it")
        }
        if let identity = settings.proxy.shared.tls.identity {
            review(identity, at: "shared.tls.client-certificate.certificate", refusedBy: "the engine refuses it")
        }
    }

    private mutating func review(_ identity: TLSIdentity, at key: String, refusedBy refusal: String) {
        // What cannot be read is a mistake, which is told elsewhere.
        guard let summary = try? identity.summary() else { return }
        let path = Spelling.shown(identity.certificate.path)
        let names = summary.names.prefix(Self.mostNames).map { Spelling.shown($0) }
        let more = summary.names.count - names.count
        let known = names.isEmpty ? "no names" : names.joined(separator: ", ") + (more > 0 ? " and \(more) more" : "")
        lines.append(
            "certificate \(path): \(known); \(summary.keyKind) key; issued by \(Spelling.shown(summary.issuer)); valid until \(Self.text(summary.notAfter))"
        )
        if summary.notAfter <= now {
            warnings.append(
                (
                    key,
                    "the certificate in \(path) expired on \(Self.text(summary.notAfter)): \(refusal); renew it, and reload"
                ))
        } else if summary.notAfter - now < Self.shortLife {
            warnings.append(
                (
                    key,
                    "the certificate in \(path) expires in \(Self.left(summary.notAfter - now)), on \(Self.text(summary.notAfter)); renew it, and reload"
                ))
        }
        if summary.notBefore > now {
            warnings.append(
                (
                    key,
                    "the certificate in \(path) is not valid before \(Self.text(summary.notBefore)): \(refusal) until then; set this machine's clock, or use another certificate"
                ))
        }
        if let mistake = summary.chainMistake {
            warnings.append((key, "the chain in \(path) is not in order: \(mistake)"))
        }
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
