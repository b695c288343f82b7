internal import Synchronization

/// What readers do, on any thread.
extension GrowingBody {
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

    /// Appends up to `limit` slices at the cursor to `slices` and tells how the body stands after them.
    ///
    /// - Returns: the phase and whether the slices reach the end of what has arrived.
    public func read(
        at cursor: Cursor, into slices: inout [ByteSlice], limit: Int
    ) -> (phase: Phase, reachesEnd: Bool) {
        read(at: cursor, limit: limit) { slices.append($0) }
    }

    /// The same, slice by slice. `take` may be called under the lock: it must be quick and call nothing of the body.
    public func read(at cursor: Cursor, limit: Int, _ take: (ByteSlice) -> Void) -> (phase: Phase, reachesEnd: Bool) {
        if sealed.load(ordering: .acquiring) {
            // Complete and immutable: no lock.
            let reached = unsafe Self.read(sealedPieces, cursor, limit: limit, take)
            return (.complete, reached)
        }
        return state.withLock { state in
            // Sealed while this waited for the lock: the pieces are not in `state` any more.
            if sealed.load(ordering: .relaxed) {
                let reached = unsafe Self.read(sealedPieces, cursor, limit: limit, take)
                return (.complete, reached)
            }
            var index = cursor.piece - state.firstPiece
            var taken = 0
            while index < state.pieces.count, taken < limit {
                let piece = state.pieces[index]
                let from = max(0, cursor.offset - piece.start)
                if from < piece.filled {
                    take(ByteSlice(piece.chunk, from..<piece.filled))
                    taken += 1
                }
                index += 1
            }
            return (state.phase, index >= state.pieces.count)
        }
    }

    private static func read(_ pieces: ShortList<ByteSlice>, _ cursor: Cursor, limit: Int, _ take: (ByteSlice) -> Void) -> Bool {
        var start = 0
        var taken = 0
        for piece in pieces {
            let end = start + piece.count
            if end > cursor.offset {
                guard taken < limit else { return false }
                take(piece[max(0, cursor.offset - start)..<piece.count])
                taken += 1
            }
            start = end
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

    /// The follower is about to look: the next append notifies it again. Call before reading.
    public func rearm(id: Int) {
        state.withLock { state in
            if let index = state.followers.firstIndex(where: { $0.id == id }) { state.followers[index].pending = false }
        }
    }
}
