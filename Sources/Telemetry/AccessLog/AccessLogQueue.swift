import Bytes

/// One loop's path to the access log: a filled batch waits here until the writer takes it.
///
/// ```
///   loop                       any thread                  log's thread
/// AccessLogBuffer ──handOver(batch)→  AccessLogQueue  ──exchange(batch)→ AccessLogWriter
///           ←──an empty one──             ←──the empty one──
/// ```
///
/// One instance per loop. The lock is taken once per batch, for a swap. Three batches circulate: one is filled, at most
/// one waits, one is written. While one waits because the sink is slow, the loop goes on filling its own batch, up to
/// its capacity, and after each request checks whether the batch can be handed over by now. A record that does not fit
/// is dropped and counted; the loop never waits.
public final class AccessLogQueue: Sendable {
    private struct State {
        /// Filled batches. At most one, until the loop ends.
        var waiting: [AccessLogBatch] = []
        /// The batch that the writer gave back.
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
    /// - Parameter isLast: the loop ends: the batch queues up even if another waits.
    /// - Returns: whether the batch was given: not while another waits.
    func handOver(_ batch: inout AccessLogBatch, isLast: Bool) -> Bool {
        state.withLock { state in
            guard isLast || state.waiting.isEmpty else { return false }
            let next = state.spare.take() ?? AccessLogBatch(capacity: capacity)
            state.waiting.append(batch)
            batch = next
            return true
        }
    }

    /// Exchanges `batch`, all of whose records were written, for the next one that waits. On the writer's thread.
    /// - Returns: false if no batch waits; then `batch` is empty.
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
