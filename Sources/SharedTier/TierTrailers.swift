import Bytes
import HTTPSemantics

/// The trailers behind a body in the engine, which are read by the rules for trailers from origins.
enum TierTrailers {
    /// - Parameter lines: the field lines as a leader wrote them, or anybody.
    /// - Returns: those that may be forwarded.
    static func read(_ lines: ByteSlice) throws(TierRefusal) -> ByteSlice {
        guard !lines.isEmpty else { return .empty }
        let body = ByteBuffer(capacity: lines.count + 8)
        body.appendLastChunk(trailers: lines)
        var decoder = ChunkedDecoder()
        guard let step = try? decoder.decode(body.span), step == BodyStep(body.count, .end) else { throw .trailers }
        let kept = ByteBuffer(capacity: lines.count)
        kept.appendTrailers(decoder.trailers(in: body.span), connection: ConnectionOptions())
        return kept.copied()
    }
}
