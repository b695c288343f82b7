public import Bytes
import COpenSSL
import Libevent

/// Whether clients of a listener show certificates of their own.
public enum ClientCertificates: String, Sendable, Hashable, CaseIterable {
    /// They are not asked.
    case off
    /// They are asked, and may refuse. A certificate that is shown must be good.
    case offered
    /// A handshake without a good one fails.
    case required
}

/// The settings and files of TLS for all listeners. Immutable; any thread.
public struct TLSServerSettings: Sendable {
    /// The certificates; the first one is for clients that ask for no name, or for an unknown one.
    public var identities: [TLSIdentity] = []
    public var minimumVersion = TLSVersion.tls12
    /// Whether a handshake that asks for an unknown name fails.
    public var refusesUnknownNames = false
    /// The authorities of clients' certificates.
    public var clientAuthorities: TLSAuthorities?
    /// One object for all loops, and over reloads that change no key file.
    public var ticketKeys = TicketKeys()
    /// The protocols offered by ALPN, the best one first.
    public var protocols = ["http/1.1"]

    public init() {}
}

/// The server's side of TLS on one loop: makes the `TLSStream` of each connection, and chooses the certificate.
///
/// OpenSSL takes locks in a context, so each loop has contexts of its own. Immutable: it may be made on another thread.
@safe public final class TLSServer: Sendable {
    /// For connections before their name is known.
    private let context: Context
    /// The context for each exact name, and for each name behind a `*.`, in lower case.
    private let exact: [String: Context]
    private let wildcards: [String: Context]
    private let settings: TLSServerSettings
    /// `http/1.1` and so on, each behind a byte with its length.
    private let protocols: [UInt8]
    /// Of the clients' authorities: a session is over when they change.
    private let authoritiesDigest: [UInt8]

    /// - Throws: if a certificate or a key is damaged, or they do not belong together.
    public init(_ settings: TLSServerSettings) throws(TLSSettingsError) {
        self.settings = settings
        protocols = settings.protocols.flatMap { [UInt8(truncatingIfNeeded: $0.utf8.count)] + Array($0.utf8) }
        authoritiesDigest = settings.clientAuthorities?.digest ?? []
        // Identities that are valid for the same names, such as one with an ECDSA and one with an RSA key, share a context.
        var contexts: [[String]: Context] = [:]
        var first: Context?
        var exact: [String: Context] = [:]
        var wildcards: [String: Context] = [:]
        for identity in settings.identities {
            let names = try identity.chain()[0].names.sorted()
            let context: Context
            if let former = contexts[names] { context = former } else { context = try Self.context(settings) }
            contexts[names] = context
            try context.use(identity)
            first = first ?? context
            for name in names {
                if name.hasPrefix("*.") {
                    // The first one in the settings counts.
                    if wildcards[String(name.dropFirst(2))] == nil { wildcards[String(name.dropFirst(2))] = context }
                } else if exact[name] == nil {
                    exact[name] = context
                }
            }
        }
        guard let first else {
            throw TLSSettingsError(file: "", "a TLS listener needs a certificate; name one in tls.certificates")
        }
        context = first
        (self.exact, self.wildcards) = (exact, wildcards)
        for context in contexts.values { install(in: context) }
    }

    private static func context(_ settings: TLSServerSettings) throws(TLSSettingsError) -> Context {
        let made = try unsafe Context(TLS_server_method(), minimumVersion: settings.minimumVersion)
        _ = unsafe coalesced_set_automatic_dh(made.pointer)
        _ = unsafe SSL_CTX_set_timeout(made.pointer, Int(TicketKeys.period))
        // One ticket for each connection: a browser's connections give one each.
        _ = unsafe SSL_CTX_set_num_tickets(made.pointer, 1)
        if let authorities = settings.clientAuthorities {
            made.believe(authorities)
            try authorities.announce(in: made)
        }
        return made
    }

    /// Gives the callbacks this object, which outlives every connection: each `TLSStream` holds it.
    private func install(in context: Context) {
        let context = unsafe context.pointer
        let own = unsafe Unmanaged.passUnretained(self).toOpaque()
        _ = unsafe SSL_CTX_set_ex_data(context, 0, own)
        unsafe SSL_CTX_set_client_hello_cb(
            context,
            { ssl, alert, own in
                guard let ssl = unsafe ssl, let own = unsafe own else { return SSL_CLIENT_HELLO_ERROR }
                let server = unsafe Unmanaged<TLSServer>.fromOpaque(own).takeUnretainedValue()
                return unsafe server.chooseCertificate(for: ssl, alert)
            }, own)
        unsafe coalesced_acknowledge_names(context)
        unsafe SSL_CTX_set_alpn_select_cb(
            context,
            { ssl, chosen, count, offered, offeredCount, own in
                guard let ssl = unsafe ssl, let own = unsafe own else { return SSL_TLSEXT_ERR_NOACK }
                let server = unsafe Unmanaged<TLSServer>.fromOpaque(own).takeUnretainedValue()
                let offer = unsafe UnsafeBufferPointer(start: offered, count: Int(offeredCount))
                guard
                    let range = unsafe server.protocol(
                        among: offer, withoutFirst: SSL_get_ex_data(ssl, 0) != nil)
                else { return SSL_TLSEXT_ERR_ALERT_FATAL }
                // The offer outlives the callback, as OpenSSL's own selection relies on.
                unsafe chosen?.pointee = unsafe offered?.advanced(by: range.lowerBound)
                unsafe count?.pointee = UInt8(range.count)
                return SSL_TLSEXT_ERR_OK
            }, own)
        _ = unsafe coalesced_ticket_keys(context) { ssl, name, vector, cipher, code, isForNewTicket in
            unsafe TLSServer.ticketKey(ssl, name, vector, cipher, code, isForNewTicket == 1)
        }
        _ = unsafe coalesced_check_tickets(context)
    }

    /// Begins the handshake of a connection; `nil` if memory is short. On the loop.
    /// - Parameters:
    ///   - descriptor: of a connected socket, open as long as the stream is used.
    ///   - offersFirst: whether the first of `TLSServerSettings.protocols` is offered, too.
    ///   - early: bytes that were read from it before.
    public func accept(
        onDescriptor descriptor: Int32, _ certificates: ClientCertificates, offersFirst: Bool = true,
        early: ByteBuffer? = nil
    ) -> TLSStream? {
        guard let ssl = unsafe SSL_new(context.pointer), let method = unsafe OpenSSL.method else { return nil }
        unsafe SSL_set_accept_state(ssl)
        let mode =
            switch certificates {
            case .off: SSL_VERIFY_NONE
            case .offered: SSL_VERIFY_PEER
            case .required: SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT
            }
        unsafe SSL_set_verify(ssl, mode, nil)
        // Any pointer: it says that the first protocol is not offered.
        if !offersFirst { unsafe SSL_set_ex_data(ssl, 0, Unmanaged.passUnretained(self).toOpaque()) }
        return unsafe TLSStream(adopting: ssl, method, onDescriptor: descriptor, early: early, of: self)
    }

    // MARK: Callbacks of OpenSSL

    private func chooseCertificate(for ssl: OpaquePointer, _ alert: UnsafeMutablePointer<Int32>?) -> Int32 {
        let name = unsafe Self.serverName(in: ssl)
        var chosen = context
        if let name {
            if let known = self.context(for: name) {
                chosen = known
            } else if settings.refusesUnknownNames {
                unsafe alert?.pointee = SSL_AD_UNRECOGNIZED_NAME
                return SSL_CLIENT_HELLO_ERROR
            }
        }
        unsafe setSessionContext(of: ssl, for: name)
        if chosen !== context { unsafe SSL_set_SSL_CTX(ssl, chosen.pointer) }
        return SSL_CLIENT_HELLO_SUCCESS
    }

    /// A session is resumed only for the same name, the same rule about client certificates and the same authorities: a
    /// certificate that a client has shown for one host says nothing to another host.
    private func setSessionContext(of ssl: OpaquePointer, for name: String?) {
        var text = Array((name ?? "").utf8)
        text.append(0)
        let mode = unsafe SSL_get_verify_mode(ssl)
        text.append(UInt8(truncatingIfNeeded: mode))
        if mode != SSL_VERIFY_NONE { text += authoritiesDigest }
        var digest = [UInt8](repeating: 0, count: 32)
        var count: UInt32 = 0
        _ = unsafe EVP_Digest(text, text.count, &digest, &count, EVP_sha256(), nil)
        _ = unsafe SSL_set_session_id_context(ssl, digest, 32)
    }

    private func context(for name: String) -> Context? {
        if let found = exact[name] { return found }
        guard let dot = name.firstIndex(of: ".") else { return nil }
        return wildcards[String(name[name.index(after: dot)...])]
    }

    /// Whether some certificate here is valid for `name`, in lower case.
    public func knows(_ name: String) -> Bool { context(for: name) != nil }

    /// The name in the hello (RFC 6066 §3), in lower case; `nil` if there is none, or not of the form that the RFC has.
    private static func serverName(in ssl: OpaquePointer) -> String? {
        var start: UnsafePointer<UInt8>?
        var count = 0
        guard unsafe SSL_client_hello_get0_ext(ssl, UInt32(TLSEXT_TYPE_server_name), &start, &count) == 1 else {
            return nil
        }
        let bytes = unsafe UnsafeBufferPointer(start: start, count: count)
        // The list's length, the kind of its first name, and that name's length.
        guard bytes.count > 5, unsafe bytes[2] == 0 else { return nil }
        let length = unsafe Int(bytes[3]) << 8 | Int(bytes[4])
        guard length > 0, length <= 255, bytes.count >= 5 + length else { return nil }
        let name = unsafe bytes[5..<5 + length]
        guard unsafe !name.contains(0) else { return nil }
        return unsafe String(decoding: name, as: UTF8.self).lowercased()
    }

    /// The best of our protocols that the client offers.
    private func `protocol`(among offer: UnsafeBufferPointer<UInt8>, withoutFirst: Bool) -> Range<Int>? {
        var own = protocols[...]
        if withoutFirst, let length = own.first { own = own.dropFirst(1 + Int(length)) }
        while let length = own.first {
            let wanted = own.dropFirst().prefix(Int(length))
            var index = 0
            while index < offer.count {
                let range = unsafe index + 1..<min(offer.count, index + 1 + Int(offer[index]))
                if unsafe offer[range].elementsEqual(wanted) { return range }
                index = range.upperBound
            }
            own = own.dropFirst(1 + Int(length))
        }
        return nil
    }

    /// - Returns: 1; 2 if the ticket is good but a new one is due; 0 if its key is unknown; -1 after an error.
    private static func ticketKey(
        _ ssl: OpaquePointer?, _ name: UnsafeMutablePointer<UInt8>?, _ vector: UnsafeMutablePointer<UInt8>?,
        _ cipher: OpaquePointer?, _ code: OpaquePointer?, _ isForNewTicket: Bool
    ) -> Int32 {
        guard let ssl = unsafe ssl, let name = unsafe name, let vector = unsafe vector, let cipher = unsafe cipher,
            let code = unsafe code, let own = unsafe SSL_CTX_get_ex_data(SSL_get_SSL_CTX(ssl), 0)
        else { return -1 }
        let server = unsafe Unmanaged<TLSServer>.fromOpaque(own).takeUnretainedValue()
        let (keys, now) = (server.settings.ticketKeys, TicketKeys.clock)
        guard isForNewTicket else {
            let asked = unsafe Array(UnsafeBufferPointer(start: name, count: 16))
            guard let found = keys.key(named: asked, at: now) else { return 0 }
            var codeKey = found.key.code
            guard unsafe coalesced_set_ticket_code(code, &codeKey, codeKey.count) == 1,
                unsafe EVP_DecryptInit_ex(cipher, EVP_aes_256_cbc(), nil, found.key.cipher, vector) == 1
            else { return -1 }
            // With TLS 1.3 a client uses a ticket once (RFC 8446 §C.4), so it needs another one.
            return unsafe found.isOld || SSL_version(ssl) == TLS1_3_VERSION ? 2 : 1
        }
        guard let key = keys.current(at: now), unsafe RAND_bytes(vector, 16) == 1 else { return -1 }
        unsafe name.update(from: key.name, count: 16)
        var codeKey = key.code
        guard unsafe coalesced_set_ticket_code(code, &codeKey, codeKey.count) == 1,
            unsafe EVP_EncryptInit_ex(cipher, EVP_aes_256_cbc(), nil, key.cipher, vector) == 1
        else { return -1 }
        return 1
    }
}
