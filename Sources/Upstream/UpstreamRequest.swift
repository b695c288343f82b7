public import Bytes
public import HTTPSemantics

/// One request as it goes to an origin: the head is ready to send, the content, if any, comes piece by piece.
public struct UpstreamRequest: Sendable {
    /// How the content is framed (RFC 9112 §6).
    public enum Content: Sendable, Equatable {
        case none
        /// Sized: pieces go out as they are.
        case length
        /// Pieces are sent as chunks.
        case chunked
    }

    /// Tells what kind of response to expect, and whether it may be sent twice.
    public let method: Method
    /// Request line, fields and the empty line.
    public let head: ByteSlice
    public let content: Content
    /// The client asked to switch protocols (RFC 9110 §7.8): a 101 makes the connection a tunnel.
    public let asksForUpgrade: Bool
    /// Whether a 304 may be the answer: it is one to conditions only (RFC 9110 §15.4.5).
    public let mayBeNotModified: Bool

    public init(
        method: Method, head: ByteSlice, content: Content = .none, asksForUpgrade: Bool = false,
        mayBeNotModified: Bool = true
    ) {
        self.method = method
        self.head = head
        self.content = content
        self.asksForUpgrade = asksForUpgrade
        self.mayBeNotModified = mayBeNotModified
    }

    /// Whether it may go out a second time when a connection was closed before it brought a response (RFC 9110 §9.2.2).
    /// - Parameter keepsContent: whether its content is kept for that.
    func mayBeSentAgain(keepsContent: Bool) -> Bool { method.isIdempotent && isHeld(keepsContent: keepsContent) }

    /// Whether content that is all here is kept to go out again: only of a safe request, which does no harm wherever it
    /// was acted on.
    var repeatsContent: Bool { method.isSafe && !asksForUpgrade }

    /// Whether all of it is here: content that was streamed through cannot be sent again, nor what a client sends behind
    /// its wish to switch protocols.
    func isHeld(keepsContent: Bool) -> Bool { (content == .none || keepsContent) && !asksForUpgrade }
}
