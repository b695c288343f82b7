import Bytes
import HTTPSemantics
import Telemetry

/// The content of one request, as far as it has come.
struct IncomingContent {
    private let head: RequestHead
    /// All bytes of content so far.
    var size: UInt64 = 0
    /// Bytes that the transaction has, and that the client may not send again yet.
    var unused = 0

    init(_ head: RequestHead) { self.head = head }

    /// The trailer section to forward, by the rules of HTTP/1.1.
    /// - Parameter text: the end of chunked content.
    func trailers(in text: Span<UInt8>, _ notice: (RemovedField) -> Void) throws(MessageSyntaxError) -> ByteSlice? {
        var chunked = head
        chunked.framing = .chunked
        let reader = ContentReader(chunked, limit: nil)
        guard case .end(let trailers, _) = try reader.next(in: text) else { return nil }
        if let removed = reader.removedTrailer { notice(removed) }
        return trailers
    }
}
