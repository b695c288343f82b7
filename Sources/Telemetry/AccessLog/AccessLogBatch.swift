import Bytes

/// Finished requests that wait to be written: their records, and one run of bytes for all their texts. A value without
/// a lock; each loop has three, which circulate between its `AccessLogFeed`, its `AccessLogQueue` and the writer.
struct AccessLogBatch: Sendable {
    /// The most bytes that records and texts may take together.
    let capacity: Int
    private(set) var records: [AccessLogRecord] = []
    private(set) var texts: [UInt8] = []
    /// The number of records that did not fit.
    private(set) var dropped: UInt64 = 0

    /// The largest capacity: the start of every text fits 32 bits.
    static let mostCapacity = 1 << 31

    /// Reserves all memory that the batch will ever use, so that appending never allocates. Reserved memory that is
    /// never touched stays virtual.
    init(capacity: Int) {
        let capacity = min(capacity, Self.mostCapacity)
        self.capacity = capacity
        records.reserveCapacity(capacity / MemoryLayout<AccessLogRecord>.stride)
        texts.reserveCapacity(capacity)
    }

    /// The number of lines.
    var count: Int { records.count }
    var isEmpty: Bool { records.isEmpty }
    /// Bytes taken, out of `capacity`.
    var used: Int { records.count * MemoryLayout<AccessLogRecord>.stride + texts.count }

    /// Appends one finished request. If it does not fit, it is counted as dropped.
    /// - Returns: whether it fitted.
    @inline(__always) // Into `AccessLogFeed.append`: the record and eight spans are not passed twice.
    mutating func append(
        _ record: AccessLogRecord,
        client: Span<UInt8>, method: Span<UInt8>, host: Span<UInt8>, target: Span<UInt8>, upstream: Span<UInt8>,
        detail: Span<UInt8>,
        referer: Span<UInt8>, userAgent: Span<UInt8>
    ) -> Bool {
        let longest =
            client.count + method.count + host.count + target.count + upstream.count + detail.count + referer.count
            + userAgent.count
        let room = min(longest, AccessLogText.allLimits)
        // A clipped request counts as longer than it becomes: near the end it is dropped too early, never too late.
        guard used + MemoryLayout<AccessLogRecord>.stride + room <= capacity else {
            dropped &+= 1
            return false
        }
        var record = record
        record.beginTexts(at: texts.count)
        texts.append(addingCapacity: room) { output in
            record.keep(client, as: .client, in: &output)
            record.keep(method, as: .method, in: &output)
            record.keep(host, as: .host, in: &output)
            record.keep(target, as: .target, in: &output)
            record.keep(upstream, as: .upstream, in: &output)
            record.keep(detail, as: .detail, in: &output)
            record.keep(referer, as: .referer, in: &output)
            record.keep(userAgent, as: .userAgent, in: &output)
        }
        records.append(record)
        return true
    }

    /// Adds the identifier of the request that was appended last; leaves it out if it does not fit.
    mutating func identifyLast(by id: Span<UInt8>) {
        guard !records.isEmpty, id.count <= AccessLogRecord.longestRequestID, used + id.count <= capacity else {
            return
        }
        texts.append(addingCapacity: id.count) { $0.append(copying: id) }
        records[records.count - 1].noteRequestID(length: id.count)
    }

    /// Adds what the handshake of the connection has agreed on to the request that was appended last, and has its
    /// identifier by now; leaves it out if it does not fit.
    mutating func secureLast(by security: Span<UInt8>) {
        let kept = security.extracting(first: AccessLogRecord.longestSecurity)
        guard !records.isEmpty, used + kept.count <= capacity else { return }
        texts.append(addingCapacity: kept.count) { $0.append(copying: kept) }
        records[records.count - 1].noteSecurity(length: kept.count, isClipped: kept.count < security.count)
    }

    /// Removes all records and keeps the memory.
    mutating func removeAll() {
        records.removeAll(keepingCapacity: true)
        texts.removeAll(keepingCapacity: true)
        dropped = 0
    }
}

/// One loop's path to the access log: a filled batch waits here until the writer takes it.
///
/// ```
///   loop                       any thread                  log's thread
/// AccessLogFeed ──handOver(batch)→  AccessLogQueue  ──exchange(batch)→ AccessLogWriter
///         ←──an empty one──               ←──the empty one──
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
