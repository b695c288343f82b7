import Bytes
import COpenSSL
import Glibc

/// A certificate, which nothing changes. Freed with its owner; OpenSSL counts further references itself.
@safe final class Certificate: Sendable {
    nonisolated(unsafe) let pointer: OpaquePointer

    /// Takes over a reference.
    init(adopting pointer: OpaquePointer) { unsafe self.pointer = pointer }

    deinit { unsafe X509_free(pointer) }

    /// All certificates of a file in PEM form, in its order.
    /// - Throws: if a certificate in it is damaged.
    static func all(in file: NamedFile) throws(TLSSettingsError) -> [Certificate] {
        let memory = try MemoryBIO(file.content)
        var found: [Certificate] = []
        while let next = unsafe PEM_read_bio_X509_AUX(memory.pointer, nil, nil, nil) {
            unsafe found.append(Certificate(adopting: next))
        }
        let code = OpenSSLErrors.takeFirst()
        guard code == 0 || coalesced_library(code) == ERR_LIB_PEM && coalesced_reason(code) == PEM_R_NO_START_LINE
        else {
            throw TLSSettingsError(
                file: file.path, "certificate \(found.count + 1) is damaged: \(OpenSSLErrors.text(code))")
        }
        return found
    }

    /// Seconds since 1970 at which the certificate expires, and from which on it is valid.
    var notAfter: Int64 { unsafe Self.seconds(X509_get0_notAfter(pointer)) }
    var notBefore: Int64 { unsafe Self.seconds(X509_get0_notBefore(pointer)) }

    private static func seconds(_ time: UnsafePointer<ASN1_TIME>?) -> Int64 {
        var parts = unsafe tm()
        guard let time = unsafe time, unsafe ASN1_TIME_to_tm(time, &parts) == 1 else { return 0 }
        return unsafe Int64(timegm(&parts))
    }

    /// The names for which the certificate is valid, in lower case: its alternative names, or its common name if it has
    /// none of them. Addresses in their usual form.
    var names: [String] {
        let names = alternativeNames
        return names.isEmpty ? commonName.map { [$0.lowercased()] } ?? [] : names
    }

    /// The names in its extension subjectAltName that are hosts or addresses.
    var alternativeNames: [String] {
        var names: [String] = []
        if let list = unsafe OpaquePointer(X509_get_ext_d2i(pointer, NID_subject_alt_name, nil, nil)) {
            for index in unsafe 0..<coalesced_names_count(list) {
                guard let name = unsafe coalesced_name_at(list, index) else { continue }
                switch unsafe name.pointee.type {
                case GEN_DNS: if let text = unsafe Self.text(name.pointee.d.dNSName) { names.append(text.lowercased()) }
                case GEN_IPADD: if let text = unsafe Self.address(name.pointee.d.iPAddress) { names.append(text) }
                default: break
                }
            }
            unsafe coalesced_free_names(list)
        }
        return names
    }

    private var commonName: String? {
        guard let subject = unsafe X509_get_subject_name(pointer) else { return nil }
        let index = unsafe X509_NAME_get_index_by_NID(subject, NID_commonName, -1)
        guard index >= 0, let entry = unsafe X509_NAME_get_entry(subject, index),
            let text = unsafe X509_NAME_ENTRY_get_data(entry)
        else { return nil }
        return unsafe Self.text(text)
    }

    private static func text(_ string: UnsafePointer<ASN1_STRING>?) -> String? {
        guard let string = unsafe string, let start = unsafe ASN1_STRING_get0_data(string) else { return nil }
        let count = unsafe Int(ASN1_STRING_length(string))
        let bytes = unsafe UnsafeBufferPointer(start: start, count: count)
        // A name with a NUL inside would look like a shorter one to other programs.
        guard unsafe !bytes.contains(0) else { return nil }
        return unsafe String(decoding: bytes, as: UTF8.self)
    }

    private static func address(_ string: UnsafePointer<ASN1_STRING>?) -> String? {
        guard let string = unsafe string, let start = unsafe ASN1_STRING_get0_data(string) else { return nil }
        let count = unsafe ASN1_STRING_length(string)
        var text = [CChar](repeating: 0, count: 64)
        let family = count == 4 ? AF_INET : AF_INET6
        guard count == 4 || count == 16, unsafe inet_ntop(family, start, &text, socklen_t(text.count)) != nil else {
            return nil
        }
        return String(decoding: text.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }

    /// The subject as RFC 2253 writes it, such as `CN=site,O=Example`.
    var subject: String { unsafe Self.text(of: X509_get_subject_name(pointer)) }
    /// The issuer in the same form.
    var issuer: String { unsafe Self.text(of: X509_get_issuer_name(pointer)) }

    private static func text(of name: OpaquePointer?) -> String {
        guard let name = unsafe name, let memory = unsafe BIO_new(BIO_s_mem()) else { return "" }
        defer { unsafe BIO_free(memory) }
        guard unsafe X509_NAME_print_ex(memory, name, 0, coalesced_name_form) >= 0 else { return "" }
        var start: UnsafePointer<CChar>?
        let count = unsafe coalesced_memory_bytes(memory, &start)
        let bytes = unsafe UnsafeRawBufferPointer(start: start, count: count)
        return unsafe String(decoding: bytes, as: UTF8.self)
    }

    /// Whether `issuer` has issued this certificate, judged by their names and key identifiers.
    func isIssued(by issuer: Certificate) -> Bool { unsafe X509_check_issued(issuer.pointer, pointer) == X509_V_OK }

    /// Whether its own key has signed it, judged in the same way.
    var isSelfSigned: Bool { unsafe X509_get_extension_flags(pointer) & UInt32(EXFLAG_SS) != 0 }

    /// Whether it says where the certificate of its issuer is: authorities that issue from an intermediate one say so.
    var namesIssuer: Bool { unsafe coalesced_names_issuer(pointer) == 1 }

    /// Whether `key` belongs to it.
    func matches(_ key: PrivateKey) -> Bool {
        defer { OpenSSLErrors.forget() }
        return unsafe X509_check_private_key(pointer, key.pointer) == 1
    }

    /// `RSA`, `ECDSA` or another kind of key.
    var keyKind: String {
        guard let key = unsafe X509_get0_pubkey(pointer) else { return "unknown" }
        switch unsafe EVP_PKEY_get_base_id(key) {
        case EVP_PKEY_RSA: return "RSA"
        case EVP_PKEY_RSA_PSS: return "RSA-PSS"
        case EVP_PKEY_EC: return "ECDSA"
        case EVP_PKEY_ED25519: return "Ed25519"
        case EVP_PKEY_ED448: return "Ed448"
        case EVP_PKEY_DSA: return "DSA"
        default: return "other"
        }
    }

    /// The length of its key; 0 if it has none that is known.
    var keyBits: Int { unsafe X509_get0_pubkey(pointer).map { unsafe Int(EVP_PKEY_get_bits($0)) } ?? 0 }
}
