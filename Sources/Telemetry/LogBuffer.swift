internal import Bytes

/// The finished requests of one loop that are not yet handed to the writer of the access log.
///
/// On its loop, as all that is not `Sendable`. Appending takes no lock: an atomic instruction behind the stores into a batch, which the caches have long
/// forgotten, waits for all of them, and cost a hit 2 % of its CPU (22 November).
///
/// ```
/// empty ─append→ filling ─append at the mark, or the owner's time is up→ handOver ─taken→ empty
///                   ↑                                                       │
///                   └──────the writer has not taken the one before──────────┘      full: what comes is dropped
/// ```
public final class LogBuffer {
    /// What became of one appended record.
    public enum Outcome: Sendable, Equatable {
        case kept
        /// Kept, the first of its batch: see that it is handed over in good time.
        case keptFirst
        /// Kept, and there is enough for the writer: hand it over.
        case keptAtMark
        case dropped
    }

    private let batch: Exclusive<LogBatch>
    private let queue: LogQueue
    private let mark: Int

    /// - Parameter queue: where the batches go; this loop's alone.
    public init(_ queue: LogQueue) {
        self.queue = queue
        mark = min(queue.capacity / 2, LogSettings.mark)
        batch = Exclusive(LogBatch(capacity: queue.capacity))
    }

    /// Takes one finished request. The spans are copied, each up to its `TransactionText.limit`; the upstream address is empty when no origin was asked,
    /// the detail when there is nothing to say. Never allocates, never waits.
    public func append(
        _ record: TransactionRecord,
        client: Span<UInt8>, method: Span<UInt8>, host: Span<UInt8>, target: Span<UInt8>, upstream: Span<UInt8> = Span(),
        detail: Span<UInt8> = Span(), referer: Span<UInt8> = Span(), userAgent: Span<UInt8> = Span()
    ) -> Outcome {
        batch.use { batch in
            guard batch.append(
                record, client: client, method: method, host: host, target: target, upstream: upstream, detail: detail, referer: referer,
                userAgent: userAgent)
            else {
                batch.dropped &+= 1
                return .dropped
            }
            if batch.used >= mark { return .keptAtMark }
            return batch.count == 1 ? .keptFirst : .kept
        }
    }

    /// Whether nothing was recorded since the last batch was handed over.
    public var isEmpty: Bool { batch.use { $0.isEmpty } }

    /// Gives what is there to the writer, which is to be woken then.
    /// - Parameter isLast: the loop ends: it is taken in any case.
    /// - Returns: whether it was taken: not while the writer has not come for the batch before.
    public func handOver(isLast: Bool = false) -> Bool {
        batch.use { queue.handOver(&$0, isLast: isLast) }
    }
}
