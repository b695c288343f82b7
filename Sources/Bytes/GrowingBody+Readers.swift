import Synchronization

/// The readers' side. Any thread.
extension GrowingBody {
    /// A cursor at the first byte, or `nil` if the first bytes were freed.
    public func attach() -> Cursor? {
        if sealed.load(ordering: .acquiring) { return Cursor(offset: 0, piece: 0) }
        return state.withLock { $0.attach() }
    }

    /// Ends the reader at `cursor`, and frees the pieces that only this reader still needed.
    public func detach(_ cursor: consuming Cursor) {
        if sealed.load(ordering: .acquiring) { return }
        perform(state.withLock { $0.detach(cursor, budget) })
    }

    /// Appends up to `limit` slices, from the cursor on, to `slices`; none once there are `bytes` bytes.
    ///
    /// - Returns: the phase, and whether the slices reach the end of the bytes that have arrived.
    public func read(
        at cursor: Cursor, into slices: inout [ByteSlice], limit: Int, bytes: Int = .max
    ) -> (phase: Phase, reachesEnd: Bool) {
        read(at: cursor, limit: limit, bytes: bytes) { slices.append($0) }
    }

    /// Passes up to `limit` slices, from the cursor on, to `take`, one by one; none once it has `bytes` bytes. `take` may
    /// be called under the lock: it must be quick, and must not call the body.
    /// - Returns: the phase, and whether the slices reach the end of the bytes that have arrived.
    public func read(
        at cursor: Cursor, limit: Int, bytes: Int = .max, _ take: (ByteSlice) -> Void
    ) -> (phase: Phase, reachesEnd: Bool) {
        if sealed.load(ordering: .acquiring) {
            // Complete and immutable: no lock.
            let reached = unsafe Self.read(sealedPieces, cursor, limit: limit, bytes: bytes, take)
            return (.complete, reached)
        }
        return state.withLock { state in
            // The body was sealed while this call waited for the lock.
            if sealed.load(ordering: .relaxed) {
                let reached = unsafe Self.read(sealedPieces, cursor, limit: limit, bytes: bytes, take)
                return (.complete, reached)
            }
            return (state.phase, state.read(at: cursor, limit: limit, bytes: bytes, take))
        }
    }

    private static func read(
        _ pieces: ShortList<ByteSlice>, _ cursor: Cursor, limit: Int, bytes: Int, _ take: (ByteSlice) -> Void
    ) -> Bool {
        var (index, start) = (cursor.sealedPiece, cursor.sealedStart)
        var (taken, size) = (0, 0)
        while index < pieces.count {
            let piece = pieces[index]
            let end = start + piece.count
            if end > cursor.offset {
                guard taken < limit, size < bytes else { return false }
                let slice = piece[max(0, cursor.offset - start)..<piece.count]
                take(slice)
                taken += 1
                size += slice.count
            }
            start = end
            index += 1
        }
        return true
    }

    /// Moves the cursor over `count` bytes that were read.
    public func advance(_ cursor: inout Cursor, by count: Int) {
        if sealed.load(ordering: .acquiring) {
            cursor.offset += count
            // At the end, where most readers are at once, there is nothing to pass.
            if unsafe cursor.offset < sealedLength { unsafe Self.move(&cursor, in: sealedPieces) }
            return
        }
        perform(state.withLock { $0.advance(&cursor, by: count, budget) })
    }

    /// Moves the cursor's piece to that of its next byte.
    private static func move(_ cursor: inout Cursor, in pieces: ShortList<ByteSlice>) {
        while cursor.sealedPiece < pieces.count {
            let end = cursor.sealedStart + pieces[cursor.sealedPiece].count
            guard end <= cursor.offset else { return }
            cursor.sealedPiece += 1
            cursor.sealedStart = end
        }
    }

    /// Registers a follower: calls `notify` on the writer's thread when more bytes have arrived or the body has ended,
    /// once per `rearm`. If the body has already ended, `notify` is called at once.
    public func follow(id: Int, notify: @escaping @Sendable () -> Void) {
        perform(state.withLock { $0.follow(id: id, notify) })
    }

    /// Lets the next append notify the follower again. Call before reading.
    public func rearm(id: Int) { state.withLock { $0.rearm(id: id) } }

    /// Whether the reader at `cursor` has held up the others for too long: the window is full because of this reader,
    /// another reader has read all bytes that arrived and waits for more, and fewer bytes were read in this state than
    /// `bound` demands.
    ///
    /// For readers whose clients accept no more bytes for now: call every `HoldUpBound.interval` from then on.
    /// - Parameter now: nanoseconds of the loops' clock.
    public func isHeldUpTooLong(by cursor: Cursor, at now: Int64, _ bound: HoldUpBound) -> Bool {
        if sealed.load(ordering: .acquiring) { return false }
        return state.withLock { $0.isHeldUpTooLong(by: cursor, at: now, bound) }
    }

    /// Appends the bytes of `range` as slices of the body's own memory. The body must have ended.
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
