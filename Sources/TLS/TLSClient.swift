import COpenSSL
import Libevent

/// The authorities that this program believes as a client, and the certificate that it shows. Immutable; any thread.
public struct TLSClientSettings: Sendable {
    /// The authorities; `nil`: every certificate is believed, and names are not compared (`verify: off`).
    public var authorities: TLSAuthorities?
    /// The certificate that is shown if a server asks for one.
    public var identity: TLSIdentity?
    public var minimumVersion = TLSVersion.tls12

    public init(authorities: TLSAuthorities?) { self.authorities = authorities }
}

/// The session of the last connection to one server, by which the next handshake is shorter. On one loop.
@safe public final class SessionSlot {
    private var session: OpaquePointer?

    public init() {}

    deinit { unsafe SSL_SESSION_free(session) }

    /// Takes over a reference.
    func keep(_ new: OpaquePointer) {
        unsafe SSL_SESSION_free(session)
        unsafe session = new
    }

    /// Offers the session in a handshake. A session of TLS 1.3 is offered once (RFC 8446 §C.4).
    func offer(in ssl: OpaquePointer) {
        guard let offered = unsafe session else { return }
        _ = unsafe SSL_set_session(ssl, offered)
        guard unsafe SSL_SESSION_get_protocol_version(offered) >= TLS1_3_VERSION else { return }
        unsafe SSL_SESSION_free(offered)
        unsafe session = nil
    }
}

/// The client's side of TLS on one loop.
@safe public final class TLSClient {
    private let context: Context
    private let settings: TLSClientSettings

    /// - Throws: if memory is short, or the own certificate is damaged.
    public init(_ settings: TLSClientSettings) throws(TLSSettingsError) {
        self.settings = settings
        context = try unsafe Context(TLS_client_method(), minimumVersion: settings.minimumVersion)
        unsafe coalesced_keep_sessions(context.pointer) { ssl, session in
            guard let ssl = unsafe ssl, let session = unsafe session, let data = unsafe SSL_get_ex_data(ssl, 0) else {
                return 0
            }
            let slot = unsafe Unmanaged<SessionSlot>.fromOpaque(data).takeUnretainedValue()
            unsafe slot.keep(session)
            // The reference is the slot's now.
            return 1
        }
        if let authorities = settings.authorities { context.believe(authorities) }
        let mode = settings.authorities == nil ? SSL_VERIFY_NONE : SSL_VERIFY_PEER
        unsafe SSL_CTX_set_verify(context.pointer, mode, nil)
        if let identity = settings.identity { try context.use(identity) }
    }

    /// Begins the handshake with a server; `nil` if memory is short. On the loop.
    /// - Parameters:
    ///   - descriptor: of a connected socket, open as long as the stream is used.
    ///   - name: the name that the certificate must have: a host name, which is also asked for (SNI), or an address;
    ///     `nil` only if exact certificates are believed, or every one.
    ///   - sessions: of this server under this name; outlives the stream, which holds it.
    ///   - protocols: offered by ALPN, the best one first; none without any.
    public func connect(
        onDescriptor descriptor: Int32, to name: String?, sessions: SessionSlot, protocols: [String] = []
    ) -> TLSStream? {
        guard let ssl = unsafe SSL_new(context.pointer), let method = unsafe OpenSSL.method else { return nil }
        unsafe SSL_set_connect_state(ssl)
        let isAddress = name.map { IPAddress($0.utf8Span.span) != nil } ?? false
        if let name, !isAddress { _ = unsafe coalesced_set_server_name(ssl, name) }
        if let authorities = settings.authorities, !authorities.isExact {
            var isSet: Int32 = 0
            if let name {
                isSet =
                    unsafe isAddress
                    ? X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl), name) : SSL_set1_host(ssl, name)
            }
            // Without a name every certificate of the authorities would do.
            guard isSet == 1 else {
                unsafe SSL_free(ssl)
                OpenSSLErrors.forget()
                return nil
            }
            unsafe SSL_set_hostflags(ssl, UInt32(X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS))
        }
        let offer = protocols.flatMap { [UInt8(truncatingIfNeeded: $0.utf8.count)] + Array($0.utf8) }
        if !offer.isEmpty { _ = unsafe SSL_set_alpn_protos(ssl, offer, UInt32(offer.count)) }
        unsafe sessions.offer(in: ssl)
        _ = unsafe SSL_set_ex_data(ssl, 0, Unmanaged.passUnretained(sessions).toOpaque())
        return unsafe TLSStream(adopting: ssl, method, onDescriptor: descriptor, of: self, sessions: sessions)
    }
}
