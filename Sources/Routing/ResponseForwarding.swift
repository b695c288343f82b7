public import Bytes
public import HTTPSemantics

/// The fields that the proxy adds to every response (RFC 9110 §7.6.3, RFC 9211). Immutable settings.
public final class ResponseForwarding: Sendable {
    /// `Via: 1.1 name` with its CRLF; empty for none. The version is the one that the proxy uses to origins.
    public let via: ByteSlice
    /// Writes `Cache-Status`; `nil`: off.
    public let cacheStatus: CacheStatusWriter?
    /// The added fields of a hit: all of them, or all up to the seconds of its `Cache-Status`.
    @usableFromInline let hitText: ByteSlice
    @usableFromInline let sendsTimeToLive: Bool

    init(via: ByteSlice, cacheStatus: CacheStatusWriter?) {
        self.via = via
        self.cacheStatus = cacheStatus
        let text = ByteBuffer(capacity: 128)
        text.append(via)
        cacheStatus?.writeHitStart(to: text)
        hitText = text.copied()
        sendsTimeToLive = cacheStatus != nil
    }

    /// Appends `Via` and `Cache-Status` for a fresh hit. `timeToLive` in seconds.
    @inlinable @inline(__always)
    public func appendHit(timeToLive: UInt32, to buffer: ByteBuffer) {
        buffer.append(hitText)
        guard sendsTimeToLive else { return }
        buffer.append(decimal: UInt64(timeToLive))
        buffer.append("\r\n")
    }

    /// Appends `Connection` where the version does not imply it (RFC 9112 §9.3).
    public func appendConnection(to buffer: ByteBuffer, persists: Bool, version: HTTPVersion) {
        switch version {
        case .http11: if !persists { buffer.append("Connection: close\r\n") }
        case .http10: if persists { buffer.append("Connection: keep-alive\r\n") }
        // RFC 9113 §8.2.2.
        case .http2: break
        }
    }
}
