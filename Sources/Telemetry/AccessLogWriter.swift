internal import Bytes

/// Empties the rings of all loops into one sink, a line for each record.
///
/// Owned by one thread at a time: the thread that writes the log calls `drain`, when a ring has passed its mark
/// (`LogRing.Outcome.keptAtMark`), at the latest after the operator's longest wait, and once more at the end.
/// A sink that fails costs lines, which are counted, and nothing else.
public struct AccessLogWriter<Sink: LogSink & ~Copyable>: ~Copyable {
    /// What one drain did; worth a notice in the diagnostics log when something was lost.
    public struct Report: Sendable, Equatable {
        /// Lines that reached the sink whole.
        public internal(set) var written = 0
        /// Records the loops dropped since the last drain because their ring was full.
        public internal(set) var dropped: UInt64 = 0
        /// Lines the sink did not take.
        public internal(set) var lost = 0
        /// The last `errno` of the sink, from writing or reopening.
        public internal(set) var failure: Int32?
    }

    /// How many lines were written and lost. Any thread.
    public let status: AccessLogStatus
    private let rings: [LogRing]
    private var sink: Sink
    private var formatter: LogLineFormatter
    /// The batch just taken from a ring; the next ring gets it back, emptied.
    private var batch: LogBatch
    private let output = ByteBuffer(capacity: 2 * LogSettings.flushSize)
    /// How many lines `output` holds.
    private var lines = 0
    /// The sink's last byte was in the middle of a line: the next write must not continue it, so `output` begins with its end.
    private var isLineTorn = false

    /// - Parameters:
    ///   - rings: one for each loop; each batch takes from all of them.
    ///   - sink: where lines go; it may block, so the writer needs a thread of its own.
    public init(rings: [LogRing], format: LogFormat, sink: consuming Sink, status: AccessLogStatus = AccessLogStatus()) {
        self.rings = rings
        self.status = status
        self.sink = sink
        formatter = LogLineFormatter(format: format)
        batch = rings.first?.makeBatch() ?? LogBatch(capacity: 0)
    }

    /// Writes all that the rings hold now, and reopens the sink first if that was asked for.
    public mutating func drain() -> Report {
        var report = Report()
        if status.takeReopenRequest() { reopen(&report) }
        for ring in rings {
            report.dropped += ring.exchange(&batch)
            for index in batch.entries.indices {
                formatter.append(batch, at: index, to: output)
                lines += 1
                if output.count >= LogSettings.flushSize { flush(&report) }
            }
        }
        flush(&report)
        status.add(report)
        return report
    }

    private mutating func reopen(_ report: inout Report) {
        // A torn line stays torn: without a rotation the same file comes back.
        guard let code = sink.reopen() else { return }
        report.failure = code
        status.countFailure()
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
            // Every line has exactly one newline: those in the texts are escaped. The end of the torn line counts for nothing.
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
