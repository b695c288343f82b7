import Bytes

/// Empties the queues of all loops into one sink, a line for each record.
///
/// Owned by one thread at a time: the thread that writes the log calls `drain` when a loop has handed over a batch, and
/// once more at the end. A sink that fails costs lines, which are counted, and nothing else.
public struct AccessLogWriter<Sink: AccessLogSink & ~Copyable>: ~Copyable {
    /// What one drain did; worth a notice in the diagnostics log if something was lost.
    public struct Report: Sendable, Equatable {
        /// Lines that reached the sink whole.
        public internal(set) var written = 0
        /// Records the loops dropped since the last drain because their batch was full.
        public internal(set) var dropped: UInt64 = 0
        /// Lines the sink did not take.
        public internal(set) var lost = 0
        /// The last `errno` of the sink, from writing.
        public internal(set) var failure: Int32?
        /// Why the sink could not be opened again (`errno`).
        public internal(set) var reopenFailure: Int32?
    }

    /// How many lines were written and how many lost. Any thread.
    public let status: AccessLogStatus
    private let queues: [AccessLogQueue]
    private var sink: Sink
    private var formatter: AccessLogFormatter
    /// The batch just taken from a queue; the next queue that has one gets it, emptied.
    private var batch: AccessLogBatch
    private let output = ByteBuffer(capacity: 2 * AccessLogSettings.flushSize)
    /// How many lines `output` holds.
    private var lines = 0
    /// The sink's last byte was in the middle of a line: the next write must not continue it, so `output` begins with
    /// its end.
    private var isLineTorn = false

    /// - Parameters:
    ///   - queues: one for each loop, all of one capacity; each drain takes from all of them.
    ///   - sink: where lines go; it may block, so the writer needs a thread of its own.
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

    /// Writes what was handed over, one batch of each loop, and reopens the sink first if that was requested. Each
    /// batch that is handed over requests a drain of its own, so a loop that is as fast as the sink neither keeps the
    /// others waiting nor puts off a reopening.
    /// - Parameter isLast: the loops have ended: writes everything.
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
            // The torn line is in the file before. Without a rotation the same file comes back, and the line stays
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
            // Every line has exactly one newline: those in the texts are escaped. The end of the torn line counts for
            // nothing.
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
