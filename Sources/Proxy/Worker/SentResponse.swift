import HTTPSemantics

/// What a client was sent in response to one request, and when, in nanoseconds of the loop's clock.
struct SentResponse {
    /// `nil`: the connection ended before any of it went out.
    let status: Status?
    /// Whether it was cut off, or the client had left, before its end.
    let isAborted: Bool
    /// When the request's first byte came; 0: in this iteration of the loop.
    let began: Int64
    /// When the response's first byte went out; 0: none did.
    let firstByte: Int64
    /// Bytes of the content.
    let bodyBytes: UInt64
    /// Whether who asked is a proxy that tells for whom it asks (`TrustedProxies`).
    let isProxied: Bool
}
