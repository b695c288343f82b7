import Bytes
import Upstream

/// A request's content, and its end, that came before its fetch got its slot at the origin. A class, so that a fetch without any, as most
/// are, holds no room for it.
final class EarlyContent {
    var pieces: [ByteSlice] = []
    /// The trailers, if any, once the content is complete.
    var end: ByteSlice??

    func send(to exchange: Exchange) {
        for piece in pieces { _ = exchange.send(piece.span) }
        if let end { exchange.endContent(trailers: end) }
    }
}
