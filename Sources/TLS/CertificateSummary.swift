public import Bytes

/// The properties of a certificate that the log, `check` and the metrics report.
public struct CertificateSummary: Sendable, Hashable {
    /// The names for which it is valid, in lower case.
    public let names: [String]
    /// Seconds since 1970.
    public let notBefore: Int64
    public let notAfter: Int64
    /// The issuer as RFC 2253 writes it.
    public let issuer: String
    /// `RSA`, `RSA-PSS`, `ECDSA`, `Ed25519`, `Ed448`, `DSA` or `other`.
    public let keyKind: String
    /// A mistake in the order of the chain, on which some clients fail; `nil` if there is none.
    public let chainMistake: String?
    /// Whether the file has this certificate alone although its issuer has one of its own, for which not every client
    /// looks elsewhere.
    public let lacksIssuer: Bool
    /// Whether the names are alternative names (RFC 9525 §2), and not just the common name.
    public let hasAlternativeNames: Bool
}

extension TLSIdentity {
    /// Reads the certificate, and compares it with the key.
    /// - Throws: if one of the files is damaged, or the two do not belong together.
    public func summary() throws(TLSSettingsError) -> CertificateSummary {
        let chain = try chain()
        let leaf = chain[0]
        _ = try privateKey(for: chain)
        var mistake: String?
        for index in chain.indices.dropFirst() where mistake == nil {
            guard !chain[index - 1].isIssued(by: chain[index]) else { continue }
            mistake =
                "certificate \(index + 1) (\(chain[index].subject)) has not issued certificate \(index) (\(chain[index - 1].subject)); each must be followed by its issuer"
        }
        return CertificateSummary(
            names: leaf.names, notBefore: leaf.notBefore, notAfter: leaf.notAfter, issuer: leaf.issuer,
            keyKind: leaf.keyKind, chainMistake: mistake,
            lacksIssuer: chain.count == 1 && leaf.namesIssuer && !leaf.isSelfSigned,
            hasAlternativeNames: !leaf.alternativeNames.isEmpty)
    }
}

/// The time for which an authority may be believed.
public struct AuthorityValidity: Sendable, Hashable {
    /// The subject as RFC 2253 writes it.
    public let subject: String
    /// Seconds since 1970.
    public let notBefore: Int64
    public let notAfter: Int64
}

extension TLSAuthorities {
    /// The certificates of a file in PEM form, in its order.
    /// - Throws: if one is damaged.
    public static func validity(in file: NamedFile) throws(TLSSettingsError) -> [AuthorityValidity] {
        try Certificate.all(in: file).map {
            AuthorityValidity(subject: $0.subject, notBefore: $0.notBefore, notAfter: $0.notAfter)
        }
    }
}
