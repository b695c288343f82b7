import Bytes
import HTTPSemantics

/// Reads the content of one request out of its connection's bytes (RFC 9112 §6).
///
/// Owned by the connection, on its loop, from the request's head until the content is complete, too large or malformed.
final class ContentReader {
    enum Event {
        case needMore(consumed: Int)
        /// Content at this range of the input; the first `consumed` bytes of the input are decoded.
        case piece(Range<Int>, consumed: Int)
        case end(trailers: ByteSlice?, consumed: Int)
        /// The content is larger than the limit.
        case tooLarge
        /// Enough pieces for now: the loop has other work.
        case turnIsOver
    }

    /// Most pieces in one turn. One read may bring 40,000 chunks of one byte each, which take tens of milliseconds.
    static let mostPieces = 512

    private var decoder: BodyDecoder
    private let limit: UInt64
    /// Pieces returned since the turn began.
    private var pieces = 0

    /// The `Connection` options of the request's head, which name trailer fields that are not forwarded.
    private let connection: ConnectionOptions

    /// The first trailer field that was removed, if any.
    private(set) var removedTrailer: RemovedField?

    /// - Parameter limit: bytes; `nil` for none.
    init(_ head: RequestHead, limit: Int?) {
        decoder = BodyDecoder(head.framing)
        connection = head.connection
        self.limit = limit.map { UInt64($0) } ?? .max
    }

    func beginTurn() { pieces = 0 }

    func next(in bytes: Span<UInt8>) throws(MessageSyntaxError) -> Event {
        guard pieces < Self.mostPieces else { return .turnIsOver }
        let step = try decoder.decode(bytes)
        if decoder.received > limit { return .tooLarge }
        switch step.action {
        case .needMore:
            return .needMore(consumed: step.consumed)
        case .data(let range):
            pieces += 1
            return .piece(range, consumed: step.consumed)
        case .end:
            let decoder = decoder
            let trailers = decoder.trailers(in: bytes)
            guard trailers.lines.count > 0 else { return .end(trailers: nil, consumed: step.consumed) }
            let text = ByteBuffer(capacity: 256)
            if let first = text.appendTrailers(trailers, connection: connection, plainNamesOnly: true) {
                removedTrailer = RemovedField(ByteSlice(copying: trailers.name(at: first)), .trailer)
            }
            return .end(trailers: text.isEmpty ? nil : text.copied(), consumed: step.consumed)
        }
    }
}
