import Bytes
import HTTPSemantics

/// What we add to every response (RFC 9110 §7.6.3, RFC 9211). Immutable settings.
struct ResponseForwarding: Sendable {
    /// `Via: 1.1 name` with its CRLF; empty for none. The version is the one we speak to origins.
    let via: ByteSlice
    /// `nil` where none is wanted.
    let cacheStatus: CacheStatusWriter?

    func append(to buffer: ByteBuffer, _ provenance: Provenance, persists: Bool, version: HTTPVersion) {
        buffer.append(via)
        if let cacheStatus, let status = provenance.cacheStatus { cacheStatus.write(status, detail: provenance.detail, to: buffer) }
        appendConnection(to: buffer, persists: persists, version: version)
    }

    /// The same for a hit.
    func appendHit(timeToLive: Int64, to buffer: ByteBuffer) {
        buffer.append(via)
        cacheStatus?.writeHit(timeToLive: timeToLive, to: buffer)
    }

    /// Says what the version does not imply (RFC 9112 §9.3).
    func appendConnection(to buffer: ByteBuffer, persists: Bool, version: HTTPVersion) {
        switch version {
        case .http11: if !persists { buffer.append("Connection: close\r\n") }
        case .http10: if persists { buffer.append("Connection: keep-alive\r\n") }
        }
    }
}
