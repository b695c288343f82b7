import Synchronization

/// What readers do, on any thread.
extension GrowingBody {
    /// A cursor at the first byte, or `nil` when the beginning is gone.
    public func attach() -> Cursor? {
        if sealed.load(ordering: .acquiring) { return Cursor(offset: 0, piece: 0) }
        return state.withLock { $0.attach() }
    }

    /// Gives the cursor back; what only it still needed is freed.
    public func detach(_ cursor: consuming Cursor) {
        if sealed.load(ordering: .acquiring) { return }
        perform(state.withLock { $0.detach(cursor, budget) })
    }

    /// Appends up to `limit` slices at the cursor to `slices` and tells how the body stands after them.
    ///
    /// - Returns: the phase and whether the slices reach the end of what has arrived.
    public func read(
        at cursor: Cursor, into slices: inout [ByteSlice], limit: Int
    ) -> (phase: Phase, reachesEnd: Bool) {
        read(at: cursor, limit: limit) { slices.append($0) }
    }

    /// Hands up to `limit` slices at the cursor to `take`, one by one, and tells how the body stands after them. `take`
    /// may be called under the lock: it must be quick and call nothing of the body.
    public func read(at cursor: Cursor, limit: Int, _ take: (ByteSlice) -> Void) -> (phase: Phase, reachesEnd: Bool) {
        if sealed.load(ordering: .acquiring) {
            // Complete and immutable: no lock.
            let reached = unsafe Self.read(sealedPieces, cursor, limit: limit, take)
            return (.complete, reached)
        }
        return state.withLock { state in
            // Sealed while this waited for the lock.
            if sealed.load(ordering: .relaxed) {
                let reached = unsafe Self.read(sealedPieces, cursor, limit: limit, take)
                return (.complete, reached)
            }
            return (state.phase, state.read(at: cursor, limit: limit, take))
        }
    }

    private static func read(_ pieces: ShortList<ByteSlice>, _ cursor: Cursor, limit: Int, _ take: (ByteSlice) -> Void)
        -> Bool
    {
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
        perform(state.withLock { $0.advance(&cursor, by: count, budget) })
    }

    /// Asks that `notify` be called, on the writer's thread, when there is more or the end; once per `rearm`.
    /// The call comes at once when the body has already ended.
    public func follow(id: Int, notify: @escaping @Sendable () -> Void) {
        perform(state.withLock { $0.follow(id: id, notify) })
    }

    /// The follower is about to look: the next append notifies it again. Call before reading.
    public func rearm(id: Int) { state.withLock { $0.rearm(id: id) } }

    /// Whether who reads at `cursor` is to make way: the window is full because of it, another reader has read all there
    /// is and waits, and what was read while that is so is less than `bound` asks.
    ///
    /// For readers whose clients take no more for now, every `HoldUpBound.interval` after that has begun.
    /// - Parameter now: nanoseconds of the loops' clock.
    public func isHeldUpTooLong(by cursor: Cursor, at now: Int64, _ bound: HoldUpBound) -> Bool {
        if sealed.load(ordering: .acquiring) { return false }
        return state.withLock { $0.isHeldUpTooLong(by: cursor, at: now, bound) }
    }

    /// Appends the bytes of `range` of a body that has ended, as they lie in memory.
    func appendPieces(of range: Range<Int>, to slices: inout [ByteSlice]) {
        let all = completePieces ?? state.withLock { $0.failedPieces }
        var start = 0
        for piece in all {
            let wanted = range.clamped(to: start..<start + piece.count)
            if !wanted.isEmpty { slices.append(piece[wanted.lowerBound - start..<wanted.upperBound - start]) }
            start += piece.count
        }
    }
}
