import Bytes
import HTTPSemantics

/// Request content on its way to an origin, framed, until the socket takes it. Confined to the connection's loop.
final class OutgoingContent {
    let pieces = ByteBuffer(capacity: 256)
    private(set) var isEnded = false

    var count: Int { pieces.count }

    func append(_ content: Span<UInt8>, framing: UpstreamRequest.Content) {
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

    func end(framing: UpstreamRequest.Content, trailers: ByteSlice?) {
        guard !isEnded else { return }
        isEnded = true
        guard framing == .chunked else { return }
        pieces.appendLastChunk(trailers: trailers)
    }
}
