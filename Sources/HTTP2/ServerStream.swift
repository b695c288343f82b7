import Bytes

/// One request and its response, on a stream of a `ServerSession`, which calls these methods on its loop.
///
/// ```
/// open ─headIsComplete→ (content… ─contentEnded→) answered ─the response's last frame is made→ closed
/// any ─reset by either side→ closed
/// ```
open class ServerStream {
    /// The stream's number, unique on its connection.
    public let id: Int32

    public init(id: Int32) { self.id = id }

    /// Bytes of the response that can be sent now.
    public struct Content {
        public var count: Int
        /// Whether the content ends behind them.
        public var isLast: Bool
        /// Whether trailers follow then, which `ServerSession.submit(trailers:)` has got.
        public var hasTrailers = false
        /// Whether the rest is missing: the stream is reset with INTERNAL_ERROR.
        public var isCutOff = false

        public init(count: Int, isLast: Bool) { (self.count, self.isLast) = (count, isLast) }
    }

    /// The head of the request is complete.
    /// - Parameters:
    ///   - head: as HTTP/1.1 has it; lent for the call.
    ///   - hasContent: whether content, or trailers, follow.
    open func headIsComplete(_ head: Span<UInt8>, hasContent: Bool) {}
    /// The head exceeds the limits; it was not kept.
    open func headIsTooLarge() {}
    /// Content of the request has arrived; `ServerSession.consumed` says when it is used.
    open func received(_ content: Span<UInt8>) {}
    /// Trailers have arrived; `contentEnded` follows.
    /// - Parameter text: as they are at the end of chunked content in HTTP/1.1, with the last chunk; lent for the call.
    open func trailersCame(_ text: Span<UInt8>) {}
    /// The request is complete.
    open func contentEnded() {}
    /// Whether more of the request may come.
    open var awaitsContent: Bool { false }
    /// How many bytes of the response can be sent now, at most `most`; none and not the last: the session asks again
    /// after `ServerSession.resume`.
    open func content(most: Int) -> Content { Content(count: 0, isLast: true) }
    /// Adds the next `count` bytes of the response, as many as `content` said, to `output`.
    open func take(_ count: Int, into output: FrameOutput) {}
    /// The stream is closed and forgotten. Its response may be incomplete.
    /// - Parameter code: that of RST_STREAM (RFC 9113 §7); 0 after both sides have ended it.
    open func closed(_ code: UInt32) {}
}
