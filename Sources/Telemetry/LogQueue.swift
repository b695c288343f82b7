internal import Bytes

/// One loop's way to the access log: what the loop has filled waits here until the writer takes it.
///
/// ```
///   loop                       any thread                  log's thread
/// LogBuffer ──handOver(batch)→  LogQueue  ──exchange(batch)→ AccessLogWriter
///           ←──an empty one──             ←──the empty one──
/// ```
///
/// One instance a loop. The lock is taken once a batch, for a swap. Three batches go round: one is filled, one waits at most, one is written. As long as
/// one waits, because the sink is slow, the loop goes on filling the one it has, up to its capacity, and looks after each request whether it can be handed
/// over by now; what does not fit is dropped and counted, never waited for.
public final class LogQueue: Sendable {
    private struct State {
        /// Filled. One at most, until the loop ends.
        var waiting: [LogBatch] = []
        /// What the writer gave back.
        var spare: LogBatch?
    }

    private let state: Guarded<State>
    /// Bytes of records that one batch takes.
    let capacity: Int

    /// - Parameter capacity: bytes of records that one batch takes.
    public init(capacity: Int = LogSettings.batchCapacity) {
        self.capacity = capacity
        state = Guarded(State(spare: LogBatch(capacity: capacity)))
    }

    /// Lets the writer have `batch`, and gives an empty one for it. On the loop.
    /// - Parameter isLast: the loop ends: it waits behind those that wait.
    /// - Returns: whether it did: not while the one before waits.
    func handOver(_ batch: inout LogBatch, isLast: Bool) -> Bool {
        state.withLock { state in
            guard isLast || state.waiting.isEmpty else { return false }
            let next = state.spare.take() ?? LogBatch(capacity: capacity)
            state.waiting.append(batch)
            batch = next
            return true
        }
    }

    /// Exchanges `batch`, of which all was written, for the next one that waits. On the writer's thread.
    /// - Returns: false when none waits; then `batch` is empty.
    func exchange(_ batch: inout LogBatch) -> Bool {
        batch.removeAll()
        return state.withLock { state in
            guard !state.waiting.isEmpty else { return false }
            let next = state.waiting.removeFirst()
            state.spare = batch
            batch = next
            return true
        }
    }
}
