import Bytes
import COpenSSL
public import Libevent

/// The TLS of one connection, from the handshake on, in OpenSSL. The bytes on the wire pass through a `coalesced_wire`.
///
/// Owned by one socket at a time, on the loop's thread. OpenSSL reads and writes the socket itself; the wire keeps the
/// bytes that the kernel does not take, so that OpenSSL never asks for a repeated write. The plain bytes of that rest
/// count as not written until the kernel has taken it: `owed` of them, which the owner offers again and which are then
/// skipped.
///
/// ```
/// shaking ─advance→ shaking │ open │ failed
/// open ─endStream→ ended (reads on) ;  any ─a failure→ failed
/// ```
@safe public final class TLSStream: SecureLayer {
    private enum State { case shaking, open, ended, failed }

    /// The state of a handshake after the bytes that have arrived.
    public enum Progress: Equatable, Sendable {
        /// Bytes of the peer are awaited.
        case needsBytes
        /// The peer takes no bytes at present: go on when the socket is writable.
        case needsRoom
        case done
        case failed(TLSFailure)
    }

    let ssl: OpaquePointer
    private let wire: UnsafeMutablePointer<coalesced_wire>
    private var state = State.shaking
    /// Plain bytes that are encrypted and wait in the wire's rest.
    private var owed = 0
    /// Whether the last read ended because its memory was full.
    private var mayHoldBytes = false
    #if DEBUG
        /// The bytes that are owed, to show that the owner offers the same ones again.
        private var owedBytes: [UInt8] = []
    #endif
    /// The context, which the callbacks of OpenSSL use.
    private let owner: AnyObject
    /// Where the sessions are kept that the server gives; at the origin's side only.
    let sessions: SessionSlot?
    /// Why `receive` failed, in words; `nil` before. An alert of the peer may come after the handshake, as for a
    /// certificate of ours that it refuses (RFC 8446 §4.4.2.4).
    public private(set) var failure: TLSFailure?

    /// Takes over `ssl`, whose role is set.
    /// - Returns: `nil` if memory is short; `ssl` is freed.
    init?(
        adopting ssl: OpaquePointer, _ method: OpaquePointer, onDescriptor descriptor: Int32,
        early: ByteBuffer? = nil, of owner: AnyObject, sessions: SessionSlot? = nil
    ) {
        guard let wire = unsafe coalesced_wire_new(ssl, method, descriptor) else {
            unsafe SSL_free(ssl)
            return nil
        }
        if let early {
            let isKept = unsafe early.span.withUnsafeBytes {
                unsafe coalesced_wire_put_back(wire, $0.baseAddress, $0.count)
            }
            guard isKept == 1 else {
                unsafe SSL_free(ssl)
                unsafe coalesced_wire_free(wire)
                return nil
            }
        }
        unsafe (self.ssl, self.wire) = (ssl, wire)
        self.owner = owner
        self.sessions = sessions
        super.init()
    }

    deinit {
        unsafe SSL_free(ssl)
        unsafe coalesced_wire_free(wire)
    }

    // MARK: The handshake

    /// Goes on with the handshake as far as the bytes that have arrived lead. Takes up to about a millisecond.
    public func advance() -> Progress {
        guard state == .shaking else { return state == .open ? .done : .failed(TLSFailure(.cut, "it has ended")) }
        OpenSSLErrors.forgetFormer()
        guard unsafe coalesced_wire_flush(wire) == 1 || wire.pointee.write_error == 0 else { return fail(-1) }
        unsafe wire.pointee.reads = Self.mostReads
        let result = unsafe SSL_do_handshake(ssl)
        if result == 1 {
            // The peer waits for the last bytes of ours.
            guard unsafe coalesced_wire_rest(wire) == 0 else { return .needsRoom }
            state = .open
            return .done
        }
        switch unsafe SSL_get_error(ssl, result) {
        case SSL_ERROR_WANT_READ: return unsafe coalesced_wire_rest(wire) > 0 ? .needsRoom : .needsBytes
        default: return fail(result)
        }
    }

    private func fail(_ result: Int32) -> Progress {
        let failure = failure(result)
        state = .failed
        return .failed(failure)
    }

    private func failure(_ result: Int32) -> TLSFailure {
        let code = OpenSSLErrors.takeFirst()
        // Alerts of the peer have the reasons from 1000 on. Its word explains why it took no more bytes.
        if coalesced_library(code) == ERR_LIB_SSL, coalesced_reason(code) >= SSL_AD_REASON_OFFSET {
            return TLSFailure(.alert, OpenSSLErrors.text(code))
        }
        let (readError, writeError) = unsafe (wire.pointee.read_error, wire.pointee.write_error)
        if readError != 0 { return TLSFailure(.cut, SystemError(.receive, code: readError).message) }
        if writeError != 0 { return TLSFailure(.cut, SystemError(.send, code: writeError).message) }
        if unsafe wire.pointee.has_ended != 0 { return TLSFailure(.cut, "the connection ended in the handshake") }
        guard coalesced_library(code) == ERR_LIB_SSL else {
            return TLSFailure(
                coalesced_reason(code) == ERR_R_MALLOC_FAILURE ? .shortage : .protocolError, OpenSSLErrors.text(code))
        }
        let reason = coalesced_reason(code)
        if reason == SSL_R_CERTIFICATE_VERIFY_FAILED {
            let verdict = unsafe SSL_get_verify_result(ssl)
            let text = unsafe X509_verify_cert_error_string(verdict).map { unsafe String(cString: $0) }
            return TLSFailure(.certificate, text ?? "the certificate is refused")
        }
        if reason == SSL_R_PEER_DID_NOT_RETURN_A_CERTIFICATE {
            return TLSFailure(.certificate, "the client has sent no certificate")
        }
        if reason == ERR_R_MALLOC_FAILURE { return TLSFailure(.shortage, "memory is short") }
        return TLSFailure(.protocolError, OpenSSLErrors.text(code))
    }

    /// Whether the handshake is done.
    public var isOpen: Bool { state == .open }

    // MARK: Bytes

    override public func receive(_ memory: UnsafeMutableRawBufferPointer) -> ReadResult {
        guard state == .open || state == .ended, let start = memory.baseAddress else { return .failed(broken) }
        if unsafe coalesced_wire_rest(wire) > 0 { unsafe coalesced_wire_flush(wire) }
        var received = 0
        mayHoldBytes = false
        while true {
            var count = 0
            OpenSSLErrors.forgetFormer()
            unsafe wire.pointee.reads = Self.mostReads
            let result = unsafe SSL_read_ex(ssl, start + received, memory.count - received, &count)
            received += count
            if result == 1 {
                if received == memory.count {
                    mayHoldBytes = unsafe SSL_has_pending(ssl) == 1
                    return .bytes(received)
                }
                // The loop reports the bytes that the kernel still has.
                guard unsafe SSL_has_pending(ssl) == 1 else { return .bytes(received) }
                continue
            }
            let error = unsafe SSL_get_error(ssl, result)
            if error == SSL_ERROR_WANT_READ { return received > 0 ? .bytes(received) : .wouldBlock }
            if received > 0 {
                // The bytes come first; the next read reports the end, or the failure.
                mayHoldBytes = true
                OpenSSLErrors.forget()
                return .bytes(received)
            }
            if error == SSL_ERROR_ZERO_RETURN { return .endOfStream }
            failure = failure(result)
            state = .failed
            return .failed(broken)
        }
    }

    /// The error of the system call, or `.cut`: without the peer's close_notify, the end of the connection does not end
    /// the stream.
    private var broken: SystemError {
        let (readError, writeError) = unsafe (wire.pointee.read_error, wire.pointee.write_error)
        if readError != 0 { return SystemError(.receive, code: readError) }
        // Behind the end of the connection OpenSSL sends an alert, which fails.
        if unsafe wire.pointee.has_ended != 0 { return .cut }
        return writeError != 0 ? SystemError(.send, code: writeError) : .cut
    }

    override public func send(_ bytes: UnsafeRawBufferPointer) -> WriteResult {
        guard state == .open else { return .failed(broken) }
        guard unsafe coalesced_wire_flush(wire) == 1 else {
            return unsafe wire.pointee.write_error != 0 ? .failed(broken) : .wouldBlock
        }
        var sent = min(owed, bytes.count)
        unsafe settle(UnsafeRawBufferPointer(rebasing: bytes.prefix(sent)))
        while sent < bytes.count {
            let count = min(bytes.count - sent, Self.mostOfRecord)
            let part = unsafe UnsafeRawBufferPointer(rebasing: bytes[sent..<sent + count])
            var written = 0
            unsafe wire.pointee.more_follows = sent + count < bytes.count ? 1 : 0
            defer { unsafe wire.pointee.more_follows = 0 }
            OpenSSLErrors.forgetFormer()
            guard unsafe SSL_write_ex(ssl, part.baseAddress, count, &written) == 1, written == count else {
                OpenSSLErrors.forget()
                // The bytes that the peer sent before it closed can still be read.
                state = unsafe wire.pointee.write_error != 0 ? .ended : .failed
                // The count of bytes sent before is returned first; the next call fails.
                return sent > 0 ? .wrote(sent) : .failed(broken)
            }
            if unsafe coalesced_wire_rest(wire) > 0 {
                unsafe owe(part)
                break
            }
            sent += count
        }
        return unsafe sent > 0 || bytes.isEmpty ? .wrote(sent) : .wouldBlock
    }

    private func owe(_ bytes: UnsafeRawBufferPointer) {
        owed = bytes.count
        #if DEBUG
            owedBytes = unsafe Array(bytes)
        #endif
    }

    private func settle(_ bytes: UnsafeRawBufferPointer) {
        guard owed > 0 else { return }
        owed -= bytes.count
        #if DEBUG
            assert(unsafe owedBytes.starts(with: bytes), "other bytes follow than those that were encrypted")
            owedBytes.removeFirst(bytes.count)
        #endif
    }

    private static let mostOfRecord = 16 << 10
    private static let mostReads = Int32(coalesced_most_reads)

    override public var holdsBytes: Bool {
        mayHoldBytes && (state == .open || state == .ended)
    }

    override public var isSilent: Bool {
        guard state == .open else { return false }
        // Session tickets and key updates are no bytes of the stream, so OpenSSL must look.
        var (byte, count): (UInt8, Int) = (0, 0)
        OpenSSLErrors.forgetFormer()
        unsafe wire.pointee.reads = Self.mostReads
        let result = unsafe SSL_peek_ex(ssl, &byte, 1, &count)
        if result == 1 { mayHoldBytes = true }
        // A peer that used up the reads with records of any kind is not silent.
        let isSilent =
            unsafe result == 0 && SSL_get_error(ssl, result) == SSL_ERROR_WANT_READ && wire.pointee.reads > 0
        OpenSSLErrors.forget()
        return isSilent
    }

    override public func endStream() -> Bool {
        guard state == .open || state == .ended else { return true }
        if state == .open {
            guard unsafe coalesced_wire_flush(wire) == 1 else { return unsafe wire.pointee.write_error != 0 }
            state = .ended
            _ = unsafe SSL_shutdown(ssl)
            OpenSSLErrors.forget()
        }
        return unsafe coalesced_wire_flush(wire) == 1 || wire.pointee.write_error != 0
    }

    // MARK: What was agreed on

    /// Whether the version is 1.3; otherwise it is 1.2.
    public var isTLS13: Bool { unsafe SSL_version(ssl) == TLS1_3_VERSION }

    /// Whether both sides have agreed on HTTP/2 by ALPN.
    public var agreesOnHTTP2: Bool {
        var (name, count): (UnsafePointer<UInt8>?, UInt32) = (nil, 0)
        unsafe SSL_get0_alpn_selected(ssl, &name, &count)
        return unsafe count == 2 && name?[0] == UInt8(ascii: "h") && name?[1] == UInt8(ascii: "2")
    }

    /// `TLSv1.3` or `TLSv1.2`.
    public var version: StaticString { isTLS13 ? "TLSv1.3" : "TLSv1.2" }

    /// Whether an earlier session was resumed.
    public var isResumed: Bool { unsafe SSL_session_reused(ssl) == 1 }

    /// The cipher, in the words of the IANA, such as `TLS_AES_256_GCM_SHA384`.
    public var cipher: String {
        guard let cipher = unsafe SSL_get_current_cipher(ssl), let name = unsafe SSL_CIPHER_standard_name(cipher) else {
            return "none"
        }
        return unsafe String(cString: name)
    }

    /// The name that the client asked for (SNI), as it wrote it; `nil` without one.
    public var serverName: String? {
        unsafe SSL_get_servername(ssl, TLSEXT_NAMETYPE_host_name).map { unsafe String(cString: $0) }
    }

    /// The subject of the client's certificate, as RFC 2253 writes it; `nil` without one.
    public var peerSubject: String? {
        guard let certificate = unsafe SSL_get1_peer_certificate(ssl) else { return nil }
        return unsafe Certificate(adopting: certificate).subject
    }
}

extension OpenSSLErrors {
    /// Empties the queue.
    static func forget() { ERR_clear_error() }

    /// Empties the queue, if it has anything, so that the next call's error is its own. To empty it in any case takes
    /// 400 instructions.
    @inline(__always)
    static func forgetFormer() {
        if ERR_peek_error() != 0 { ERR_clear_error() }
    }
}
