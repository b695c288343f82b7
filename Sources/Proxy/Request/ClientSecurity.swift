import Bytes
import HTTPSemantics
import TLS
import Telemetry

/// What the handshake of one client connection has agreed on. Immutable, one object for a connection; a connection in
/// the clear has none.
final class ClientSecurity: Sendable {
    /// The version, the cipher and the name, as the access log takes them: a hit makes no text of them.
    let logged: ByteSlice
    /// The name that the client asked for (SNI), in lower case; empty if it named none.
    let serverName: ByteSlice
    /// The subject of the client's certificate (RFC 2253); `nil` without one.
    let subject: ByteSlice?
    /// Whether the rule for client certificates may be another one for other hosts' listeners.
    let asksForCertificates: Bool

    init(_ stream: TLSStream, _ certificates: ClientCertificates) {
        let name = stream.serverName?.lowercased() ?? ""
        logged = AccessLogSecurity.bytes(version: stream.version, cipher: stream.cipher, name: name)
        serverName = logged[logged.count - name.utf8.count..<logged.count]
        asksForCertificates = certificates != .off
        subject = asksForCertificates ? stream.peerSubject.map { Self.fieldValue($0) } : nil
    }

    /// The text with every byte percent-encoded that a field value may not have (RFC 9110 §5.5). RFC 2253 escapes only
    /// what is special in a subject.
    private static func fieldValue(_ text: String) -> ByteSlice {
        let buffer = ByteBuffer(capacity: 128)
        for byte in text.utf8 {
            guard byte < 0x20 || byte >= 0x7f || byte == UInt8(ascii: "%") else {
                buffer.append(byte)
                continue
            }
            buffer.append("%")
            for digit in [byte >> 4, byte & 15] { buffer.append(digit < 10 ? 0x30 + digit : 0x37 + digit) }
        }
        return buffer.copied()
    }

    /// Whether a request for `host` may use this connection. Where client certificates are asked for, the handshake
    /// was for one host: a certificate that it has accepted says nothing to another (RFC 9110 §15.5.20).
    func isFor(_ host: Span<UInt8>) -> Bool {
        guard asksForCertificates, !serverName.isEmpty else { return true }
        let serverName = serverName
        return host.isEqualIgnoringCase(to: serverName.span)
    }
}
