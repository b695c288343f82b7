public import Bytes
import COpenSSL

/// A certificate with its chain and its key, as PEM files.
public struct TLSIdentity: Sendable, Hashable {
    /// The certificate, followed by the certificates of its issuers.
    public var certificate: NamedFile
    /// The key of the certificate, without a password.
    public var key: NamedFile

    public init(certificate: NamedFile, key: NamedFile) {
        (self.certificate, self.key) = (certificate, key)
    }

    /// The certificate and its chain.
    /// - Throws: if the file holds none.
    func chain() throws(TLSSettingsError) -> [Certificate] {
        let chain = try Certificate.all(in: certificate)
        guard !chain.isEmpty else {
            throw TLSSettingsError(file: certificate.path, "it holds no certificate in PEM form")
        }
        return chain
    }

    /// The first name without a wildcard for which the certificate of a file is valid; `nil` if it has none, or is
    /// damaged.
    public static func name(in file: NamedFile) -> String? {
        (try? Certificate.all(in: file))?.first?.names.first { !$0.hasPrefix("*") }
    }

    /// The key.
    /// - Throws: if the file holds none, or one that needs a password, or one that does not match the first certificate
    ///   of the chain.
    func privateKey(for chain: [Certificate]) throws(TLSSettingsError) -> PrivateKey {
        let made = try PrivateKey(key)
        switch chain.firstIndex(where: { $0.matches(made) }) {
        case 0?: return made
        case let index?:
            throw TLSSettingsError(
                file: certificate.path,
                "the order in this file is wrong: the key belongs to certificate \(index + 1) (\(chain[index].subject)); put that one first, and its issuer after it"
            )
        case nil:
            throw TLSSettingsError(
                file: key.path, "this key does not belong to the certificate in \(certificate.path)")
        }
    }

    /// Loads the files into OpenSSL as servers and clients do, and drops them.
    /// - Throws: if OpenSSL refuses the key or a certificate, such as one with a key that is too small.
    public func tryOut() throws(TLSSettingsError) {
        try unsafe Context(TLS_server_method(), minimumVersion: .tls12).use(self)
    }
}

/// A private key. Freed with its owner; OpenSSL counts further references itself.
@safe final class PrivateKey {
    let pointer: OpaquePointer

    init(_ file: NamedFile) throws(TLSSettingsError) {
        let memory = try MemoryBIO(file.content)
        // The callback gives no password, not even an empty one: OpenSSL would otherwise ask on the terminal.
        guard let pointer = unsafe PEM_read_bio_PrivateKey(memory.pointer, nil, { _, _, _, _ in -1 }, nil) else {
            OpenSSLErrors.forget()
            // `BEGIN ENCRYPTED PRIVATE KEY`, or formerly `Proc-Type: 4,ENCRYPTED`. The errors differ with the version.
            let needsPassword = String(file.content).contains("ENCRYPTED")
            throw TLSSettingsError(
                file: file.path,
                needsPassword
                    ? "the key is encrypted; store it without a password" : "it holds no private key in PEM form")
        }
        unsafe self.pointer = pointer
    }

    deinit { unsafe EVP_PKEY_free(pointer) }
}

/// Bytes as OpenSSL reads them.
@safe struct MemoryBIO: ~Copyable {
    let pointer: OpaquePointer
    /// Keeps the bytes where the pointer has them: the memory of a slice does not move.
    private let bytes: ByteSlice

    init(_ bytes: ByteSlice) throws(TLSSettingsError) {
        // The errors that OpenSSL queues from here on are of this file.
        OpenSSLErrors.forgetFormer()
        let made = unsafe bytes.span.withUnsafeBytes { unsafe coalesced_memory($0.baseAddress, $0.count) }
        guard let made = unsafe made else { throw OpenSSL.shortage }
        self.bytes = bytes
        unsafe pointer = made
    }

    deinit { unsafe BIO_free(pointer) }
}
