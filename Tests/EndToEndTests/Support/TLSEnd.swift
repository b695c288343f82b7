import CertificateMaking
import COpenSSL
import Glibc
import TLS

/// One end of a TLS connection, without a socket: encrypted bytes go in and out of memory, so that a test may cut, delay
/// and split them. Confined to one thread at a time.
@safe final class TLSEnd {
    enum Side { case client, server }

    /// What a client's handshake has beside the authority of the tests.
    struct Offer: Sendable {
        /// SNI.
        var name: String?
        /// `TLS1_2_VERSION` for that one at most.
        var maximumVersion: Int32 = TLS1_3_VERSION
        /// Its own certificate.
        var identity: TLSIdentity?
        /// ALPN.
        var protocols: [String] = []
    }

    enum Outcome: Equatable {
        case done
        case needsBytes
        case failed
    }

    private let ssl: OpaquePointer
    /// Owned by `ssl`.
    private let incoming: OpaquePointer
    private let outgoing: OpaquePointer

    init(_ side: Side, _ offer: Offer = Offer()) {
        guard let ssl = unsafe SSL_new(side == .client ? Contexts.client : Contexts.server),
            let incoming = unsafe BIO_new(BIO_s_mem()), let outgoing = unsafe BIO_new(BIO_s_mem())
        else { fatalError("memory is short") }
        unsafe (self.ssl, self.incoming, self.outgoing) = (ssl, incoming, outgoing)
        unsafe SSL_set_bio(ssl, incoming, outgoing)
        switch side {
        case .client: unsafe SSL_set_connect_state(ssl)
        case .server: unsafe SSL_set_accept_state(ssl)
        }
        _ = unsafe SSL_ctrl(ssl, SSL_CTRL_SET_MAX_PROTO_VERSION, Int(offer.maximumVersion), nil)
        if let name = offer.name { _ = unsafe coalesced_set_server_name(ssl, name) }
        let protocols = offer.protocols.flatMap { [UInt8($0.utf8.count)] + Array($0.utf8) }
        if !protocols.isEmpty { _ = unsafe SSL_set_alpn_protos(ssl, protocols, UInt32(protocols.count)) }
        if let identity = offer.identity {
            unsafe SSL_use_certificate(ssl, PEM.certificate(identity.certificate.text))
            unsafe SSL_use_PrivateKey(ssl, PEM.key(identity.key.text))
        }
    }

    deinit { unsafe SSL_free(ssl) }

    // MARK: - Encrypted bytes

    /// Bytes of the other end.
    func give(_ bytes: ArraySlice<UInt8>) {
        unsafe bytes.withUnsafeBytes { _ = unsafe BIO_write(incoming, $0.baseAddress, Int32($0.count)) }
    }

    /// Bytes for the other end.
    func takeOutgoing() -> [UInt8] {
        var all: [UInt8] = []
        var piece = [UInt8](repeating: 0, count: 32 << 10)
        while unsafe BIO_ctrl_pending(outgoing) > 0 {
            let count = unsafe BIO_read(outgoing, &piece, Int32(piece.count))
            guard count > 0 else { break }
            all += piece[..<Int(count)]
        }
        return all
    }

    // MARK: - Plain bytes

    func shake() -> Outcome {
        ERR_clear_error()
        let result = unsafe SSL_do_handshake(ssl)
        if result == 1 { return .done }
        return unsafe SSL_get_error(ssl, result) == SSL_ERROR_WANT_READ ? .needsBytes : .failed
    }

    enum ReadOutcome: Equatable {
        case bytes(Int)
        case needsBytes
        case ended
        case failed
    }

    func read(into memory: UnsafeMutableRawBufferPointer) -> ReadOutcome {
        var count = 0
        ERR_clear_error()
        let result = unsafe SSL_read_ex(ssl, memory.baseAddress, memory.count, &count)
        if result == 1 { return .bytes(count) }
        switch unsafe SSL_get_error(ssl, result) {
        case SSL_ERROR_WANT_READ: return .needsBytes
        case SSL_ERROR_ZERO_RETURN: return .ended
        default: return .failed
        }
    }

    /// Encrypts all of `bytes`; false after an error.
    func write(_ bytes: ArraySlice<UInt8>) -> Bool {
        ERR_clear_error()
        return unsafe bytes.withUnsafeBytes {
            var count = 0
            return unsafe SSL_write_ex(ssl, $0.baseAddress, $0.count, &count) == 1
        }
    }

    /// Says that no more bytes follow (close_notify).
    func sayEnd() {
        _ = unsafe SSL_shutdown(ssl)
        ERR_clear_error()
    }

    /// TLS 1.3: new keys for what is sent from now on.
    /// - Parameter asksBack: whether the other end is to do the same.
    func updateKeys(asksBack: Bool) {
        let kind = asksBack ? SSL_KEY_UPDATE_REQUESTED : SSL_KEY_UPDATE_NOT_REQUESTED
        _ = unsafe SSL_key_update(ssl, kind)
        _ = unsafe SSL_do_handshake(ssl)
        ERR_clear_error()
    }

    // MARK: - Contexts

    /// Made once; any thread.
    @safe private enum Contexts {
        nonisolated(unsafe) static let client: OpaquePointer = {
            guard let context = unsafe SSL_CTX_new(TLS_client_method()) else { fatalError("memory is short") }
            unsafe SSL_CTX_set_verify(context, SSL_VERIFY_PEER, nil)
            let authority = unsafe PEM.certificate(TestIdentity.authorityText)
            unsafe X509_STORE_add_cert(SSL_CTX_get_cert_store(context), authority)
            return unsafe context
        }()

        nonisolated(unsafe) static let server: OpaquePointer = {
            guard let context = unsafe SSL_CTX_new(TLS_server_method()) else { fatalError("memory is short") }
            let identity = TestIdentity.ofOrigins
            unsafe SSL_CTX_use_certificate(context, PEM.certificate(identity.certificate.text))
            let result = unsafe SSL_CTX_use_PrivateKey(context, PEM.key(identity.key.text))
            precondition(result == 1)
            return unsafe context
        }()
    }

    @safe private enum PEM {
        static func certificate(_ text: String) -> OpaquePointer? {
            unsafe reading(text) { unsafe PEM_read_bio_X509($0, nil, nil, nil) }
        }

        static func key(_ text: String) -> OpaquePointer? {
            unsafe reading(text) { unsafe PEM_read_bio_PrivateKey($0, nil, nil, nil) }
        }

        private static func reading(_ text: String, _ read: (OpaquePointer?) -> OpaquePointer?) -> OpaquePointer? {
            let bytes = Array(text.utf8)
            return unsafe bytes.withUnsafeBytes {
                let memory = unsafe coalesced_memory($0.baseAddress, $0.count)
                defer { unsafe BIO_free(memory) }
                return unsafe read(memory)
            }
        }
    }
}
