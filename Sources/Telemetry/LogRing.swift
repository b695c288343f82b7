internal import Bytes

/// One loop's way to the access log: two batches that take turns, one being filled by the loop, one being written.
///
/// One instance a loop. The loop appends, the log writer takes; the lock is held for a copy of a few hundred bytes or
/// for a swap. Memory is bounded: what does not fit is dropped and counted, never waited for.
public final class LogRing: Sendable {
    /// What became of one appended record.
    public enum Outcome: Sendable, Equatable {
        case kept
        /// Kept, and the batch has just passed its mark: wake the writer. Said once a batch.
        case keptAtMark
        case dropped
    }

    private struct State {
        var filling: LogBatch
        var dropped: UInt64 = 0
        var isPastMark = false
    }

    private let state: Guarded<State>
    private let mark: Int
    private let capacity: Int

    /// - Parameter capacity: bytes that may wait; the mark is at half of it at most. One ring's worth more is with the writer.
    public init(capacity: Int = LogSettings.ringCapacity) {
        self.capacity = capacity
        mark = min(capacity / 2, LogSettings.mark)
        state = Guarded(State(filling: LogBatch(capacity: capacity)))
    }

    /// Takes one finished request. On the owning loop. The spans are copied, each up to its `TransactionText.limit`;
    /// the upstream address is empty when no origin was asked. Never allocates, never waits for the disk.
    @discardableResult
    public func append(
        _ record: TransactionRecord,
        client: Span<UInt8>, method: Span<UInt8>, host: Span<UInt8>, target: Span<UInt8>,
        referer: Span<UInt8> = Span(), userAgent: Span<UInt8> = Span(), upstream: Span<UInt8> = Span()
    ) -> Outcome {
        state.withLock { state in
            guard state.filling.append(
                record, client: client, method: method, host: host, target: target,
                referer: referer, userAgent: userAgent, upstream: upstream)
            else {
                state.dropped &+= 1
                return .dropped
            }
            guard !state.isPastMark, state.filling.used >= mark else { return .kept }
            state.isPastMark = true
            return .keptAtMark
        }
    }

    /// Exchanges the filled batch for `batch`, which is emptied first. On the writer's thread.
    /// - Returns: how many records were dropped since the last call.
    public func exchange(_ batch: inout LogBatch) -> UInt64 {
        batch.removeAll()
        return state.withLock { state in
            swap(&state.filling, &batch)
            state.isPastMark = false
            defer { state.dropped = 0 }
            return state.dropped
        }
    }

    /// An empty batch that fits this ring, for `exchange`.
    public func makeBatch() -> LogBatch { LogBatch(capacity: capacity) }
}
