import Bytes

/// One loop's path to the access log: what the loop has filled waits here until the writer takes it.
///
/// ```
///   loop                       any thread                  log's thread
/// AccessLogBuffer ──handOver(batch)→  AccessLogQueue  ──exchange(batch)→ AccessLogWriter
///           ←──an empty one──             ←──the empty one──
/// ```
///
/// One instance per loop. The lock is taken once per batch, for a swap. Three batches circulate: one is filled, at most
/// one waits, one is written. As long as one waits, because the sink is slow, the loop goes on filling the one it has,
/// up to its capacity, and after each request checks whether it can be handed over by now; what does not fit is dropped
/// and counted, never waited for.
public final class AccessLogQueue: Sendable {
    private struct State {
        /// Filled. One at most, until the loop ends.
        var waiting: [AccessLogBatch] = []
        /// What the writer gave back.
        var spare: AccessLogBatch?
    }

    private let state: Guarded<State>
    /// Bytes of records that one batch takes.
    let capacity: Int

    /// - Parameter capacity: bytes of records that one batch takes.
    public init(capacity: Int = AccessLogSettings().batchCapacity) {
        self.capacity = capacity
        state = Guarded(State(spare: AccessLogBatch(capacity: capacity)))
    }

    /// Gives `batch` to the writer and puts an empty one in its place. On the loop.
    /// - Parameter isLast: the loop ends: it queues up even if another waits.
    /// - Returns: whether it did: not while another waits.
    func handOver(_ batch: inout AccessLogBatch, isLast: Bool) -> Bool {
        state.withLock { state in
            guard isLast || state.waiting.isEmpty else { return false }
            let next = state.spare.take() ?? AccessLogBatch(capacity: capacity)
            state.waiting.append(batch)
            batch = next
            return true
        }
    }

    /// Exchanges `batch`, all of which was written, for the next one that waits. On the writer's thread.
    /// - Returns: false if none waits; then `batch` is empty.
    func exchange(_ batch: inout AccessLogBatch) -> Bool {
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
