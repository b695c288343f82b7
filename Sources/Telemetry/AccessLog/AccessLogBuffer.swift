import Bytes

/// The finished requests of one loop that have not yet been handed to the access log's writer.
///
/// On its loop, like everything that is not `Sendable`. Appending takes no lock: an atomic instruction waits for all
/// stores before it, and those into a batch miss the caches; that cost a hit 2 % of its CPU.
///
/// ```
/// empty ─append→ filling ─append at the mark, or the owner's timer→ handOver ─taken→ empty
///                   ↑                                                       │
///                   └──────the writer has not taken the one before──────────┘      full: the next is dropped
/// ```
public final class AccessLogBuffer {
    /// What became of one appended record.
    public enum Outcome: Sendable, Equatable {
        case kept
        /// Kept, the first of its batch: make sure that it is handed over in time.
        case keptFirst
        /// Kept, and now there is enough for the writer: hand it over.
        case keptAtMark
        case dropped
    }

    private let batch: Exclusive<AccessLogBatch>
    private let queue: AccessLogQueue
    private let mark: Int

    /// - Parameter queue: where the batches go; this loop's alone.
    public init(_ queue: AccessLogQueue) {
        self.queue = queue
        mark = min(queue.capacity / 2, AccessLogSettings.mark)
        batch = Exclusive(AccessLogBatch(capacity: queue.capacity))
    }

    /// Takes one finished request. The spans are copied, each up to its `TransactionText.limit`; the upstream address
    /// is empty if no origin was asked, the detail if there is nothing to say. Never allocates, never waits.
    public func append(
        _ record: TransactionRecord,
        client: Span<UInt8>, method: Span<UInt8>, host: Span<UInt8>, target: Span<UInt8>,
        upstream: Span<UInt8> = Span(),
        detail: Span<UInt8> = Span(), referer: Span<UInt8> = Span(), userAgent: Span<UInt8> = Span()
    ) -> Outcome {
        batch.use { batch in
            guard
                batch.append(
                    record, client: client, method: method, host: host, target: target, upstream: upstream,
                    detail: detail, referer: referer,
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

    /// Gives what is there to the writer; wake it then.
    /// - Parameter isLast: the loop ends: it is taken in any case.
    /// - Returns: whether it was taken: not while the batch before still waits for the writer.
    public func handOver(isLast: Bool = false) -> Bool {
        batch.use { queue.handOver(&$0, isLast: isLast) }
    }
}
