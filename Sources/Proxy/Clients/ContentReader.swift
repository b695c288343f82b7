import Bytes
import HTTPSemantics

/// Reads the content of one request out of its connection's bytes (RFC 9112 §6).
///
/// Owned by the connection from the request's head until all of it is in, or it has become too much or broken. On its
/// loop.
final class ContentReader {
    enum Event {
        case needMore(consumed: Int)
        /// Content at the range of the input, of which `consumed` bytes are done with.
        case piece(Range<Int>, consumed: Int)
        case end(trailers: ByteSlice?, consumed: Int)
        /// More than the limit.
        case tooLarge
        /// Enough pieces for now: the loop has other work.
        case turnIsOver
    }

    /// Pieces in one turn. One read of content may hold 40,000 chunks of a byte each, which take tens of milliseconds.
    static let mostPieces = 512

    private var decoder: BodyDecoder
    private let limit: UInt64
    /// Given since the turn began.
    private var pieces = 0

    /// What the request's head says of its trailers.
    private let connection: ConnectionOptions

    /// A trailer field that does not go on, if there was one: the first.
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
