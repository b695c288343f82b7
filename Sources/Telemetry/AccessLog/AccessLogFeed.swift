import Bytes

/// One loop's feed of the access log: gathers its finished requests in a batch, and hands the batch to the log's writer
/// when there are enough of them, otherwise after the flush time.
///
/// Used on its loop, like every type that is not `Sendable`. Appending takes no lock: an atomic instruction waits for
/// all stores before it, and the stores into a batch miss the caches. That wait cost a hit 2 % of its CPU.
///
/// ```
/// empty ─append→ filling ─append at the mark, or the flush time→ handed over ─→ empty
///                   ↑                                                │
///                   └──the writer has not taken the batch before─────┘      full: the next record is dropped
/// ```
public final class AccessLogFeed {
    private let batch: Exclusive<AccessLogBatch>
    private let queue: AccessLogQueue
    private let mark: Int
    private let startTimer: (_ whenDue: @escaping () -> Void) -> Void
    private let wakeWriter: () -> Void
    private var isTimerRunning = false
    private var hasEnded = false

    /// - Parameters:
    ///   - queue: gets the batches; used by this loop alone.
    ///   - startTimer: calls its argument on the loop after the flush time, the longest time that a record waits here.
    ///   - wakeWriter: called when a batch has been handed over.
    public init(
        _ queue: AccessLogQueue, startTimer: @escaping (_ whenDue: @escaping () -> Void) -> Void,
        wakeWriter: @escaping () -> Void
    ) {
        self.queue = queue
        mark = min(queue.capacity / 2, AccessLogSettings.mark)
        batch = Exclusive(AccessLogBatch(capacity: queue.capacity))
        self.startTimer = startTimer
        self.wakeWriter = wakeWriter
    }

    /// Appends one finished request. The spans are copied, each up to its `AccessLogText.limit`. The upstream address
    /// is empty if no origin was asked, the detail if there is none. Never allocates, never waits.
    public func append(
        _ record: AccessLogRecord,
        client: Span<UInt8>, method: Span<UInt8>, host: Span<UInt8>, target: Span<UInt8>,
        upstream: Span<UInt8> = Span(),
        detail: Span<UInt8> = Span(), referer: Span<UInt8> = Span(), userAgent: Span<UInt8> = Span()
    ) {
        keep(
            record, client: client, method: method, host: host, target: target, upstream: upstream, detail: detail,
            referer: referer, userAgent: userAgent, requestID: Span(), security: Span())
    }

    /// Appends one finished request that has an identifier, as few do, or came over TLS.
    /// - Parameter security: what the handshake has agreed on (`AccessLogSecurity`); empty: there was none.
    @inline(never)
    public func append(
        _ record: AccessLogRecord,
        client: Span<UInt8>, method: Span<UInt8>, host: Span<UInt8>, target: Span<UInt8>, upstream: Span<UInt8>,
        detail: Span<UInt8>, referer: Span<UInt8>, userAgent: Span<UInt8>, requestID: Span<UInt8>,
        security: Span<UInt8>
    ) {
        keep(
            record, client: client, method: method, host: host, target: target, upstream: upstream, detail: detail,
            referer: referer, userAgent: userAgent, requestID: requestID, security: security)
    }

    @inline(__always)
    private func keep(
        _ record: AccessLogRecord,
        client: Span<UInt8>, method: Span<UInt8>, host: Span<UInt8>, target: Span<UInt8>, upstream: Span<UInt8>,
        detail: Span<UInt8>, referer: Span<UInt8>, userAgent: Span<UInt8>, requestID: Span<UInt8>,
        security: Span<UInt8>
    ) {
        let (isDue, isFirst) = batch.use { batch in
            let isKept = batch.append(
                record, client: client, method: method, host: host, target: target, upstream: upstream,
                detail: detail, referer: referer, userAgent: userAgent)
            if isKept, !requestID.isEmpty { batch.identifyLast(by: requestID) }
            if isKept, !security.isEmpty { batch.secureLast(by: security) }
            // Also if there was no room: the writer may have taken the batch before meanwhile.
            return (!isKept || batch.used >= mark, batch.count == 1)
        }
        if isDue || isFirst && hasEnded { handOver() } else if isFirst { startWait() }
    }

    /// The loop ends: hands the batch over, and each record that is appended from now on at once.
    public func finish() {
        hasEnded = true
        handOver()
    }

    private func handOver() {
        let (isEmpty, isTaken) = batch.use { batch in
            if batch.isEmpty { (true, false) } else { (false, queue.handOver(&batch, isLast: hasEnded)) }
        }
        if isTaken { wakeWriter() } else if !isEmpty { startWait() }
    }

    /// Starts the flush timer. The timer of a batch that was handed over early serves the next batch.
    private func startWait() {
        guard !isTimerRunning, !hasEnded else { return }
        isTimerRunning = true
        startTimer { [self] in
            isTimerRunning = false
            handOver()
        }
    }
}
