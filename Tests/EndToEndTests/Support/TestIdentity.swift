import Bytes
import CertificateMaking
import TLS

/// The authority of these tests, and what it has issued for the program and the scripted origins. Made once.
enum TestIdentity {
    static let authority = TestAuthority("End-to-End Authority")
    /// The program warns of certificates that expire soon.
    private static let month = -3600...30 * 86_400
    static let ofProgram = authority.identity(for: "127.0.0.1", "localhost", valid: month)
    static let ofOrigins = authority.identity(
        for: "127.0.0.1", "127.0.0.2", "127.0.0.3", "localhost", "origin.test", valid: month)

    /// Of the authority, in PEM form.
    static let authorityText = authority.file.text

    /// Writes the certificate and the key for the program into `folder`.
    /// - Returns: the flags that name them.
    static func flags(in folder: String) throws -> [String] {
        try write(ofProgram, to: "\(folder)/program")
        return ["--tls-certificate", "\(folder)/program.pem", "--tls-key", "\(folder)/program.key"]
    }

    /// Writes `path.pem` and `path.key`.
    static func write(_ identity: TLSIdentity, to path: String) throws {
        try System.write(identity.certificate.text, to: "\(path).pem")
        // The program warns of keys that everybody can read.
        try System.write(identity.key.text, to: "\(path).key", permissions: 0o600)
    }
}

extension NamedFile {
    var text: String { unsafe content.span.withUnsafeBytes { unsafe String(decoding: $0, as: UTF8.self) } }
}
