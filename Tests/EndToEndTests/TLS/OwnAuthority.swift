import Bytes
import CertificateMaking
import TLS

/// An authority with a folder for what it issues, which the test removes.
struct OwnAuthority {
    let folder: String
    private let authority = TestAuthority()
    /// Its certificate.
    var file: String { "\(folder)/ca.pem" }

    init() throws {
        folder = try System.makeTemporaryFolder()
        try System.write(String(authority.file.content), to: file)
    }

    /// Issues a certificate for a name and 127.0.0.1 into `NAME.pem`, with the authority behind it, and `NAME.key`.
    /// Replaces that of an earlier call.
    func issue(_ name: String) throws {
        try write(authority.identity(for: name, "127.0.0.1"), name, chain: String(authority.file.content))
    }

    /// Makes a certificate that has signed itself.
    func selfSign(_ name: String) throws { try write(TestAuthority.selfSigned(for: name), name) }

    private func write(_ identity: TLSIdentity, _ name: String, chain: String = "") throws {
        try System.write(String(identity.certificate.content) + chain, to: "\(folder)/\(name).pem")
        try System.write(String(identity.key.content), to: "\(folder)/\(name).key")
    }
}
