import COpenSSL
import Foundation

/// One client's connection, in the clear or through TLS. Waits in each call: the server has many such clients.
@safe final class SecureCaller {
    /// What the clients of one measurement have in common.
    @safe final class Context {
        fileprivate let pointer: OpaquePointer

        init() throws {
            guard let made = unsafe SSL_CTX_new(TLS_client_method()) else { throw Problem("OpenSSL has no memory") }
            unsafe pointer = made
            _ = unsafe coalesced_prepare_context(made, TLS1_3_VERSION, 0)
            // What browsers choose on processors with AES.
            _ = unsafe SSL_CTX_set_ciphersuites(made, "TLS_AES_128_GCM_SHA256")
        }

        deinit { unsafe SSL_CTX_free(pointer) }
    }

    /// The session of a connection, for others.
    @safe final class Session {
        fileprivate let pointer: OpaquePointer
        fileprivate init(_ pointer: OpaquePointer) { unsafe self.pointer = pointer }
        deinit { unsafe SSL_SESSION_free(pointer) }
    }

    private let descriptor: Int32
    /// `nil` in the clear.
    private var ssl: OpaquePointer?
    private var input = [UInt8](repeating: 0, count: 64 << 10)

    /// Connects, and does the handshake.
    /// - Parameters:
    ///   - context: `nil`: in the clear.
    ///   - session: the one to resume.
    init?(port: Int, _ context: Context?, resuming session: Session? = nil) {
        guard let descriptor = System.connect(port: port) else { return nil }
        self.descriptor = descriptor
        guard let context else { return }
        guard let ssl = unsafe SSL_new(context.pointer) else { return nil }
        unsafe self.ssl = ssl
        _ = unsafe SSL_set_fd(ssl, descriptor)
        if let session { _ = unsafe SSL_set_session(ssl, session.pointer) }
        guard unsafe SSL_connect(ssl) == 1 else { return nil }
    }

    deinit {
        if let ssl = unsafe ssl {
            _ = unsafe SSL_shutdown(ssl)
            unsafe SSL_free(ssl)
        }
        System.close(descriptor)
    }

    var isResumed: Bool {
        guard let ssl = unsafe ssl else { return false }
        return unsafe SSL_session_reused(ssl) == 1
    }

    /// The session by now: with TLS 1.3 it comes behind the handshake, before the first answer.
    var session: Session? {
        guard let ssl = unsafe ssl, let session = unsafe SSL_get1_session(ssl) else { return nil }
        return unsafe Session(session)
    }

    func ask(_ path: String) {
        let request = Array("GET \(path) HTTP/1.1\r\nHost: bench.test\r\n\r\n".utf8)
        if let ssl = unsafe ssl {
            _ = unsafe SSL_write(ssl, request, Int32(request.count))
        } else {
            _ = System.write(descriptor, request)
        }
    }

    /// Reads one answer with a content of so many bytes.
    /// - Returns: whether it came whole, with 200.
    func answer(_ length: Int) -> Bool {
        var (count, end) = (0, 0)
        while true {
            guard let read = read(from: count) else { return false }
            count += read
            if let place = System.find(Array("\r\n\r\n".utf8), in: input.span.extracting(0..<count), from: 0) {
                end = place + 4
                break
            }
        }
        guard String(decoding: input[9..<12], as: UTF8.self) == "200" else { return false }
        var left = length - (count - end)
        while left > 0 {
            guard let read = read(from: 0) else { return false }
            left -= read
        }
        return left == 0
    }

    private func read(from start: Int) -> Int? {
        guard let ssl = unsafe ssl else {
            return System.read(descriptor, into: &input, from: start).flatMap { $0 > 0 ? $0 : nil }
        }
        let room = Int32(input.count - start)
        let count = unsafe input.withUnsafeMutableBytes { unsafe SSL_read(ssl, $0.baseAddress! + start, room) }
        return count > 0 ? Int(count) : nil
    }
}
