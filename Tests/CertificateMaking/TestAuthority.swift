package import Bytes
import COpenSSL
package import TLS

/// An authority that issues certificates for tests, made in this program. Each has a key of its own. Any thread.
@safe package final class TestAuthority: Sendable {
    /// The key of a certificate.
    package enum Key: Sendable {
        case ecdsa, rsa
        /// RSA with 1024 bits.
        case shortRSA
    }

    /// What makes a certificate differ from a usual one.
    package struct Traits: Sendable {
        /// Whether the names are alternative names.
        package var hasAlternativeNames = true
        /// Where the certificate of the issuer is said to be.
        package var issuerPlace: String?
        /// Whether it is signed with SHA-1.
        package var isSignedWeakly = false

        package init() {}
    }

    private let made: Made
    /// Its certificate, in PEM form.
    package let file: NamedFile

    package convenience init(
        _ name: String = "Test Authority", key: Key = .ecdsa, valid: ClosedRange<Int> = month
    ) {
        self.init(Made(name, names: [], key, valid: valid, isAuthority: true, by: nil))
    }

    private init(_ made: Made) {
        self.made = made
        file = NamedFile(path: "/authority.pem", made.certificateText)
    }

    /// An authority whose certificate this one has issued.
    package func intermediate(_ name: String, key: Key = .ecdsa) -> TestAuthority {
        TestAuthority(Made(name, names: [], key, valid: TestAuthority.month, isAuthority: true, by: made))
    }

    /// What connections believe that believe this authority.
    package var authorities: TLSAuthorities {
        get throws(TLSSettingsError) { try TLSAuthorities(file) }
    }

    /// Seconds before and after the present moment.
    package static let now: ClosedRange<Int> = -3600...86_400
    package static let past: ClosedRange<Int> = -86_400 ... -3600
    /// Long enough for no warning.
    package static let month: ClosedRange<Int> = -3600...30 * 86_400

    /// A certificate of this authority for host names and addresses.
    package func identity(
        for names: String..., key: Key = .ecdsa, valid: ClosedRange<Int> = now, with traits: Traits = Traits()
    ) -> TLSIdentity {
        Made(names.first ?? "", names: names, key, valid: valid, isAuthority: false, by: made, traits).identity
    }

    /// A certificate that its own key has signed.
    package static func selfSigned(for names: String...) -> TLSIdentity {
        let made = Made(names.first ?? "", names: names, .ecdsa, valid: now, isAuthority: false, by: nil)
        return made.identity
    }
}

/// A certificate with its key.
@safe private final class Made: Sendable {
    private nonisolated(unsafe) let certificate: OpaquePointer
    private nonisolated(unsafe) let key: OpaquePointer

    init(
        _ commonName: String, names: [String], _ kind: TestAuthority.Key, valid: ClosedRange<Int>, isAuthority: Bool,
        by issuer: Made?, _ traits: TestAuthority.Traits = TestAuthority.Traits()
    ) {
        let key = unsafe Self.key(kind)
        guard let certificate = unsafe X509_new() else { fatalError("memory is short") }
        unsafe (self.key, self.certificate) = (key, certificate)
        var serial: UInt64 = 0
        for _ in 0..<7 { serial = serial << 8 | UInt64(UInt8.random(in: 1...255)) }
        unsafe X509_set_version(certificate, 2)
        unsafe ASN1_INTEGER_set_uint64(X509_get_serialNumber(certificate), serial)
        unsafe X509_gmtime_adj(X509_getm_notBefore(certificate), valid.lowerBound)
        unsafe X509_gmtime_adj(X509_getm_notAfter(certificate), valid.upperBound)
        unsafe X509_set_pubkey(certificate, key)
        let subject = unsafe X509_get_subject_name(certificate)
        let utf8 = 0x1000
        unsafe X509_NAME_add_entry_by_txt(subject, "CN", Int32(utf8), commonName, -1, -1, 0)
        unsafe X509_set_issuer_name(certificate, X509_get_subject_name(issuer?.certificate ?? certificate))
        add(NID_basic_constraints, isAuthority ? "critical,CA:TRUE" : "critical,CA:FALSE")
        if isAuthority { add(NID_key_usage, "critical,keyCertSign,cRLSign") }
        if let place = traits.issuerPlace { add(NID_info_access, "caIssuers;URI:\(place)") }
        if !names.isEmpty, traits.hasAlternativeNames {
            let isAddress = { (name: String) in name.utf8.allSatisfy { $0 < 0x3a } || name.contains(":") }
            add(
                NID_subject_alt_name,
                names.map { "\(isAddress($0) ? "IP" : "DNS"):\($0)" }.joined(separator: ","))
        }
        let result = unsafe X509_sign(
            certificate, issuer?.key ?? key, traits.isSignedWeakly ? EVP_sha1() : EVP_sha256())
        precondition(result > 0, "the certificate cannot be signed")
    }

    deinit {
        unsafe X509_free(certificate)
        unsafe EVP_PKEY_free(key)
    }

    private static func key(_ kind: TestAuthority.Key) -> OpaquePointer {
        let context = unsafe EVP_PKEY_CTX_new_id(kind == .ecdsa ? EVP_PKEY_EC : EVP_PKEY_RSA, nil)
        defer { unsafe EVP_PKEY_CTX_free(context) }
        var key: OpaquePointer?
        unsafe EVP_PKEY_keygen_init(context)
        switch kind {
        case .ecdsa: unsafe EVP_PKEY_CTX_set_ec_paramgen_curve_nid(context, NID_X9_62_prime256v1)
        case .rsa: unsafe EVP_PKEY_CTX_set_rsa_keygen_bits(context, 2048)
        case .shortRSA: unsafe EVP_PKEY_CTX_set_rsa_keygen_bits(context, 1024)
        }
        unsafe EVP_PKEY_keygen(context, &key)
        guard let made = unsafe key else { fatalError("no key can be made") }
        return unsafe made
    }

    private func add(_ kind: Int32, _ value: String) {
        let made = unsafe X509V3_EXT_conf_nid(nil, nil, kind, value)
        precondition(unsafe made != nil, "no extension \(value)")
        unsafe X509_add_ext(certificate, made, -1)
        unsafe X509_EXTENSION_free(made)
    }

    var certificateText: String { unsafe Self.text { unsafe PEM_write_bio_X509($0, certificate) } }

    var identity: TLSIdentity {
        let keyText = unsafe Self.text { unsafe PEM_write_bio_PrivateKey($0, key, nil, nil, 0, nil, nil) }
        return TLSIdentity(
            certificate: NamedFile(path: "/certificate.pem", certificateText),
            key: NamedFile(path: "/key.pem", keyText))
    }

    private static func text(_ write: (OpaquePointer) -> Int32) -> String {
        guard let memory = unsafe BIO_new(BIO_s_mem()) else { fatalError("memory is short") }
        defer { unsafe BIO_free(memory) }
        let result = unsafe write(memory)
        precondition(result == 1)
        var start: UnsafePointer<CChar>?
        let count = unsafe coalesced_memory_bytes(memory, &start)
        return unsafe String(decoding: UnsafeRawBufferPointer(start: start, count: count), as: UTF8.self)
    }
}

extension NamedFile {
    fileprivate init(path: String, _ text: String) {
        self.init(path: path)
        content = ByteSlice(text)
    }
}
