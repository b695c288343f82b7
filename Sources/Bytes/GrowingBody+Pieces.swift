/// The pieces, under the lock: making room, counting readers, giving up what all have passed.
extension GrowingBody {
    func makeRoom(for count: Int, _ state: inout State) -> Bool {
        var free = 0
        if let last = state.pieces.last { free = last.chunk.capacity - last.filled }
        // With no piece at hand all before are full and given up, or there were none.
        var start = state.pieces.last.map { $0.start + $0.chunk.capacity } ?? state.length
        var missing = count - free
        let former = state.pieces.count
        while missing > 0 {
            let size = nextPieceSize(start: start, missing: missing)
            guard budget.reserve(size) else {
                let added = state.pieces[former...].reduce(0) { $0 + $1.chunk.capacity }
                budget.release(added)
                state.retained -= added
                state.pieces.truncate(to: former)
                return false
            }
            state.pieces.append(Piece(chunk: Chunk(capacity: size), start: start, filled: 0, readers: 0))
            state.retained += size
            start += size
            missing -= size
        }
        if state.readersBeyond > 0, former < state.pieces.count {
            state.pieces[former].readers += state.readersBeyond
            state.readersBeyond = 0
        }
        return true
    }

    func nextPieceSize(start: Int, missing: Int) -> Int {
        if let expectedLength, expectedLength > start { return max(1, min(expectedLength - start, Self.laterPieceSize)) }
        return start == 0 ? max(Self.firstPieceSize, min(missing, Self.laterPieceSize)) : Self.laterPieceSize
    }

    /// A body of unknown length ends somewhere in a piece: what is complete may be kept for long, so it gets no slack.
    static func compactLastPiece(_ state: inout State, _ budget: MemoryBudget) {
        guard let last = state.pieces.last, last.filled < last.chunk.capacity else { return }
        let exact = Chunk(capacity: last.filled)
        exact.write(last.chunk.span(0..<last.filled), at: 0)
        let freed = last.chunk.capacity - last.filled
        state.pieces[state.pieces.count - 1] = Piece(chunk: exact, start: last.start, filled: last.filled, readers: last.readers)
        state.retained -= freed
        budget.release(freed)
    }

    static func takeNotices(_ state: inout State) -> [@Sendable () -> Void] {
        var notices: [@Sendable () -> Void] = []
        for index in state.followers.indices where !state.followers[index].pending {
            state.followers[index].pending = true
            notices.append(state.followers[index].notify)
        }
        return notices
    }

    static func enter(_ piece: Int, _ state: inout State) {
        let index = piece - state.firstPiece
        if index < state.pieces.count { state.pieces[index].readers += 1 } else { state.readersBeyond += 1 }
    }

    static func leave(_ piece: Int, _ state: inout State) {
        let index = piece - state.firstPiece
        if index < state.pieces.count { state.pieces[index].readers -= 1 } else { state.readersBeyond -= 1 }
    }

    /// Bytes from the first retained piece to the end.
    static func unread(_ state: State) -> Int {
        state.length - (state.pieces.first?.start ?? state.length)
    }

    /// In a window: gives up full pieces in front that no reader needs.
    static func trim(_ state: inout State, _ budget: MemoryBudget) {
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
    static func trimForWriter(_ state: inout State, _ budget: MemoryBudget) -> (@Sendable () -> Void)? {
        guard let window = state.window else { return nil }
        trim(&state, budget)
        guard state.writerPaused, state.readers == 0 || unread(state) <= window / 2 else { return nil }
        state.writerPaused = false
        return state.writerWake
    }

    /// The bytes of `range` of a body that has ended, as they lie in memory.
    func appendPieces(of range: Range<Int>, to slices: inout [ByteSlice]) {
        let all = completePieces ?? state.withLock { state in
            precondition(state.phase != .open && !state.startIsGone, "a part of a body that still changes")
            return ShortList(state.pieces.compactMap { $0.filled > 0 ? ByteSlice($0.chunk, 0..<$0.filled) : nil })
        }
        var start = 0
        for piece in all {
            let wanted = range.clamped(to: start..<start + piece.count)
            if !wanted.isEmpty { slices.append(piece[wanted.lowerBound - start..<wanted.upperBound - start]) }
            start += piece.count
        }
    }
}
