import Bytes
import COpenSSL

extension TLSIdentity {
    /// A certificate that has signed itself, with a key of its own (ECDSA, P-256), in memory: for a demonstration, and
    /// for tests. Its files have no path.
    /// - Parameters:
    ///   - names: for which it is valid, at least one: hosts, and addresses in their usual form.
    ///   - days: for which it is valid from now on.
    /// - Throws: if OpenSSL refuses a name, or memory is short.
    public static func selfSigned(names: [String], days: Int = 30) throws(TLSSettingsError) -> TLSIdentity {
        let alternatives = names.map { ($0.contains(":") || $0.allSatisfy(Self.isPartOfAddress) ? "IP:" : "DNS:") + $0 }
            .joined(separator: ",")
        guard let certificate = unsafe BIO_new(BIO_s_mem()) else { throw OpenSSL.shortage }
        defer { unsafe BIO_free(certificate) }
        guard let key = unsafe BIO_new(BIO_s_mem()) else { throw OpenSSL.shortage }
        defer { unsafe BIO_free(key) }
        guard unsafe coalesced_self_signed(names.first ?? "", alternatives, days, certificate, key) == 1 else {
            throw TLSSettingsError(file: "", "no certificate can be made: \(OpenSSLErrors.takeText())")
        }
        return unsafe TLSIdentity(
            certificate: Self.file("self-signed certificate", certificate), key: Self.file("self-signed key", key))
    }

    private static func isPartOfAddress(_ character: Character) -> Bool { "0123456789.".contains(character) }

    private static func file(_ name: String, _ memory: OpaquePointer) -> NamedFile {
        var start: UnsafePointer<CChar>?
        let count = unsafe coalesced_memory_bytes(memory, &start)
        var file = NamedFile(path: name)
        let bytes = unsafe Array(UnsafeRawBufferPointer(start: start, count: count))
        file.content = ByteSlice(copying: bytes.span)
        return file
    }
}
