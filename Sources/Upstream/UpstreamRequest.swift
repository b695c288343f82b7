package import Bytes
package import HTTPSemantics

/// One request as it is sent to an origin: the head is ready to send, the content, if any, comes piece by piece.
package struct UpstreamRequest: Sendable {
    /// How the content is framed (RFC 9112 §6).
    package enum Content: Sendable, Equatable {
        case none
        /// With `Content-Length`: pieces are sent as they are.
        case length
        /// Pieces are sent as chunks.
        case chunked

        /// - Parameter framing: the framing of the client's request.
        package init(_ framing: MessageFraming) {
            self =
                switch framing {
                case .none, .length(0), .untilClose: .none
                case .length: .length
                case .chunked: .chunked
                }
        }
    }

    /// Determines the framing of the response, and whether the request may be sent twice.
    package let method: Method
    /// Request line, fields and the empty line.
    package let head: ByteSlice
    package let content: Content
    /// Whether the client asked to switch protocols (RFC 9110 §7.8): a 101 makes the connection a tunnel.
    package let asksForUpgrade: Bool
    /// Whether a 304 may answer the request: it answers only a conditional request (RFC 9110 §15.4.5).
    package let mayBeNotModified: Bool

    package init(
        method: Method, head: ByteSlice, content: Content = .none, asksForUpgrade: Bool = false,
        mayBeNotModified: Bool = true
    ) {
        self.method = method
        self.head = head
        self.content = content
        self.asksForUpgrade = asksForUpgrade
        self.mayBeNotModified = mayBeNotModified
    }

    /// Whether the request may be sent a second time if a connection was closed before it brought a response (RFC 9110
    /// §9.2.2).
    /// - Parameter keepsContent: whether the request's content is kept for that.
    func mayBeSentAgain(keepsContent: Bool) -> Bool { method.isIdempotent && isHeld(keepsContent: keepsContent) }

    /// Whether content that has arrived completely is kept to be sent again. Only the content of a safe request is
    /// kept: such a request does no harm, even if a server acted on it before.
    var repeatsContent: Bool { method.isSafe && !asksForUpgrade }

    /// Whether a copy of it may be sent at the same time to another server, which nobody waits for.
    var mayBeCopied: Bool { method.isSafe && content == .none && !asksForUpgrade }

    /// Makes the copy for a probe. The copy lacks the credentials of the client: a server might act for that client.
    func copyForProbe() -> UpstreamRequest {
        let lines = headLines { line in
            line.hasPrefixIgnoringCase("authorization:") || line.hasPrefixIgnoringCase("cookie:")
                || line.hasPrefixIgnoringCase("proxy-authorization:")
        }
        lines.appendLineEnd()
        return UpstreamRequest(method: method, head: lines.copied(), mayBeNotModified: mayBeNotModified)
    }

    /// The request line and the field lines, with room for more of them; the empty line is still to be added.
    /// - Parameter isDropped: whether a line is left out.
    package func headLines(without isDropped: (Span<UInt8>) -> Bool) -> ByteBuffer {
        let (bytes, lines) = (head.span, ByteBuffer(capacity: head.count + 128))
        var start = 0
        while let end = bytes.firstIndex(of: UInt8(ascii: "\n"), from: start) {
            let line = bytes.extracting(start..<end + 1)
            start = end + 1
            // The empty line.
            if line.count <= 2 { break }
            if !isDropped(line) { lines.append(line) }
        }
        return lines
    }

    /// Whether all of the request is here. Content that was streamed through cannot be sent again, nor bytes that a
    /// client sends behind a request for another protocol.
    func isHeld(keepsContent: Bool) -> Bool { (content == .none || keepsContent) && !asksForUpgrade }
}
