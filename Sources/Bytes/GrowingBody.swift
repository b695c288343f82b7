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
    /// Whether more bytes may be appended, and how the body ended.
    public enum Phase: Sendable, Equatable { case open, complete, failed }

    /// The outcome of an append.
    public enum AppendResult: Sendable, Equatable {
        /// All bytes were appended: continue.
        case accepted
        /// All bytes were appended, but the window is full: stop reading from the origin until `writerWake` is called.
        case acceptedAndFull
        /// No byte was appended: the budget is spent. Free memory, then offer the same bytes again.
        case noMemory
    }

    /// The position of one reader. Created by `attach`, returned with `detach`.
    public struct Cursor: Sendable {
        /// Bytes read so far, counted from the start of the body.
        public internal(set) var offset: Int
        /// Index of the piece that holds the next byte, counted from the first piece that the body ever had.
        var piece: Int
        /// The same among `sealedPieces`, and where that piece begins: the reader does not pass those before it again.
        var sealedPiece = 0
        var sealedStart = 0
    }

    let state: Guarded<OpenBody>
    let budget: MemoryBudget
    /// Set once, after `sealedPieces`, when the body is complete and whole (`OpenBody.isWhole`).
    @usableFromInline let sealed = Atomic<Bool>(false)
    /// Written before `sealed` is stored (releasing) and never afterwards; read only after `sealed` was loaded
    /// (acquiring). This order is a stronger guarantee than the run-time exclusivity check can give, so that check is
    /// off, and a hit does not pay for it.
    @exclusivity(unchecked) @usableFromInline nonisolated(unsafe) var sealedPieces = ShortList<ByteSlice>()
    @exclusivity(unchecked) @usableFromInline nonisolated(unsafe) var sealedLength = 0

    /// The least size, in bytes, of the first piece of a body of unknown length.
    package static let firstPieceSize = 16 * 1024
    /// The size, in bytes, of every later piece of a body of unknown length, and the maximum size of any piece.
    package static let laterPieceSize = 64 * 1024
    /// The smallest window in bytes. Only full pieces are freed, so up to one piece remains when every reader has read
    /// all bytes. A paused writer continues when half of the window is free; if half of the window were smaller than a
    /// piece, the writer could wait for ever.
    package static let smallestWindow = 2 * laterPieceSize
    /// Counts how often the body is stored, and how many clients it is being sent to.
    let uses = Guarded(BodyUses())
    /// The ranges of other bodies that a joined body consists of, in order (`init(joining:budget:)`). Empty for other
    /// bodies.
    let loans: [Loan]

    /// - Parameters:
    ///   - expectedLength: the length that the message announced, so that a small body allocates exactly its bytes.
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

    /// The most memory, in bytes, that appending `count` bytes reserves.
    public static func mostTaken(by count: Int) -> Int {
        (count + laterPieceSize - 1) / laterPieceSize * laterPieceSize
    }

    /// A complete body of bytes whose memory is accounted for elsewhere.
    public init(lending bytes: ByteSlice) {
        budget = Self.nobodys
        loans = []
        state = Guarded(OpenBody(completeWith: bytes.count))
        unsafe sealedPieces = bytes.isEmpty ? ShortList() : ShortList(one: bytes)
        unsafe sealedLength = bytes.count
        sealed.store(true, ordering: .releasing)
    }

    private static let nobodys = MemoryBudget(limit: 0)

    /// A complete body that consists of ranges of other bodies, in this order. The joined body shares their memory,
    /// which stays on their account. Small ranges, and ranges of bodies of which less than half is used, are copied
    /// (`Loan`).
    ///
    /// The other bodies must have ended, completely or short, and must have been kept whole.
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

    /// Reserves memory for the first bytes, so that they can be appended however much memory other bodies reserve
    /// meanwhile.
    /// - Returns: false when there is no memory: free some, and try again.
    public func begin() -> Bool { state.withLock { $0.begin(budget) } }

    /// Appends a copy of `bytes` and notifies every follower that has no notice pending. Reading from the socket into
    /// the pieces would avoid the copy for bodies of known length only, and the copy costs a small part of the read.
    /// - Parameter takingPieces: false if only the room in the last piece may be used: more bytes than that give
    ///   `noMemory`.
    public func append(_ bytes: Span<UInt8>, takingPieces: Bool = true) -> AppendResult {
        let (result, effects) = state.withLock { $0.append(bytes, takingPieces: takingPieces, budget) }
        perform(effects)
        return result
    }

    /// After `noMemory`: appends as many bytes as fit into the last piece, and into new pieces for which there is
    /// memory. A full piece is freed once its readers have passed it. A half-empty piece would stay with a body that
    /// waits for memory, and many such bodies would wait for each other.
    /// - Parameter takingPieces: false if only the last piece may be filled.
    /// - Returns: the number of bytes appended, and whether the window is now full, as in `acceptedAndFull`: then the
    ///   remaining bytes wait for the readers, not for memory.
    public func appendPartially(_ bytes: Span<UInt8>, takingPieces: Bool = true) -> (count: Int, isFull: Bool) {
        let (count, isFull, effects) = state.withLock { $0.appendPartially(bytes, takingPieces: takingPieces, budget) }
        perform(effects)
        return (count, isFull)
    }

    /// Ends the body cleanly. The trailer section, if any, is in the syntax of field lines.
    public func complete(trailers: ByteSlice? = nil) { end(.complete, trailers) }

    /// Ends the body short: every reader sees `failed` after the bytes that arrived, never a clean end.
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

    /// From now on, retains at most `window` bytes that the slowest reader has not read. If more bytes are unread
    /// already, the window first has their size, and shrinks by one byte for every two that the slowest reader reads,
    /// down to `window`. A limit cannot be removed.
    public func limit(toWindow window: Int) { state.withLock { $0.limit(toWindow: window, budget) } }

    /// Call without holding the lock: a notice or the writer's wake may call this body again.
    func perform(_ effects: OpenBody.Effects) {
        for notify in effects.notices { notify() }
        effects.writerWake?()
    }

    // MARK: - The body's state

    /// The phase at this moment. Any thread.
    public var phase: Phase { sealed.load(ordering: .acquiring) ? .complete : state.withLock { $0.phase } }
    /// The number of bytes that have arrived so far.
    public var length: Int { completeLength ?? state.withLock { $0.length } }
    /// Bytes of memory held at this moment.
    public var retained: Int { Self.retained(by: [self]) }
    /// The number of ranges that a joined body borrows from other bodies.
    public var lenderCount: Int { loans.count }

    /// Bytes of memory held by all of `bodies`. Memory that several of them share is counted once.
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

    /// Bytes of memory that this body has reserved itself.
    var ownMemory: Int { state.withLock { $0.retained } }

    /// The trailer section, if the body is complete and had one.
    public var trailers: ByteSlice? { state.withLock { $0.trailers } }
    /// Whether a late reader can still begin at the first byte.
    public var keepsStart: Bool {
        sealed.load(ordering: .acquiring) || state.withLock { $0.window == nil }
    }

    /// The bytes of a complete body, read without the lock; `nil` while the body is open, if it failed, or if its first
    /// bytes were freed.
    @inlinable
    public var completePieces: ShortList<ByteSlice>? {
        sealed.load(ordering: .acquiring) ? unsafe sealedPieces : nil
    }

    /// The length of a complete body, read without the lock; `nil` in the same cases as `completePieces`.
    @inlinable
    public var completeLength: Int? {
        sealed.load(ordering: .acquiring) ? unsafe sealedLength : nil
    }
}
