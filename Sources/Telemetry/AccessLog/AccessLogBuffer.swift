import Bytes

/// The finished requests of one loop that have not yet been handed to the access log's writer.
///
/// Used on its loop, like every type that is not `Sendable`. Appending takes no lock: an atomic instruction waits for
/// all stores before it, and the stores into a batch miss the caches. That wait cost a hit 2 % of its CPU.
///
/// ```
/// empty ─append→ filling ─append at the mark, or the owner's timer→ handOver ─taken→ empty
///                   ↑                                                       │
///                   └──────the writer has not taken the batch before────────┘      full: the next record is dropped
/// ```
public final class AccessLogBuffer {
    /// The outcome of appending one record.
    public enum Outcome: Sendable, Equatable {
        case kept
        /// Kept as the first record of its batch: make sure that the batch is handed over in time.
        case keptFirst
        /// Kept, and the batch now has enough records for the writer: hand it over.
        case keptAtMark
        case dropped
    }

    private let batch: Exclusive<AccessLogBatch>
    private let queue: AccessLogQueue
    private let mark: Int

    /// - Parameter queue: gets the batches; used by this loop alone.
    public init(_ queue: AccessLogQueue) {
        self.queue = queue
        mark = min(queue.capacity / 2, AccessLogSettings.mark)
        batch = Exclusive(AccessLogBatch(capacity: queue.capacity))
    }

    /// Appends one finished request. The spans are copied, each up to its `TransactionText.limit`. The upstream address
    /// is empty if no origin was asked, the detail if there is none. Never allocates, never waits.
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

    /// Whether no record was appended since the last batch was handed over.
    public var isEmpty: Bool { batch.use { $0.isEmpty } }

    /// Gives the batch to the writer. If it was taken, wake the writer.
    /// - Parameter isLast: the loop ends: the batch is taken in any case.
    /// - Returns: whether the batch was taken: not while the batch before it still waits for the writer.
    public func handOver(isLast: Bool = false) -> Bool {
        batch.use { queue.handOver(&$0, isLast: isLast) }
    }
}
