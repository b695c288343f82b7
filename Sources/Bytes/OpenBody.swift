/// The state that a `GrowingBody` protects by its lock: the pieces, the readers, and how far the writer may go.
///
/// A state machine without a lock of its own: an event returns the remaining work (`Effects`), which is done after the
/// lock is released. While the pieces are here (until `isWhole`):
/// - `retained` is the sum of the pieces' capacities,
/// - `readers` is the sum of the pieces' readers and `readersBeyond`,
/// - all pieces but the last are full,
/// - `waitingReaders` of the `readers` have read up to `length`,
/// - without a `window`, no piece was freed.
struct OpenBody: Sendable {
    typealias Notice = BodyFollowers.Notice

    struct Effects: Sendable {
        var notices: [Notice] = []
        var writerWake: Notice?
    }

    private(set) var phase = GrowingBody.Phase.open
    private(set) var length = 0
    private(set) var retained = 0
    /// How many bytes may be unread; `nil` for any number. Larger than `leastWindow` if more bytes were unread when the
    /// window was set: then the window shrinks by one byte for every two that the slowest reader reads, so that the
    /// other readers get some bytes meanwhile.
    private(set) var window: Int?
    private var leastWindow = 0
    private(set) var trailers: ByteSlice?
    /// The pieces from number `firstPiece` on. Earlier pieces were freed.
    private var pieces = ShortList<BodyPiece>()
    private var firstPiece = 0
    private var readers = 0
    /// Readers that have read all pieces to their end, so that their next piece is not allocated yet.
    private var readersBeyond = 0
    /// Readers that have read all bytes that arrived, and wait for more.
    private var waitingReaders = 0
    private var holdUp = HoldUp()
    private var writerIsPaused = false
    /// Called, on any thread, when a full window has room again. Released at the body's end, so that a stored body does
    /// not keep its fetch alive.
    private var writerWake: Notice?
    private var followers = BodyFollowers()
    private let expectedLength: Int?

    init(expectedLength: Int?, window: Int?, writerWake: @escaping Notice) {
        self.expectedLength = expectedLength
        self.window = window.map { max($0, GrowingBody.smallestWindow) }
        leastWindow = self.window ?? 0
        self.writerWake = writerWake
    }

    /// The state of a complete body whose bytes are kept elsewhere.
    init(completeWith length: Int) {
        phase = .complete
        self.length = length
        expectedLength = nil
    }

    /// Whether the body is complete and has all bytes from the first on. The `GrowingBody` itself then holds the
    /// pieces, and readers are no longer counted.
    var isWhole: Bool { phase == .complete && firstPiece == 0 }

    /// Bytes from the first retained piece to the end.
    private var unread: Int { length - (pieces.first?.start ?? length) }

    private var isConsistent: Bool {
        if isWhole { return pieces.isEmpty }
        return retained == pieces.reduce(0) { $0 + $1.chunk.capacity }
            && readers == pieces.reduce(readersBeyond) { $0 + $1.readers }
            && pieces.allSatisfy { $0.readers >= 0 } && readersBeyond >= 0 && (0...readers).contains(waitingReaders)
            && pieces.dropLast().allSatisfy(\.isFull) && (window != nil || firstPiece == 0)
    }
}

// MARK: - The writer

extension OpenBody {
    mutating func append(
        _ bytes: Span<UInt8>, takingPieces: Bool = true, _ budget: MemoryBudget
    ) -> (GrowingBody.AppendResult, Effects) {
        guard phase == .open else { return (.accepted, Effects()) }
        guard takingPieces ? makeRoom(for: bytes.count, budget) : lastPieceRoom >= bytes.count else {
            return (.noMemory, Effects())
        }
        return write(bytes, budget)
    }

    /// Allocates the first piece.
    mutating func begin(_ budget: MemoryBudget) -> Bool {
        guard phase == .open, length == 0, pieces.isEmpty else { return true }
        return makeRoom(for: 1, budget)
    }

    /// Appends as many of `bytes` as fit into the last piece and, with `takingPieces`, into new pieces for which there
    /// is memory.
    mutating func appendPartially(_ bytes: Span<UInt8>, takingPieces: Bool, _ budget: MemoryBudget) -> (
        count: Int, isFull: Bool, Effects
    ) {
        guard phase == .open else { return (0, false, Effects()) }
        let count = min(bytes.count, takingPieces ? addPieces(for: bytes.count, budget) : lastPieceRoom)
        guard count > 0 else { return (0, false, Effects()) }
        let (result, effects) = write(bytes.extracting(0..<count), budget)
        return (count, result == .acceptedAndFull, effects)
    }

    /// Releases the followers and `writerWake`, with all objects that they keep alive.
    mutating func end(_ phase: GrowingBody.Phase, trailers: ByteSlice? = nil, _ budget: MemoryBudget) -> Effects {
        guard self.phase == .open else { return Effects() }
        defer { assert(isWhole || isConsistent) }
        self.phase = phase
        self.trailers = trailers
        if isWhole { compactLastPiece(budget) }
        let notices = followers.takeNotices()
        followers = BodyFollowers()
        writerWake = nil
        return Effects(notices: notices)
    }

    /// Takes out the bytes of a body that is whole. This state no longer holds them.
    mutating func takePieces() -> ShortList<ByteSlice> {
        defer { assert(isConsistent) }
        var taken = ShortList<ByteSlice>()
        for piece in pieces where piece.filled > 0 { taken.append(piece.bytes) }
        pieces = ShortList()
        return taken
    }

    mutating func limit(toWindow window: Int, _ budget: MemoryBudget) {
        guard phase == .open else { return }
        defer { assert(isConsistent) }
        leastWindow = max(window, GrowingBody.smallestWindow)
        self.window = leastWindow
        trim(budget)
        self.window = max(leastWindow, unread)
    }

    /// - Returns: false, with nothing changed, if there is no memory for `count` bytes.
    private mutating func makeRoom(for count: Int, _ budget: MemoryBudget) -> Bool {
        let former = pieces.count
        if addPieces(for: count, budget) >= count { return true }
        let added = pieces[former...].reduce(0) { $0 + $1.chunk.capacity }
        budget.release(added)
        retained -= added
        // Readers at the end were moved into the first added piece: they are beyond the last piece again.
        if former < pieces.count { readersBeyond += pieces[former].readers }
        pieces.truncate(to: former)
        return false
    }

    /// Adds pieces until there is room for `count` bytes, or no memory.
    /// - Returns: the number of bytes there is room for.
    private mutating func addPieces(for count: Int, _ budget: MemoryBudget) -> Int {
        var room = lastPieceRoom
        // Without a piece, the next one starts at `length`: all earlier pieces were full and are freed, or there was
        // none.
        var start = pieces.last.map { $0.start + $0.chunk.capacity } ?? length
        let former = pieces.count
        while room < count {
            let size = nextPieceSize(start: start, missing: count - room)
            guard budget.reserve(size) else { break }
            pieces.append(BodyPiece(chunk: Chunk(capacity: size), start: start))
            retained += size
            start += size
            room += size
        }
        if readersBeyond > 0, former < pieces.count {
            pieces[former].readers += readersBeyond
            readersBeyond = 0
        }
        return room
    }

    private var lastPieceRoom: Int { pieces.last.map { $0.chunk.capacity - $0.filled } ?? 0 }

    private func nextPieceSize(start: Int, missing: Int) -> Int {
        // At least `missing`, also where more bytes come than were expected: `mostTaken(by:)` counts on that.
        if let expectedLength, expectedLength > start {
            return GrowingBody.firstPiece(expecting: max(expectedLength - start, missing))
        }
        return start == 0
            ? max(GrowingBody.firstPieceSize, min(missing, GrowingBody.laterPieceSize)) : GrowingBody.laterPieceSize
    }

    /// Writes into the free space of the pieces, which is large enough for `bytes`.
    private mutating func write(_ bytes: Span<UInt8>, _ budget: MemoryBudget) -> (GrowingBody.AppendResult, Effects) {
        defer { assert(isConsistent) }
        var offset = 0
        // Begins at the first piece with free space. Several empty pieces may have been added behind it.
        var index = pieces.count - 1
        while index > 0, pieces[index].filled == 0, !pieces[index - 1].isFull { index -= 1 }
        while offset < bytes.count {
            pieces.update(index) { piece in
                let part = min(bytes.count - offset, piece.chunk.capacity - piece.filled)
                piece.chunk.write(bytes.extracting(offset..<offset + part), at: piece.filled)
                piece.filled += part
                offset += part
            }
            index += 1
        }
        length += bytes.count
        if !bytes.isEmpty { waitingReaders = 0 }
        trim(budget)
        // A writer that found no memory for its last bytes may write once more, although the window is already full and
        // its readers have not made room: the flag must then stay set.
        writerIsPaused = window.map { unread >= $0 } ?? false
        return (writerIsPaused ? .acceptedAndFull : .accepted, Effects(notices: followers.takeNotices()))
    }

    /// Moves the last piece into a chunk of exact size. A body of unknown length ends somewhere within a piece, and a
    /// complete body may be kept for long.
    private mutating func compactLastPiece(_ budget: MemoryBudget) {
        guard let last = pieces.last, !last.isFull else { return }
        let exact = Chunk(capacity: last.filled)
        exact.write(last.chunk.span(0..<last.filled), at: 0)
        let freed = last.chunk.capacity - last.filled
        pieces[pieces.count - 1] = BodyPiece(
            chunk: exact, start: last.start, filled: last.filled, readers: last.readers)
        retained -= freed
        budget.release(freed)
    }

    /// Frees the full pieces at the front that every reader has passed. Without a window, all pieces stay.
    private mutating func trim(_ budget: MemoryBudget) {
        guard let window, readers > 0 else { return }
        var passed = 0
        while passed < pieces.count, pieces[passed].readers == 0, pieces[passed].isFull { passed += 1 }
        guard passed > 0 else { return }
        let freed = pieces[..<passed].reduce(0) { $0 + $1.chunk.capacity }
        pieces.removeFirst(passed)
        firstPiece += passed
        retained -= freed
        budget.release(freed)
        self.window = max(leastWindow, window - freed / 2)
    }
}

// MARK: - The readers

extension OpenBody {
    /// `nil` if the first bytes were freed.
    mutating func attach() -> GrowingBody.Cursor? {
        guard firstPiece == 0 else { return nil }
        let cursor = GrowingBody.Cursor(offset: 0, piece: 0)
        if isWhole { return cursor }
        defer { assert(isConsistent) }
        readers += 1
        if length == 0 { waitingReaders += 1 }
        enter(0)
        return cursor
    }

    mutating func detach(_ cursor: GrowingBody.Cursor, _ budget: MemoryBudget) -> Effects {
        if isWhole { return Effects() }
        defer { assert(isConsistent) }
        readers -= 1
        if cursor.offset == length { waitingReaders -= 1 }
        leave(cursor.piece)
        return trimForWriter(budget)
    }

    mutating func advance(_ cursor: inout GrowingBody.Cursor, by count: Int, _ budget: MemoryBudget) -> Effects {
        cursor.offset += count
        if isWhole { return Effects() }
        defer { assert(isConsistent) }
        if count > 0, cursor.offset == length { waitingReaders += 1 }
        var piece = cursor.piece
        while piece - firstPiece < pieces.count {
            let current = pieces[piece - firstPiece]
            guard cursor.offset >= current.start + current.filled, current.isFull else { break }
            piece += 1
        }
        if piece != cursor.piece {
            leave(cursor.piece)
            enter(piece)
            cursor.piece = piece
        }
        return trimForWriter(budget)
    }

    /// Passes up to `limit` slices, from the cursor on, to `take`; none once it has `bytes` bytes.
    /// - Returns: whether the slices reach the end of the bytes that have arrived.
    func read(at cursor: GrowingBody.Cursor, limit: Int, bytes: Int, _ take: (ByteSlice) -> Void) -> Bool {
        var index = cursor.piece - firstPiece
        var (taken, size) = (0, 0)
        while index < pieces.count, taken < limit, size < bytes {
            let piece = pieces[index]
            let from = max(0, cursor.offset - piece.start)
            if from < piece.filled {
                take(ByteSlice(piece.chunk, from..<piece.filled))
                taken += 1
                size += piece.filled - from
            }
            index += 1
        }
        return index >= pieces.count
    }

    /// Whether the reader at `cursor` keeps other readers waiting, and whether this reader, together with earlier ones
    /// that did so, has kept them waiting for too long.
    mutating func isHeldUpTooLong(by cursor: GrowingBody.Cursor, at now: Int64, _ bound: HoldUpBound) -> Bool {
        guard phase == .open, writerIsPaused, waitingReaders > 0, cursor.piece == firstPiece else { return false }
        return holdUp.isTooLong(readTo: cursor.offset, at: now, bound)
    }

    /// The pieces of a body that ended short.
    var failedPieces: ShortList<ByteSlice> {
        precondition(phase == .failed && firstPiece == 0, "a part of a body that still changes")
        return ShortList(pieces.compactMap { $0.filled > 0 ? $0.bytes : nil })
    }

    /// If the body has already ended, the notice is due at once.
    mutating func follow(id: Int, _ notify: @escaping Notice) -> Effects {
        guard phase == .open else { return Effects(notices: [notify]) }
        followers.add(id: id, notify)
        return Effects()
    }

    mutating func rearm(id: Int) { followers.rearm(id: id) }

    private mutating func enter(_ piece: Int) {
        let index = piece - firstPiece
        if index < pieces.count { pieces[index].readers += 1 } else { readersBeyond += 1 }
    }

    private mutating func leave(_ piece: Int) {
        let index = piece - firstPiece
        if index < pieces.count { pieces[index].readers -= 1 } else { readersBeyond -= 1 }
    }

    /// Trims, and wakes a paused writer once half of the least window is free, or no reader is left.
    private mutating func trimForWriter(_ budget: MemoryBudget) -> Effects {
        guard window != nil else { return Effects() }
        trim(budget)
        guard writerIsPaused, let window, readers == 0 || unread <= window - leastWindow / 2 else { return Effects() }
        writerIsPaused = false
        return Effects(writerWake: writerWake)
    }
}
