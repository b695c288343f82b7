import COpenSSL

/// A certificate with its chain and its key, as the bytes of their PEM files.
public struct TLSIdentity: Sendable, Hashable {
    /// The path of the file with the certificate, followed by those that lead to its issuer.
    public let certificateFile: String
    /// The path of the file with the key.
    public let keyFile: String
    let certificate: [UInt8]
    let key: [UInt8]

    /// - Parameters:
    ///   - certificate: the bytes of the file `certificateFile`.
    ///   - key: the bytes of the file `keyFile`.
    public init(certificateFile: String, certificate: [UInt8], keyFile: String, key: [UInt8]) {
        (self.certificateFile, self.certificate) = (certificateFile, certificate)
        (self.keyFile, self.key) = (keyFile, key)
    }

    /// The certificate and its chain.
    /// - Throws: if the file holds none.
    func chain() throws(TLSSettingsError) -> [Certificate] {
        let chain = try Certificate.all(in: certificate, of: certificateFile)
        guard !chain.isEmpty else {
            throw TLSSettingsError(file: certificateFile, "it holds no certificate in PEM form")
        }
        return chain
    }

    /// The key.
    /// - Throws: if the file holds none, or one that needs a password, or one that does not match the certificate.
    func privateKey(for leaf: Certificate) throws(TLSSettingsError) -> PrivateKey {
        let made = try PrivateKey(key, of: keyFile)
        guard unsafe X509_check_private_key(leaf.pointer, made.pointer) == 1 else {
            ERR_clear_error()
            throw TLSSettingsError(file: keyFile, "this key does not belong to the certificate in \(certificateFile)")
        }
        return made
    }
}

/// A private key. Freed with its owner; OpenSSL counts further references itself.
@safe final class PrivateKey {
    let pointer: OpaquePointer

    init(_ bytes: [UInt8], of file: String) throws(TLSSettingsError) {
        let memory = try MemoryBIO(bytes)
        // The callback gives no password: OpenSSL would otherwise ask on the terminal.
        guard let pointer = unsafe PEM_read_bio_PrivateKey(memory.pointer, nil, { _, _, _, _ in 0 }, nil) else {
            let code = OpenSSLErrors.takeFirst()
            let needsPassword =
                coalesced_library(code) == ERR_LIB_PEM && coalesced_reason(code) == PEM_R_BAD_PASSWORD_READ
                || coalesced_library(code) == ERR_LIB_CRYPTO
            throw TLSSettingsError(
                file: file,
                needsPassword ? "the key is encrypted; store it without a password" : "it holds no private key in PEM form")
        }
        unsafe self.pointer = pointer
    }

    deinit { unsafe EVP_PKEY_free(pointer) }
}

/// Bytes as OpenSSL reads them.
@safe struct MemoryBIO: ~Copyable {
    let pointer: OpaquePointer
    /// Kept alive and in place for the pointer.
    private let memory: UnsafeMutableBufferPointer<UInt8>

    init(_ bytes: [UInt8]) throws(TLSSettingsError) {
        let memory = UnsafeMutableBufferPointer<UInt8>.allocate(capacity: bytes.count)
        _ = unsafe memory.initialize(from: bytes)
        guard let pointer = unsafe coalesced_memory(memory.baseAddress, bytes.count) else {
            unsafe memory.deallocate()
            throw TLSSettingsError(file: "", "memory is short")
        }
        unsafe (self.pointer, self.memory) = (pointer, memory)
    }

    deinit {
        unsafe BIO_free(pointer)
        unsafe memory.deallocate()
    }
}
