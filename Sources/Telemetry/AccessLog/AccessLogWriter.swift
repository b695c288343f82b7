import Bytes

/// Empties the queues of all loops into one sink, a line for each record.
///
/// Owned by one thread at a time: the thread that writes the log calls `drain` when a loop has handed over a batch, and
/// once more at the end. A sink that fails costs lines, which are counted, and has no other effect.
public struct AccessLogWriter<Sink: AccessLogSink & ~Copyable>: ~Copyable {
    /// The result of one drain; worth a notice in the diagnostics log if lines were lost.
    public struct Report: Sendable, Equatable {
        /// Lines that reached the sink whole.
        public internal(set) var written = 0
        /// Records that the loops have dropped since the last drain because their batch was full.
        public internal(set) var dropped: UInt64 = 0
        /// Lines that the sink did not accept.
        public internal(set) var lost = 0
        /// The last `errno` of the sink, from writing.
        public internal(set) var failure: Int32?
        /// The reason why the sink could not be opened again (`errno`).
        public internal(set) var reopenFailure: Int32?
    }

    /// The numbers of lines written and lost. Any thread.
    public let status: AccessLogStatus
    private let queues: [AccessLogQueue]
    private var sink: Sink
    private var formatter: AccessLogFormatter
    /// The batch just taken from a queue. The next queue with a filled batch gets this one, emptied, in exchange.
    private var batch: AccessLogBatch
    private let output = ByteBuffer(capacity: 2 * AccessLogSettings.flushSize)
    /// The number of lines in `output`.
    private var lines = 0
    /// The sink's last byte was in the middle of a line. The next write must not continue that line, so `output` begins
    /// with the line's end.
    private var isLineTorn = false

    /// - Parameters:
    ///   - queues: one for each loop, all of the same capacity; each drain takes from all of them.
    ///   - sink: the destination of the lines; it may block, so the writer needs a thread of its own.
    public init(
        queues: [AccessLogQueue], format: AccessLogFormat, sink: consuming Sink,
        status: AccessLogStatus = AccessLogStatus()
    ) {
        self.queues = queues
        self.status = status
        self.sink = sink
        formatter = AccessLogFormatter(format: format)
        batch = AccessLogBatch(capacity: queues.first?.capacity ?? 0)
    }

    /// Writes the batches that were handed over, one of each loop. Reopens the sink first if that was requested. Each
    /// batch that is handed over requests a drain of its own, so a loop that is as fast as the sink delays neither the
    /// other loops nor a reopening.
    /// - Parameter isLast: the loops have ended: writes all batches.
    public mutating func drain(isLast: Bool = false) -> Report {
        var report = Report()
        if status.takeReopenRequest() { reopen(&report) }
        for queue in queues {
            while queue.exchange(&batch) {
                report.dropped += batch.dropped
                for index in batch.entries.indices {
                    formatter.append(batch, at: index, to: output)
                    lines += 1
                    if output.count >= AccessLogSettings.flushSize { flush(&report) }
                }
                if !isLast { break }
            }
        }
        flush(&report)
        status.add(report)
        return report
    }

    private mutating func reopen(_ report: inout Report) {
        if let code = sink.reopen() {
            report.reopenFailure = code
            status.countFailure()
        } else if isLineTorn, sink.isEmpty {
            // The torn line is in the former file. Without a rotation the same file is opened again, and the line stays
            // torn.
            isLineTorn = false
            output.removeAll()
        }
    }

    private mutating func flush(_ report: inout Report) {
        guard lines > 0 else { return }
        let output = output
        switch sink.write(output.span) {
        case .complete:
            isLineTorn = false
            report.written += lines
        case .failed(let count, let code):
            let accepted = output.span.extracting(first: count)
            // Every line has exactly one newline, since newlines in texts are escaped. The end of the torn line counts
            // as no line.
            var whole = isLineTorn && !accepted.isEmpty ? -1 : 0
            for index in accepted.indices where accepted[index] == UInt8(ascii: "\n") { whole += 1 }
            if !accepted.isEmpty { isLineTorn = accepted[accepted.count - 1] != UInt8(ascii: "\n") }
            report.written += whole
            report.lost += lines - whole
            report.failure = code
            status.countFailure()
        }
        lines = 0
        output.removeAll()
        if isLineTorn { output.append(UInt8(ascii: "\n")) }
    }
}
