public import Bytes
import HTTPSemantics

/// Request content on its way to an origin, framed, until the socket takes it. Its exchange may be given what came
/// before it began.
///
/// Confined to one loop. What was reserved for it is given back as it goes: with its last byte on the way, or unsent.
public final class OutgoingContent {
    /// Bytes of it that an exchange without a connection takes; beyond that the client waits. Enough for a form.
    static let mostEarly = 8 << 10

    let framing: UpstreamRequest.Content
    let pieces = ByteBuffer(capacity: 256)
    private(set) var isEnded = false
    /// Whether what was taken stays here, since it may have to be sent again.
    private var isKept = false
    /// How much of `pieces` was taken and stays here.
    private(set) var taken = 0
    /// How many bytes are reserved for it, and of which budget.
    private var reserved: (budget: MemoryBudget, bytes: Int)?

    /// Nothing yet.
    /// - Parameter framing: that of the request it belongs to.
    public init(_ framing: UpstreamRequest.Content) { self.framing = framing }

    deinit {
        if let reserved { reserved.budget.release(reserved.bytes) }
    }

    /// Bytes that wait to be sent, framed.
    public var count: Int { pieces.count - taken }
    /// Whether all of it was taken.
    var isSent: Bool { isEnded && count == 0 }

    /// From now on what is taken stays here. All of it must be here.
    func keep() {
        assert(isEnded, "only content that has ended is kept")
        isKept = true
    }

    /// The socket took the next `count` bytes.
    func took(_ count: Int) {
        if isKept { taken += count } else { pieces.consume(count) }
    }

    /// All that was kept is sent once more.
    func rewind() { taken = 0 }

    /// The most that frames one piece, with the end of all of them, in bytes.
    private static let mostFraming = 32

    /// Bytes of memory that it lacks for a piece of `count` bytes.
    public func lack(for count: Int) -> Int {
        let needed = pieces.count + count + Self.mostFraming
        return needed <= pieces.capacity ? 0 : max(needed, 2 * pieces.capacity) - pieces.capacity
    }

    /// Takes the memory that it lacks for a piece of `count` bytes, which the caller has reserved of `budget`: always
    /// the same one.
    public func grow(for count: Int, reservedOf budget: MemoryBudget) {
        reserved = (budget, (reserved?.bytes ?? 0) + lack(for: count))
        pieces.reserve(count + Self.mostFraming)
    }

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
