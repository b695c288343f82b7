public import Synchronization

/// A message body that may still be arriving: one writer appends, any number of readers on any thread follow, each with a
/// cursor of its own. Bytes are kept once, however many read them; a slow reader costs a cursor, not a copy.
///
/// ```
/// open ─append→ open ─complete→ complete
///   └──────────fail──────────→ failed
/// ```
///
/// Owner: whoever writes (a fetch) holds the body together with its readers; the store holds it once it is complete.
/// Protection: one mutex, held for a few dozen instructions, guards everything while the body is open. A complete body
/// never changes any more, and is then read without the mutex (see `sealed`).
///
/// *Retention.* A body kept `whole` can be stored and joined late. A body limited to a `window` gives up pieces that every
/// reader has passed, so that its writer must pause while the slowest reader is a window behind; it cannot be
/// joined once its beginning is gone.
public final class GrowingBody: Sendable {
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
        public fileprivate(set) var offset: Int
        /// The piece that holds the next byte, counted from the first piece the body ever had.
        fileprivate var piece: Int
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
        var pieces: [Piece] = []
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
    /// Written before `sealed` is stored (releasing) and never afterwards, read only after `sealed` was loaded (acquiring).
    @usableFromInline nonisolated(unsafe) var sealedPieces: [ByteSlice] = []
    @usableFromInline nonisolated(unsafe) var sealedLength = 0

    /// The size of the first piece when the length is not known, and of all later ones.
    package static let firstPieceSize = 16 * 1024
    package static let laterPieceSize = 64 * 1024
    /// Only full pieces are given up, so up to one piece stays when all is read. The mark at which a paused writer
    /// goes on, half of the window, must not be below that, or it would wait for ever.
    package static let smallestWindow = 2 * laterPieceSize
    private let expectedLength: Int?

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
        var state = State()
        state.window = window.map { max($0, Self.smallestWindow) }
        state.writerWake = writerWake
        self.state = Guarded(state)
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
            var offset = 0
            // `makeRoom` added the pieces; the first with free space is the last that had any.
            var index = state.pieces.count - 1
            while index > 0, state.pieces[index].filled == 0, state.pieces[index - 1].filled < state.pieces[index - 1].chunk.capacity {
                index -= 1
            }
            while offset < bytes.count {
                let piece = state.pieces[index]
                let part = min(bytes.count - offset, piece.chunk.capacity - piece.filled)
                piece.chunk.write(bytes.extracting(offset..<offset + part), at: piece.filled)
                state.pieces[index].filled += part
                offset += part
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
        for notify in notices { notify() }
        return result
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
                unsafe sealedPieces = state.pieces.compactMap { $0.filled > 0 ? ByteSlice($0.chunk, 0..<$0.filled) : nil }
                unsafe sealedLength = state.length
                sealed.store(true, ordering: .releasing)
                state.pieces = []
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

    // MARK: - Readers

    /// A cursor at the first byte, or `nil` when the beginning is gone.
    public func attach() -> Cursor? {
        if sealed.load(ordering: .acquiring) { return Cursor(offset: 0, piece: 0) }
        return state.withLock { state in
            guard !state.startIsGone else { return nil }
            state.readers += 1
            if state.pieces.isEmpty { state.readersBeyond += 1 } else { state.pieces[0].readers += 1 }
            return Cursor(offset: 0, piece: 0)
        }
    }

    /// Gives the cursor back; what only it still needed is freed.
    public func detach(_ cursor: consuming Cursor) {
        if sealed.load(ordering: .acquiring) { return }
        let wake = state.withLock { state in
            state.readers -= 1
            Self.leave(cursor.piece, &state)
            return Self.trimForWriter(&state, budget)
        }
        wake?()
    }

    /// Appends up to `limit` slices at the cursor to `slices` and tells how the body stands behind them.
    ///
    /// - Returns: the phase and whether the slices reach the end of what has arrived.
    public func read(
        at cursor: Cursor, into slices: inout [ByteSlice], limit: Int
    ) -> (phase: Phase, reachesEnd: Bool) {
        if sealed.load(ordering: .acquiring) {
            // Complete and immutable: no lock.
            let reached = unsafe Self.read(sealedPieces, cursor, into: &slices, limit: limit)
            return (.complete, reached)
        }
        return state.withLock { state in
            // Sealed while this waited for the lock: the pieces are not in `state` any more.
            if sealed.load(ordering: .relaxed) {
                let reached = unsafe Self.read(sealedPieces, cursor, into: &slices, limit: limit)
                return (.complete, reached)
            }
            var index = cursor.piece - state.firstPiece
            var taken = 0
            while index < state.pieces.count, taken < limit {
                let piece = state.pieces[index]
                let from = max(0, cursor.offset - piece.start)
                if from < piece.filled {
                    slices.append(ByteSlice(piece.chunk, from..<piece.filled))
                    taken += 1
                }
                index += 1
            }
            return (state.phase, index >= state.pieces.count)
        }
    }

    private static func read(
        _ pieces: [ByteSlice], _ cursor: Cursor, into slices: inout [ByteSlice], limit: Int
    ) -> Bool {
        var start = 0
        var taken = 0
        for (index, piece) in pieces.enumerated() {
            let end = start + piece.count
            if end > cursor.offset {
                guard taken < limit else { return false }
                slices.append(piece[max(0, cursor.offset - start)..<piece.count])
                taken += 1
            }
            start = end
            if index == pieces.count - 1 { return true }
        }
        return true
    }

    /// Moves the cursor over `count` bytes that were read.
    public func advance(_ cursor: inout Cursor, by count: Int) {
        if sealed.load(ordering: .acquiring) {
            cursor.offset += count
            return
        }
        let wake = state.withLock { state -> (@Sendable () -> Void)? in
            cursor.offset += count
            var piece = cursor.piece
            while piece - state.firstPiece < state.pieces.count {
                let current = state.pieces[piece - state.firstPiece]
                guard cursor.offset >= current.start + current.filled, current.filled == current.chunk.capacity else { break }
                piece += 1
            }
            if piece != cursor.piece {
                Self.leave(cursor.piece, &state)
                Self.enter(piece, &state)
                cursor.piece = piece
            }
            return Self.trimForWriter(&state, budget)
        }
        wake?()
    }

    /// Asks that `notify` be called, on the writer's thread, when there is more or the end; once per `rearm`.
    /// The call comes at once when the body has already ended.
    public func follow(id: Int, notify: @escaping @Sendable () -> Void) {
        let ended = state.withLock { state -> Bool in
            guard state.phase == .open else { return true }
            state.followers.append(Follower(id: id, notify: notify, pending: false))
            return false
        }
        if ended { notify() }
    }

    /// A notice that is just being sent may still come after this.
    public func unfollow(id: Int) {
        state.withLock { state in state.followers.removeAll { $0.id == id } }
    }

    /// The follower is about to look: the next append notifies it again. Call before reading.
    public func rearm(id: Int) {
        state.withLock { state in
            if let index = state.followers.firstIndex(where: { $0.id == id }) { state.followers[index].pending = false }
        }
    }

    // MARK: - How it stands

    public var phase: Phase { sealed.load(ordering: .acquiring) ? .complete : state.withLock { $0.phase } }
    /// Bytes arrived so far.
    public var length: Int { completeLength ?? state.withLock { $0.length } }
    /// Bytes of memory held at this moment.
    public var retained: Int { state.withLock { $0.retained } }
    /// The trailer section, when the body is complete and had one.
    public var trailers: ByteSlice? { state.withLock { $0.trailers } }
    /// Whether a late reader could still begin at the first byte.
    public var keepsStart: Bool {
        sealed.load(ordering: .acquiring) || state.withLock { !$0.startIsGone && $0.window == nil }
    }

    /// The bytes of a complete body, without the lock; `nil` while it is open, failed, or when its start is gone.
    @inlinable
    public var completePieces: [ByteSlice]? {
        sealed.load(ordering: .acquiring) ? unsafe sealedPieces : nil
    }

    /// The length of a complete body, without the lock; `nil` like `completePieces`.
    @inlinable
    public var completeLength: Int? {
        sealed.load(ordering: .acquiring) ? unsafe sealedLength : nil
    }

    // MARK: - Under the lock

    private func makeRoom(for count: Int, _ state: inout State) -> Bool {
        var free = 0
        if let last = state.pieces.last { free = last.chunk.capacity - last.filled }
        // With no piece at hand all before are full and given up, or there were none.
        var start = state.pieces.last.map { $0.start + $0.chunk.capacity } ?? state.length
        var missing = count - free
        var added: [Piece] = []
        while missing > 0 {
            let size = nextPieceSize(start: start, missing: missing)
            guard budget.reserve(size) else {
                for piece in added { budget.release(piece.chunk.capacity) }
                return false
            }
            added.append(Piece(chunk: Chunk(capacity: size), start: start, filled: 0, readers: 0))
            start += size
            missing -= size
        }
        for piece in added {
            state.retained += piece.chunk.capacity
            state.pieces.append(piece)
            if state.readersBeyond > 0, piece.start == added[0].start {
                state.pieces[state.pieces.count - 1].readers += state.readersBeyond
                state.readersBeyond = 0
            }
        }
        return true
    }

    private func nextPieceSize(start: Int, missing: Int) -> Int {
        if let expectedLength, expectedLength > start { return max(1, min(expectedLength - start, Self.laterPieceSize)) }
        return start == 0 ? max(Self.firstPieceSize, min(missing, Self.laterPieceSize)) : Self.laterPieceSize
    }

    /// A body of unknown length ends somewhere in a piece: what is complete may be kept for long, so it gets no slack.
    private static func compactLastPiece(_ state: inout State, _ budget: MemoryBudget) {
        guard let last = state.pieces.last, last.filled < last.chunk.capacity else { return }
        let exact = Chunk(capacity: last.filled)
        exact.write(last.chunk.span(0..<last.filled), at: 0)
        let freed = last.chunk.capacity - last.filled
        state.pieces[state.pieces.count - 1] = Piece(chunk: exact, start: last.start, filled: last.filled, readers: last.readers)
        state.retained -= freed
        budget.release(freed)
    }

    private static func takeNotices(_ state: inout State) -> [@Sendable () -> Void] {
        var notices: [@Sendable () -> Void] = []
        for index in state.followers.indices where !state.followers[index].pending {
            state.followers[index].pending = true
            notices.append(state.followers[index].notify)
        }
        return notices
    }

    private static func enter(_ piece: Int, _ state: inout State) {
        let index = piece - state.firstPiece
        if index < state.pieces.count { state.pieces[index].readers += 1 } else { state.readersBeyond += 1 }
    }

    private static func leave(_ piece: Int, _ state: inout State) {
        let index = piece - state.firstPiece
        if index < state.pieces.count { state.pieces[index].readers -= 1 } else { state.readersBeyond -= 1 }
    }

    /// Bytes from the first retained piece to the end.
    private static func unread(_ state: State) -> Int {
        state.length - (state.pieces.first?.start ?? state.length)
    }

    /// In a window: gives up full pieces in front that no reader needs.
    private static func trim(_ state: inout State, _ budget: MemoryBudget) {
        guard state.window != nil, state.readers > 0 else { return }
        var passed = 0
        while passed < state.pieces.count, state.pieces[passed].readers == 0,
              state.pieces[passed].filled == state.pieces[passed].chunk.capacity {
            passed += 1
        }
        guard passed > 0 else { return }
        let freed = state.pieces[..<passed].reduce(0) { $0 + $1.chunk.capacity }
        state.pieces.removeFirst(passed)
        state.firstPiece += passed
        state.retained -= freed
        state.startIsGone = true
        budget.release(freed)
    }

    /// Trims, and hands out the wake of a paused writer that may go on: at half of the window.
    private static func trimForWriter(_ state: inout State, _ budget: MemoryBudget) -> (@Sendable () -> Void)? {
        guard let window = state.window else { return nil }
        trim(&state, budget)
        guard state.writerPaused, state.readers == 0 || unread(state) <= window / 2 else { return nil }
        state.writerPaused = false
        return state.writerWake
    }
}
