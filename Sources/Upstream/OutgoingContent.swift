package import Bytes
import HTTPSemantics

/// Request content on its way to an origin, framed, until the socket takes it. An exchange may be given content that
/// arrived before it began.
///
/// Confined to one loop. The memory reserved for the content is released with this object: when the last byte was sent,
/// or when unsent content is dropped.
package final class OutgoingContent {
    /// The most bytes that an exchange without a connection takes; beyond that, the client waits. Enough for a form.
    static let mostEarly = 8 << 10

    let framing: UpstreamRequest.Content
    let pieces = ByteBuffer(capacity: 256)
    private(set) var isEnded = false
    /// Whether sent bytes stay in `pieces`, since they may have to be sent again.
    private var isKept = false
    /// The number of bytes of `pieces` that were sent and are kept.
    private(set) var taken = 0
    /// The number of bytes reserved for the content, and the budget.
    private var reserved: (budget: MemoryBudget, bytes: Int)?

    /// Begins without content.
    /// - Parameter framing: the framing of the content's request.
    package init(_ framing: UpstreamRequest.Content) { self.framing = framing }

    deinit {
        if let reserved { reserved.budget.release(reserved.bytes) }
    }

    /// Bytes that wait to be sent, framed.
    package var count: Int { pieces.count - taken }
    /// Whether all of the content was sent.
    var isSent: Bool { isEnded && count == 0 }

    /// From now on, sent bytes are kept. All of the content must have arrived.
    func keep() {
        assert(isEnded, "only content that has ended is kept")
        isKept = true
    }

    /// The socket took the next `count` bytes.
    func took(_ count: Int) {
        if isKept { taken += count } else { pieces.consume(count) }
    }

    /// Makes all kept bytes be sent once more.
    func rewind() { taken = 0 }

    /// The most bytes that frame one piece, with the framing at the end of the content.
    private static let mostFraming = 32

    /// How many bytes of memory are lacking for a piece of `count` bytes.
    package func lack(for count: Int) -> Int {
        let needed = pieces.count + count + Self.mostFraming
        return needed <= pieces.capacity ? 0 : max(needed, 2 * pieces.capacity) - pieces.capacity
    }

    /// Takes the lacking memory for a piece of `count` bytes. The caller has reserved it of `budget`, which must be the
    /// same in each call.
    package func grow(for count: Int, reservedOf budget: MemoryBudget) {
        reserved = (budget, (reserved?.bytes ?? 0) + lack(for: count))
        pieces.reserve(count + Self.mostFraming)
    }

    /// Adds a copy of the next piece.
    package func append(_ content: Span<UInt8>) {
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

    /// Ends the content: no piece follows. `trailers` as in `Exchange.endContent(trailers:)`.
    package func end(trailers: ByteSlice?) {
        guard !isEnded else { return }
        isEnded = true
        guard framing == .chunked else { return }
        pieces.appendLastChunk(trailers: trailers)
    }
}
