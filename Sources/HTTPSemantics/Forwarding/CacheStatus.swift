public import Bytes

/// Why a request was forwarded (RFC 9211 §2.2). The reason `miss` is omitted: this cache knows whether the URI or the
/// variant was missing.
public enum ForwardReason: UInt8, Sendable, CaseIterable {
    case bypass, method, uriMiss, varyMiss, request, stale, partial

    /// The name in the field.
    public var token: StaticString {
        switch self {
        case .bypass: "bypass"
        case .method: "method"
        case .uriMiss: "uri-miss"
        case .varyMiss: "vary-miss"
        case .request: "request"
        case .stale: "stale"
        case .partial: "partial"
        }
    }

    /// The reason for forwarding a request whose stored response had to be validated first.
    public init(_ reason: ValidationReason) {
        self =
            switch reason {
            case .requestNoCache, .requestAge: .request
            case .stale, .noCache, .invalidated: .stale
            }
    }
}

/// How one request was handled, for `Cache-Status` (RFC 9211). Parameters that do not apply stay `nil`.
public struct CacheStatus: Sendable, Equatable {
    /// The response came from this cache, or from the next hop (RFC 9211 §2.1, §2.2).
    public enum Handling: Sendable, Equatable {
        case hit
        case forwarded(ForwardReason)
    }

    /// Whether the response was a hit or was forwarded.
    public var handling: Handling
    /// The status of the next hop's response, if it differs from the status sent to the client.
    public var forwardStatus: Status?
    public var stored = false
    /// The response came from the fetch of another request.
    public var collapsed = false
    /// Seconds; negative for a stale response.
    public var timeToLive: Int64?

    public init(_ handling: Handling) { self.handling = handling }
}

/// Writes `Cache-Status` lines under this cache's name. The line follows the lines received from upstream, which makes
/// it the last member of the list, as RFC 9211 §2 requires. An object, so that a response copies none of it.
public final class CacheStatusWriter: Sendable {
    /// `Cache-Status: name`, encoded.
    private let prefix: ByteSlice

    /// - Parameter name: names this deployment, not the software.
    public init(name: ByteSlice) {
        let buffer = ByteBuffer(capacity: 64)
        buffer.append("Cache-Status: ")
        buffer.appendStructuredName(name.span)
        prefix = buffer.copied()
    }

    /// Appends the line of a fresh response from the store, up to the seconds of `ttl`; the caller keeps the bytes,
    /// since they are the same in every hit.
    public func writeHitStart(to buffer: ByteBuffer) {
        buffer.append(prefix)
        buffer.append("; hit; ttl=")
    }

    /// - Parameter detail: a token with further information, such as the name of a reason.
    public func write(_ status: CacheStatus, detail: StaticString? = nil, to buffer: ByteBuffer) {
        buffer.append(prefix)
        switch status.handling {
        case .hit: buffer.append("; hit")
        case .forwarded(let reason):
            buffer.append("; fwd=")
            buffer.append(reason.token)
            // fwd-status, stored and collapsed are only meaningful together with fwd (§2.3, §2.5, §2.6).
            if let code = status.forwardStatus?.code {
                buffer.append("; fwd-status=")
                buffer.append(decimal: UInt64(code))
            }
            if status.stored { buffer.append("; stored") }
            if status.collapsed { buffer.append("; collapsed") }
        }
        if let seconds = status.timeToLive {
            buffer.append("; ttl=")
            buffer.append(decimal: Int(seconds))
        }
        if let detail {
            buffer.append("; detail=")
            buffer.append(detail)
        }
        buffer.append("\r\n")
    }
}

extension ByteBuffer {
    /// Appends a Token if `name` is one, otherwise a String (RFC 9651 §3.3.3, §3.3.4).
    func appendStructuredName(_ name: Span<UInt8>) {
        let startsLikeToken = !name.isEmpty && (name[0].lowercasedASCII &- 0x61 < 26 || name[0] == UInt8(ascii: "*"))
        var isToken = startsLikeToken
        for index in 0..<name.count where isToken {
            isToken = name[index].isToken || name[index] == UInt8(ascii: ":") || name[index] == UInt8(ascii: "/")
        }
        if isToken { append(name) } else { appendStructuredString(name) }
    }

    /// Appends a String; a byte that a String cannot hold becomes `?`.
    func appendStructuredString(_ text: Span<UInt8>) {
        append("\"")
        for index in 0..<text.count {
            let byte = text[index]
            if byte == UInt8(ascii: "\"") || byte == UInt8(ascii: "\\") { append("\\") }
            append(byte >= 0x20 && byte < 0x7f ? byte : UInt8(ascii: "?"))
        }
        append("\"")
    }
}
