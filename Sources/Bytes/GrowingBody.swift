public import Synchronization

/// A message body that may still be arriving: one writer appends, any number of readers on any thread follow, each with a
/// cursor of its own. Bytes are kept once, however many read them; a slow reader costs a cursor, not a copy.
///
/// ```
/// open ─append→ open ─complete→ complete
///   └──────────fail──────────→ failed
/// ```
///
/// Owners: its writer (a fetch) and its readers; the store once it is complete.
/// Protection: one mutex, held for a few dozen instructions, guards everything while the body is open. A complete body
/// never changes any more, and is then read without the mutex (see `sealed`).
///
/// *Retention.* A body kept `whole` can be stored and joined late. A body limited to a `window` gives up pieces that every
/// reader has passed, so that its writer must pause while the slowest reader is a window behind; it cannot be
/// joined once its beginning is gone.
public final class GrowingBody: Sendable {
    /// Whether more may come, and how it ended.
    public enum Phase: Sendable, Equatable { case open, complete, failed }

    /// What an append asks of the writer.
    public enum AppendResult: Sendable, Equatable {
        /// Taken; go on.
        case accepted
        /// Taken, but the window is full: stop reading from the origin until `writerWake` is called.
        case acceptedAndFull
        /// Nothing taken: the budget is spent. Make room, then offer the same bytes again.
        case noMemory
    }

    /// How far a reader has come. Made by `attach`, given back by `detach`.
    public struct Cursor: Sendable {
        /// Bytes read so far, counted from the start of the body.
        public internal(set) var offset: Int
        /// The piece that holds the next byte, counted from the first piece the body ever had.
        var piece: Int
    }

    struct Piece: Sendable {
        let chunk: Chunk
        /// Offset of the piece's first byte in the body.
        let start: Int
        var filled: Int
        /// Attached readers whose next byte is in this piece.
        var readers: Int
    }

    struct Follower: Sendable {
        let id: Int
        let notify: @Sendable () -> Void
        /// A notice is on its way: no second one until the follower has looked.
        var pending: Bool
    }

    struct State: Sendable {
        var phase = Phase.open
        /// Pieces `firstPiece...`; those before were given up.
        var pieces = ShortList<Piece>()
        var firstPiece = 0
        var length = 0
        var retained = 0
        var readers = 0
        /// Readers at the very end, where the next piece is not made yet.
        var readersBeyond = 0
        var window: Int?
        var writerPaused = false
        /// Called, on any thread and outside the lock, when a full window has room again. Dropped at the end, so that a
        /// stored body does not keep its fetch alive.
        var writerWake: (@Sendable () -> Void)?
        var followers: [Follower] = []
        var trailers: ByteSlice?
        var startIsGone = false
    }

    let state: Guarded<State>
    let budget: MemoryBudget
    /// Set once, after `sealedPieces`, when the body is complete and whole. `State.pieces` is empty from then on.
    @usableFromInline let sealed = Atomic<Bool>(false)
    /// Written before `sealed` is stored (releasing) and never afterwards, read only after `sealed` was loaded (acquiring). That is more
    /// than a check of exclusive access at run time could find out, so a hit does without.
    @exclusivity(unchecked) @usableFromInline nonisolated(unsafe) var sealedPieces = ShortList<ByteSlice>()
    @exclusivity(unchecked) @usableFromInline nonisolated(unsafe) var sealedLength = 0

    /// The size of the first piece when the length is not known, and of all later ones.
    package static let firstPieceSize = 16 * 1024
    /// See `firstPieceSize`.
    package static let laterPieceSize = 64 * 1024
    /// Only full pieces are given up, so up to one piece stays when all is read. The mark at which a paused writer
    /// goes on, half of the window, must not be below that, or it would wait for ever.
    package static let smallestWindow = 2 * laterPieceSize
    let expectedLength: Int?
    /// What it uses of other bodies, in order: see `init(joining:budget:)`. Mostly nothing.
    let loans: [Loan]

    /// - Parameters:
    ///   - expectedLength: the length the message announced, so that a small body takes exactly its bytes.
    ///   - window: the most bytes to retain for readers that lag, at least 128 KiB, or `nil` to keep the body whole.
    ///   - writerWake: called on any thread when a window that was full has room again.
    public init(
        budget: MemoryBudget, expectedLength: Int? = nil, window: Int? = nil,
        writerWake: @escaping @Sendable () -> Void = {}
    ) {
        self.budget = budget
        self.expectedLength = expectedLength
        loans = []
        state = Guarded(State(window: window.map { max($0, Self.smallestWindow) }, writerWake: writerWake))
    }

    /// A complete body of bytes that are accounted for elsewhere.
    public init(lending bytes: ByteSlice) {
        budget = Self.nobodys
        expectedLength = nil
        loans = []
        var state = State()
        state.phase = .complete
        state.length = bytes.count
        self.state = Guarded(state)
        unsafe sealedPieces = bytes.isEmpty ? ShortList() : ShortList(one: bytes)
        unsafe sealedLength = bytes.count
        sealed.store(true, ordering: .releasing)
    }

    private static let nobodys = MemoryBudget(limit: 0)

    /// A complete body of ranges of others, one after the other. It shares their memory, which stays accounted for by them; what is small or
    /// mostly unused is copied (`Loan`).
    ///
    /// The others must have ended, also short, and have been kept whole.
    public init(joining parts: [(body: GrowingBody, range: Range<Int>)], budget: MemoryBudget) {
        self.budget = budget
        expectedLength = nil
        loans = Loan.compacted(parts.flatMap { Loan.of($0.range, of: $0.body) }, budget)
        var pieces: [ByteSlice] = []
        for loan in loans { loan.body.appendPieces(of: loan.range, to: &pieces) }
        var state = State()
        state.phase = .complete
        state.length = pieces.reduce(0) { $0 + $1.count }
        unsafe sealedPieces = ShortList(pieces)
        unsafe sealedLength = state.length
        self.state = Guarded(state)
        sealed.store(true, ordering: .releasing)
    }

    deinit {
        budget.release(state.withLock { $0.retained })
    }

    // MARK: - The writer

    /// Appends a copy of `bytes` and notifies every follower that has no notice pending.
    public func append(_ bytes: Span<UInt8>) -> AppendResult {
        let (result, notices) = state.withLock { state -> (AppendResult, [@Sendable () -> Void]) in
            guard state.phase == .open else { return (.accepted, []) }
            guard makeRoom(for: bytes.count, &state) else { return (.noMemory, []) }
            return write(bytes, &state)
        }
        for notify in notices { notify() }
        return result
    }

    /// After `noMemory`: appends as much as there is room for in the last piece. A piece that is full is given up once its readers have passed
    /// it; one that is half empty would be held by a body that waits for memory, and many such bodies would wait for each other.
    /// - Returns: how many bytes were taken.
    public func appendWhatFits(_ bytes: Span<UInt8>) -> Int {
        let (count, notices) = state.withLock { state -> (Int, [@Sendable () -> Void]) in
            guard state.phase == .open, let last = state.pieces.last else { return (0, []) }
            let count = min(bytes.count, last.chunk.capacity - last.filled)
            guard count > 0 else { return (0, []) }
            return (count, write(bytes.extracting(0..<count), &state).1)
        }
        for notify in notices { notify() }
        return count
    }

    /// Into the room that `makeRoom` made.
    private func write(_ bytes: Span<UInt8>, _ state: inout State) -> (AppendResult, [@Sendable () -> Void]) {
        var offset = 0
        // `makeRoom` added the pieces; the first with free space is the last that had any.
        var index = state.pieces.count - 1
        while index > 0, state.pieces[index].filled == 0, state.pieces[index - 1].filled < state.pieces[index - 1].chunk.capacity {
            index -= 1
        }
        while offset < bytes.count {
            state.pieces.update(index) { piece in
                let part = min(bytes.count - offset, piece.chunk.capacity - piece.filled)
                piece.chunk.write(bytes.extracting(offset..<offset + part), at: piece.filled)
                piece.filled += part
                offset += part
            }
            index += 1
        }
        state.length += bytes.count
        var result = AppendResult.accepted
        if let window = state.window {
            Self.trim(&state, budget)
            if Self.unread(state) >= window {
                state.writerPaused = true
                result = .acceptedAndFull
            }
        }
        return (result, Self.takeNotices(&state))
    }

    /// Ends the body cleanly. The trailer section, if any, is in the syntax of field lines.
    public func complete(trailers: ByteSlice? = nil) {
        end { state in
            state.phase = .complete
            state.trailers = trailers
        }
    }

    /// Ends the body short: every reader sees `failed` after the bytes there are, never a clean end.
    public func fail() {
        end { $0.phase = .failed }
    }

    private func end(_ change: (inout State) -> Void) {
        let notices = state.withLock { state -> [@Sendable () -> Void] in
            guard state.phase == .open else { return [] }
            change(&state)
            if state.phase == .complete, !state.startIsGone {
                Self.compactLastPiece(&state, budget)
                for index in state.pieces.indices {
                    let piece = state.pieces[index]
                    if piece.filled > 0 { unsafe sealedPieces.append(ByteSlice(piece.chunk, 0..<piece.filled)) }
                }
                unsafe sealedLength = state.length
                sealed.store(true, ordering: .releasing)
                state.pieces = ShortList()
            }
            let notices = Self.takeNotices(&state)
            state.followers = []
            state.writerWake = nil
            return notices
        }
        for notify in notices { notify() }
    }

    /// From now on retains at most `window` bytes beyond what every reader has read. There is no way back.
    public func limit(toWindow window: Int) {
        state.withLock { state in
            guard state.phase == .open else { return }
            state.window = max(window, Self.smallestWindow)
            Self.trim(&state, budget)
        }
    }

    // MARK: - How it stands

    /// How it stands at this moment. Any thread.
    public var phase: Phase { sealed.load(ordering: .acquiring) ? .complete : state.withLock { $0.phase } }
    /// Bytes arrived so far.
    public var length: Int { completeLength ?? state.withLock { $0.length } }
    /// Bytes of memory held at this moment.
    public var retained: Int { Self.retained(by: [self]) }
    /// How many bodies' memory that is.
    public var lenderCount: Int { loans.count }

    /// Bytes of memory held by all of `bodies`, what they share counted once.
    public static func retained(by bodies: [GrowingBody]) -> Int {
        var counted: Set<ObjectIdentifier> = []
        var sum = 0
        for body in bodies {
            if body.loans.isEmpty { sum += body.ownMemory }
            for loan in body.loans where counted.insert(ObjectIdentifier(loan.body)).inserted { sum += loan.body.ownMemory }
        }
        return sum
    }

    /// What it has reserved itself.
    var ownMemory: Int { state.withLock { $0.retained } }

    /// The trailer section, when the body is complete and had one.
    public var trailers: ByteSlice? { state.withLock { $0.trailers } }
    /// Whether a late reader could still begin at the first byte.
    public var keepsStart: Bool {
        sealed.load(ordering: .acquiring) || state.withLock { !$0.startIsGone && $0.window == nil }
    }

    /// The bytes of a complete body, without the lock; `nil` while it is open, failed, or when its start is gone.
    @inlinable
    public var completePieces: ShortList<ByteSlice>? {
        sealed.load(ordering: .acquiring) ? unsafe sealedPieces : nil
    }

    /// The length of a complete body, without the lock; `nil` like `completePieces`.
    @inlinable
    public var completeLength: Int? {
        sealed.load(ordering: .acquiring) ? unsafe sealedLength : nil
    }
}
