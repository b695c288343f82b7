import HTTPSemantics

/// The response that a client was sent to one request, and its times in nanoseconds of the loop's clock.
struct SentResponse {
    /// `nil` if the connection ended before any byte of the response was sent.
    let status: Status?
    /// Whether the response was cut off, or the client left, before its end.
    let isAborted: Bool
    /// When the request's first byte was read; 0: in this iteration of the loop.
    let began: Int64
    /// When the response's first byte was sent; 0: none was.
    let firstByte: Int64
    /// Bytes of content that were sent.
    let bodyBytes: UInt64
    /// Whether the peer is a trusted proxy, which names its client (`TrustedProxies`).
    let isProxied: Bool
}
