import COpenSSL

/// Why OpenSSL does not let a certificate be shown, and the remedy. The system's configuration of OpenSSL may set
/// another level of security than 2, by which RSA keys of less than 2048 bits are refused.
extension Certificate {
    /// - Parameters:
    ///   - code: OpenSSL's error.
    ///   - number: its place in the file if it is not the first.
    func refusal(_ code: UInt, as number: Int? = nil) -> String {
        let refused = "OpenSSL refuses " + (number.map { "certificate \($0) (\(subject))" } ?? "it")
        let (text, isIssuer) = (OpenSSLErrors.text(code), number != nil)
        switch coalesced_reason(code) {
        case SSL_R_EE_KEY_TOO_SMALL, SSL_R_CA_KEY_TOO_SMALL:
            return
                "\(refused): its \(keyKind) key of \(keyBits) bits is too small (\(text)); "
                + (isIssuer
                    ? "name a file without it, or have the first one issued by another authority"
                    : "have it issued for an RSA key of 2048 bits or more, or for an ECDSA key")
        case SSL_R_CA_MD_TOO_WEAK:
            return "\(refused): its signature is too weak (\(text)); have it issued again with SHA-256"
        default:
            return "\(refused): \(text); name another"
        }
    }

    /// Whether a cipher of TLS 1.2 or 1.3 that is allowed here signs with a key of its kind.
    var hasUsableKey: Bool { ["RSA", "RSA-PSS", "ECDSA", "Ed25519", "Ed448"].contains(keyKind) }
}
