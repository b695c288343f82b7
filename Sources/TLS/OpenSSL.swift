public import Bytes
import COpenSSL

/// Values that all contexts share.
@safe enum OpenSSL {
    /// How OpenSSL reads from and writes to sockets; `nil` if memory is short. Never changed after it was made, so any
    /// thread may use it.
    nonisolated(unsafe) static let method: OpaquePointer? = unsafe coalesced_bio_method()

    /// Ciphers, groups and versions as Mozilla's intermediate configuration has them (Server Side TLS 5.7).
    static let ciphers =
        "ECDHE-ECDSA-AES128-GCM-SHA256:ECDHE-RSA-AES128-GCM-SHA256:ECDHE-ECDSA-AES256-GCM-SHA384:ECDHE-RSA-AES256-GCM-SHA384:ECDHE-ECDSA-CHACHA20-POLY1305:ECDHE-RSA-CHACHA20-POLY1305:DHE-RSA-AES128-GCM-SHA256:DHE-RSA-AES256-GCM-SHA384:DHE-RSA-CHACHA20-POLY1305"
    static let groups = "X25519:prime256v1:secp384r1"

    static var shortage: TLSSettingsError { TLSSettingsError(file: "", "memory is short: \(OpenSSLErrors.takeText())") }
}

/// The `SSL_CTX` of the connections of one kind, not changed once it is set up. Freed with its owner; its connections
/// hold it too.
@safe final class Context: Sendable {
    nonisolated(unsafe) let pointer: OpaquePointer

    /// A context with the settings that all have.
    /// - Throws: if memory is short.
    init(_ method: OpaquePointer?, minimumVersion: TLSVersion) throws(TLSSettingsError) {
        OpenSSLErrors.forgetFormer()
        guard let made = unsafe SSL_CTX_new(method) else { throw OpenSSL.shortage }
        unsafe pointer = made
        guard unsafe coalesced_prepare_context(made, minimumVersion.number, 0) == 1,
            unsafe SSL_CTX_set_cipher_list(made, OpenSSL.ciphers) == 1,
            unsafe coalesced_set_groups(made, OpenSSL.groups) == 1
        else { throw TLSSettingsError(file: "", "OpenSSL refuses the settings: \(OpenSSLErrors.takeText())") }
    }

    deinit { unsafe SSL_CTX_free(pointer) }

    /// Believes the certificates that `authorities` have issued.
    func believe(_ authorities: TLSAuthorities) {
        _ = unsafe X509_STORE_up_ref(authorities.store)
        unsafe SSL_CTX_set_cert_store(pointer, authorities.store)
    }

    /// Shows a certificate with its chain. One with the same kind of key takes the place of the former one.
    func use(_ identity: TLSIdentity) throws(TLSSettingsError) {
        let chain = try identity.chain()
        let key = try identity.privateKey(for: chain)
        // OpenSSL takes some that no cipher here can use: each handshake would fail.
        guard chain[0].hasUsableKey else {
            throw TLSSettingsError(
                file: identity.certificate.path,
                "clients cannot use a key of its kind (\(chain[0].keyKind)); have it issued for an ECDSA or RSA key")
        }
        guard unsafe SSL_CTX_use_certificate(pointer, chain[0].pointer) == 1 else {
            throw TLSSettingsError(file: identity.certificate.path, chain[0].refusal(OpenSSLErrors.takeFirst()))
        }
        guard unsafe SSL_CTX_use_PrivateKey(pointer, key.pointer) == 1 else {
            throw TLSSettingsError(file: identity.key.path, "OpenSSL refuses it: \(OpenSSLErrors.takeText())")
        }
        _ = unsafe coalesced_clear_chain(pointer)
        for (index, certificate) in chain.enumerated().dropFirst() {
            guard unsafe coalesced_add_chain(pointer, certificate.pointer) == 1 else {
                throw TLSSettingsError(
                    file: identity.certificate.path, certificate.refusal(OpenSSLErrors.takeFirst(), as: index + 1))
            }
        }
    }
}

/// The versions that may be the least.
public enum TLSVersion: String, Sendable, Hashable, CaseIterable {
    case tls12 = "1.2"
    case tls13 = "1.3"

    var number: Int32 { self == .tls12 ? TLS1_2_VERSION : TLS1_3_VERSION }
}

/// The authorities whose certificates are believed. Immutable once made, and OpenSSL locks its own parts: any thread.
@safe public final class TLSAuthorities: Sendable {
    nonisolated(unsafe) let store: OpaquePointer
    /// Their certificates, to name them to clients.
    private let certificates: [Certificate]
    /// Whether a certificate is believed only if it is one of these itself; the name of its server does not matter then.
    let isExact: Bool

    /// - Parameter isExact: whether none of them is an authority of others' certificates.
    private init(_ certificates: [Certificate], isExact: Bool) throws(TLSSettingsError) {
        guard let store = unsafe X509_STORE_new() else { throw OpenSSL.shortage }
        for certificate in certificates { _ = unsafe X509_STORE_add_cert(store, certificate.pointer) }
        OpenSSLErrors.forget()
        unsafe self.store = store
        self.certificates = certificates
        self.isExact = isExact
    }

    /// SHA-256 of each certificate.
    var digest: [UInt8] {
        certificates.flatMap { certificate in
            var (digest, count) = ([UInt8](repeating: 0, count: 32), UInt32(0))
            _ = unsafe X509_digest(certificate.pointer, EVP_sha256(), &digest, &count)
            return digest
        }
    }

    /// The authorities of a file in PEM form.
    /// - Throws: if the file holds none, or a damaged one.
    public convenience init(_ file: NamedFile) throws(TLSSettingsError) {
        let all = try Certificate.all(in: file)
        guard !all.isEmpty else { throw TLSSettingsError(file: file.path, "it holds no certificate in PEM form") }
        try self.init(all, isExact: false)
    }

    /// The certificates with which files begin, each for itself: a server has it, or is not believed. Its name does not
    /// matter.
    /// - Throws: if there is none, or a file is damaged.
    public static func exactly(_ files: [NamedFile]) throws(TLSSettingsError) -> TLSAuthorities {
        var own: [Certificate] = []
        for file in files { if let first = try Certificate.all(in: file).first { own.append(first) } }
        guard !own.isEmpty else { throw TLSSettingsError(file: "", "there is no certificate to compare with") }
        let made = try TLSAuthorities(own, isExact: true)
        // Otherwise a certificate that another has issued would count only with that one.
        _ = unsafe X509_STORE_set_flags(made.store, UInt(X509_V_FLAG_PARTIAL_CHAIN))
        return made
    }

    /// These authorities and, from `files`, each certificate behind the first one, which has issued the one before it.
    /// - Throws: if a file is damaged.
    public func joined(withIssuersIn files: [NamedFile]) throws(TLSSettingsError) -> TLSAuthorities {
        var all = certificates
        for file in files { all += try Certificate.all(in: file).dropFirst() }
        let made = try TLSAuthorities(all, isExact: false)
        // An issuer in between need not lead to one that has signed itself.
        _ = unsafe X509_STORE_set_flags(made.store, UInt(X509_V_FLAG_PARTIAL_CHAIN))
        return made
    }

    deinit { unsafe X509_STORE_free(store) }

    /// Tells clients of `context` whose certificates are asked for.
    func announce(in context: Context) throws(TLSSettingsError) {
        guard let names = unsafe coalesced_subjects() else { throw OpenSSL.shortage }
        for certificate in certificates {
            _ = unsafe coalesced_add_subject(names, X509_get_subject_name(certificate.pointer))
        }
        unsafe SSL_CTX_set_client_CA_list(context.pointer, names)
    }
}
