public import Synchronization

/// A message body that may still be arriving: one writer appends, any number of readers on any thread follow, each with
/// a cursor of its own. Bytes are kept once, however many read them; a slow reader costs a cursor, not a copy.
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
/// *Retention.* A body kept `whole` can be stored and joined late. A body limited to a `window` gives up pieces that
/// every reader has passed, so that its writer must pause while the slowest reader is a window behind; it cannot be
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

    let state: Guarded<OpenBody>
    let budget: MemoryBudget
    /// Set once, after `sealedPieces`, when the body is complete and whole (`OpenBody.isWhole`).
    @usableFromInline let sealed = Atomic<Bool>(false)
    /// Written before `sealed` is stored (releasing) and never afterwards, read only after `sealed` was loaded
    /// (acquiring). That is more than a check of exclusive access at run time could find out, so a hit does without.
    @exclusivity(unchecked) @usableFromInline nonisolated(unsafe) var sealedPieces = ShortList<ByteSlice>()
    @exclusivity(unchecked) @usableFromInline nonisolated(unsafe) var sealedLength = 0

    /// The size of the first piece, at least, when the length is not known.
    package static let firstPieceSize = 16 * 1024
    /// The size of all later ones, and the most that a piece has.
    package static let laterPieceSize = 64 * 1024
    /// Only full pieces are given up, so up to one piece stays when all is read. The mark at which a paused writer
    /// goes on, half of the window, must not be below that, or it would wait for ever.
    package static let smallestWindow = 2 * laterPieceSize
    /// How often it is stored, and how many read it.
    let uses = Guarded(BodyUses())
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
        loans = []
        state = Guarded(OpenBody(expectedLength: expectedLength, window: window, writerWake: writerWake))
    }

    /// Bytes of the first piece of a body that is not empty.
    public static func firstPiece(expecting length: Int?) -> Int {
        length.map { max(1, min($0, laterPieceSize)) } ?? firstPieceSize
    }

    /// The most memory that appending `count` bytes takes.
    public static func mostTaken(by count: Int) -> Int {
        (count + laterPieceSize - 1) / laterPieceSize * laterPieceSize
    }

    /// A complete body of bytes that are accounted for elsewhere.
    public init(lending bytes: ByteSlice) {
        budget = Self.nobodys
        loans = []
        state = Guarded(OpenBody(completeWith: bytes.count))
        unsafe sealedPieces = bytes.isEmpty ? ShortList() : ShortList(one: bytes)
        unsafe sealedLength = bytes.count
        sealed.store(true, ordering: .releasing)
    }

    private static let nobodys = MemoryBudget(limit: 0)

    /// A complete body of ranges of others, one after the other. It shares their memory, which stays accounted for by
    /// them; what is small or mostly unused is copied (`Loan`).
    ///
    /// The others must have ended, also short, and have been kept whole.
    public init(joining parts: [(body: GrowingBody, range: Range<Int>)], budget: MemoryBudget) {
        self.budget = budget
        loans = Loan.compacted(parts.flatMap { Loan.of($0.range, of: $0.body) }, budget)
        var pieces: [ByteSlice] = []
        for loan in loans { loan.body.appendPieces(of: loan.range, to: &pieces) }
        let length = pieces.reduce(0) { $0 + $1.count }
        state = Guarded(OpenBody(completeWith: length))
        unsafe sealedPieces = ShortList(pieces)
        unsafe sealedLength = length
        sealed.store(true, ordering: .releasing)
    }

    deinit {
        budget.release(state.withLock { $0.retained })
    }

    // MARK: - The writer

    /// Reserves the memory for the first bytes, so that they can be appended whatever others take meanwhile.
    /// - Returns: false when there is none: make room, and try again.
    public func begin() -> Bool { state.withLock { $0.begin(budget) } }

    /// Appends a copy of `bytes` and notifies every follower that has no notice pending.
    /// - Parameter takingPieces: false where only the room in the last piece may be used: more counts as `noMemory`.
    public func append(_ bytes: Span<UInt8>, takingPieces: Bool = true) -> AppendResult {
        let (result, effects) = state.withLock { $0.append(bytes, takingPieces: takingPieces, budget) }
        perform(effects)
        return result
    }

    /// After `noMemory`: appends as much as there is room for in the last piece, and in those for which there is memory.
    /// A piece that is full is given up once its readers have passed it; one that is half empty would be held by a body
    /// that waits for memory, and many such bodies would wait for each other.
    /// - Parameter takingPieces: false where only the last piece may be filled.
    /// - Returns: How many bytes were taken, and whether the window is full by now, as in `acceptedAndFull`: then it is
    ///   the readers that the rest waits for, not memory.
    public func appendWhatFits(_ bytes: Span<UInt8>, takingPieces: Bool = true) -> (count: Int, isFull: Bool) {
        let (count, isFull, effects) = state.withLock { $0.appendWhatFits(bytes, takingPieces: takingPieces, budget) }
        perform(effects)
        return (count, isFull)
    }

    /// Ends the body cleanly. The trailer section, if any, is in the syntax of field lines.
    public func complete(trailers: ByteSlice? = nil) { end(.complete, trailers) }

    /// Ends the body short: every reader sees `failed` after the bytes there are, never a clean end.
    public func fail() { end(.failed) }

    private func end(_ phase: Phase, _ trailers: ByteSlice? = nil) {
        let effects = state.withLock { state in
            let effects = state.end(phase, trailers: trailers, budget)
            if state.isWhole, !sealed.load(ordering: .relaxed) {
                unsafe sealedPieces = state.takePieces()
                unsafe sealedLength = state.length
                sealed.store(true, ordering: .releasing)
            }
            return effects
        }
        perform(effects)
    }

    /// From now on retains at most `window` bytes beyond what every reader has read; where more is unread already, one
    /// byte less for every two that the slowest reads, until it is so. There is no way back.
    public func limit(toWindow window: Int) { state.withLock { $0.limit(toWindow: window, budget) } }

    /// Never under the lock: what is called may come back.
    func perform(_ effects: OpenBody.Effects) {
        for notify in effects.notices { notify() }
        effects.writerWake?()
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
            for loan in body.loans where counted.insert(ObjectIdentifier(loan.body)).inserted {
                sum += loan.body.ownMemory
            }
        }
        return sum
    }

    /// What it has reserved itself.
    var ownMemory: Int { state.withLock { $0.retained } }

    /// The trailer section, when the body is complete and had one.
    public var trailers: ByteSlice? { state.withLock { $0.trailers } }
    /// Whether a late reader could still begin at the first byte.
    public var keepsStart: Bool {
        sealed.load(ordering: .acquiring) || state.withLock { $0.window == nil }
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
