public import Bytes
import HTTPSemantics

/// Request content on its way to an origin, framed, until the socket takes it. Its exchange may be given what came
/// before it began.
///
/// Confined to one loop.
public final class OutgoingContent {
    /// Bytes of it that an exchange without a connection takes; beyond that the client waits. Enough for a form.
    static let mostEarly = 8 << 10

    let framing: UpstreamRequest.Content
    let pieces = ByteBuffer(capacity: 256)
    private(set) var isEnded = false

    /// Nothing yet.
    /// - Parameter framing: that of the request it belongs to.
    public init(_ framing: UpstreamRequest.Content) { self.framing = framing }

    var count: Int { pieces.count }
    /// Whether all of it was taken.
    var isSent: Bool { isEnded && pieces.isEmpty }

    /// Adds a copy of the next piece.
    public func append(_ content: Span<UInt8>) {
        guard !content.isEmpty else { return }
        switch framing {
        case .none:
            break
        case .length:
            pieces.append(content)
        case .chunked:
            pieces.appendChunkHeader(content.count)
            pieces.append(content)
            pieces.appendChunkEnd()
        }
    }

    /// No piece follows. `trailers` as in `Exchange.endContent(trailers:)`.
    public func end(trailers: ByteSlice?) {
        guard !isEnded else { return }
        isEnded = true
        guard framing == .chunked else { return }
        pieces.appendLastChunk(trailers: trailers)
    }
}
