/// The state of a body when its connection ended.
public enum BodyEnding: Sendable, Equatable {
    case complete
    /// The connection ended before the body did: do not store the message or forward it as complete (RFC 9112 §8).
    case truncated
}

/// Reads a message's body in any framing (RFC 9112 §6.3).
///
///     length ─all bytes→ ended;   chunked ─last chunk and trailers→ ended;   untilClose ─end of stream→ ended
public struct BodyDecoder: Sendable {
    private enum State {
        case length(remaining: UInt64)
        case chunked
        case untilClose
        case ended
    }

    private var state: State
    private var chunks: ChunkedDecoder
    /// Whether `chunks` is in its initial state.
    private var chunksAreFresh: Bool
    /// Content bytes so far, without the chunked coding.
    public private(set) var received: UInt64 = 0

    /// - Parameters:
    ///   - framing: the message's, as its head announced it.
    ///   - trailerLimits: for the trailer section of a chunked body; a section beyond them is an error.
    public init(_ framing: MessageFraming = .none, trailerLimits: HeadLimits = .trailers) {
        chunks = ChunkedDecoder(trailerLimits: trailerLimits)
        chunksAreFresh = framing != .chunked
        state = Self.start(framing)
    }

    /// Prepares for the next body; memory is kept.
    public mutating func reset(_ framing: MessageFraming) {
        if !chunksAreFresh { chunks.reset() }
        chunksAreFresh = framing != .chunked
        received = 0
        state = Self.start(framing)
    }

    private static func start(_ framing: MessageFraming) -> State {
        switch framing {
        case .none, .length(0): .ended
        case .length(let count): .length(remaining: count)
        case .chunked: .chunked
        case .untilClose: .untilClose
        }
    }

    /// Whether the body has ended cleanly.
    public var isComplete: Bool {
        if case .ended = state { true } else { false }
    }

    /// Continues with `input`, which starts with the first byte not yet consumed.
    /// - Throws: the first error in the framing, with its position. The rest of the body is unusable.
    public mutating func decode(_ input: Span<UInt8>) throws(MessageSyntaxError) -> BodyStep {
        let step: BodyStep
        switch state {
        case .length(let remaining):
            guard !input.isEmpty else { return BodyStep(0, .needMore) }
            let count = Int(min(remaining, UInt64(input.count)))
            let rest = remaining - UInt64(count)
            state = rest == 0 ? .ended : .length(remaining: rest)
            step = BodyStep(count, .data(0..<count))
        case .chunked:
            step = try chunks.decode(input)
            if step.action == .end { state = .ended }
        case .untilClose:
            step = input.isEmpty ? BodyStep(0, .needMore) : BodyStep(input.count, .data(0..<input.count))
        case .ended:
            return BodyStep(0, .end)
        }
        if case .data(let range) = step.action { received += UInt64(range.count) }
        return step
    }

    /// Reports that the connection ended, after every byte before the end went through `decode`.
    public mutating func endOfStream() -> BodyEnding {
        switch state {
        case .length, .chunked:
            return .truncated
        case .untilClose, .ended:
            state = .ended
            return .complete
        }
    }

    /// The trailer section of a chunked body (`ChunkedDecoder.trailers`); empty with any other framing.
    @_lifetime(copy input, borrow self)
    public func trailers(in input: Span<UInt8>) -> FieldView { chunks.trailers(in: input) }
}

/// The result of one call of a body decoder.
public struct BodyStep: Sendable, Equatable {
    /// The meaning of the consumed bytes.
    public enum Action: Sendable, Equatable {
        /// This range of the input is content. The input may hold more after it: call again.
        case data(Range<Int>)
        /// The input holds no further content. Call again with the unconsumed bytes and more.
        case needMore
        /// The body is complete. The unconsumed bytes belong to the next message.
        case end
    }

    /// Bytes of the input that are consumed, including the action's data. The next input starts after them.
    public let consumed: Int
    public let action: Action

    @inlinable
    public init(_ consumed: Int, _ action: Action) {
        self.consumed = consumed
        self.action = action
    }
}
