import Bytes

/// The destination of the access log: a file, standard output, or a test. Called on the writer's thread only.
public protocol AccessLogSink: ~Copyable {
    /// Appends all of `bytes`, and waits as long as that takes. A short write must be continued inside.
    /// - Returns: the number of bytes written and, if that is not all of them, the reason (`errno`): no space, or a pipe
    ///   that has lost its reader.
    mutating func append(_ bytes: Span<UInt8>) -> (written: Int, failure: Int32?)

    /// Opens the same path again and closes the old file. After a failure the old file stays in use.
    /// - Returns: `nil`, or the reason for the failure (`errno`).
    mutating func openAgain() -> Int32?

    /// Whether the sink is a file to which no byte has been written yet.
    var isEmpty: Bool { get }
}

/// Empties the queues of all loops into one sink, a line for each record.
///
/// Owned by one thread at a time: the thread that writes the log calls `drain` when a loop has handed over a batch, and
/// once more at the end. A sink that fails costs lines, which are counted, and has no other effect.
public struct AccessLogWriter<Sink: AccessLogSink & ~Copyable>: ~Copyable {
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
    public mutating func drain(isLast: Bool = false) -> AccessLogReport {
        var report = AccessLogReport()
        if status.takeReopenRequest() { reopen(&report) }
        for queue in queues {
            while queue.exchange(&batch) {
                report.dropped += batch.dropped
                for index in batch.records.indices {
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

    private mutating func reopen(_ report: inout AccessLogReport) {
        if let code = sink.openAgain() {
            report.reopenFailure = code
            status.countFailure()
        } else if isLineTorn, sink.isEmpty {
            // The torn line is in the former file. Without a rotation the same file is opened again, and the line stays
            // torn.
            isLineTorn = false
            output.removeAll()
        }
    }

    private mutating func flush(_ report: inout AccessLogReport) {
        guard lines > 0 else { return }
        let output = output
        let (count, failure) = sink.append(output.span)
        if let failure {
            let accepted = output.span.extracting(first: count)
            // Every line has exactly one newline, since newlines in texts are escaped. The end of the torn line counts
            // as no line.
            var whole = isLineTorn && !accepted.isEmpty ? -1 : 0
            for index in accepted.indices where accepted[index] == UInt8(ascii: "\n") { whole += 1 }
            if !accepted.isEmpty { isLineTorn = accepted[accepted.count - 1] != UInt8(ascii: "\n") }
            report.written += whole
            report.lost += lines - whole
            report.failure = failure
            status.countFailure()
        } else {
            isLineTorn = false
            report.written += lines
        }
        lines = 0
        output.removeAll()
        if isLineTorn { output.append(UInt8(ascii: "\n")) }
    }
}
