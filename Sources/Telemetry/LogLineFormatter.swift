/// Turns records into lines. Pure but for the second it remembers; owned by the log writer.
public struct LogLineFormatter: Sendable {
    public let format: LogFormat
    private var dates: LogDateFormatter

    public init(format: LogFormat) {
        self.format = format
        dates = LogDateFormatter(format: format)
    }

    /// Appends one line, newline included, for every record of `batch`.
    public mutating func append(_ batch: LogBatch, to output: inout [UInt8]) {
        for index in batch.entries.indices { append(batch, at: index, to: &output) }
    }

    mutating func append(_ batch: LogBatch, at index: Int, to output: inout [UInt8]) {
        switch format {
        case .combined: appendCombined(batch, batch.entries[index], to: &output)
        case .json: appendJSON(batch, batch.entries[index], to: &output)
        }
        output.append(UInt8(ascii: "\n"))
    }

    // MARK: combined

    private mutating func appendCombined(_ batch: LogBatch, _ entry: LogBatch.Entry, to line: inout [UInt8]) {
        let record = entry.record
        batch.withText(.client, of: entry) { line.append(word: $0) }
        line.append(" - - ")
        dates.append(record.started, to: &line)
        line.append(" \"")
        batch.withText(.method, of: entry) { line.append(word: $0) }
        line.append(" ")
        batch.withText(.target, of: entry) { line.append(word: $0) }
        line.append(" ")
        line.append(record.version.name)
        line.append("\" ")
        line.append(decimal: UInt64(record.status), width: 3)
        line.append(" ")
        line.append(decimal: record.bodyBytesSent)
        line.append(" \"")
        batch.withText(.referer, of: entry) { line.append(quotable: $0) }
        line.append("\" \"")
        batch.withText(.userAgent, of: entry) { line.append(quotable: $0) }
        line.append("\" host=\"")
        batch.withText(.host, of: entry) { line.append(quotable: $0) }
        line.append("\" verdict=")
        line.append(record.verdict.name)
        line.append(" role=")
        line.append(record.role.name)
        line.append(" operation=")
        line.append(decimal: record.operation)
        line.append(" time=")
        line.append(microsecondSeconds: record.duration)
        line.append(" ttfb=")
        line.append(secondsOrDash: record.firstByte)
        line.append(" upstream=")
        batch.withText(.upstream, of: entry) { line.append(word: $0) }
        line.append(" upstream_status=")
        if record.upstreamStatus == 0 { line.append("-") } else { line.append(decimal: UInt64(record.upstreamStatus)) }
        line.append(" upstream_time=")
        line.append(secondsOrDash: record.upstreamDuration)
        if record.isAborted { line.append(" aborted") }
        if entry.isClipped { line.append(" clipped") }
    }

    // MARK: JSON

    private mutating func appendJSON(_ batch: LogBatch, _ entry: LogBatch.Entry, to line: inout [UInt8]) {
        let record = entry.record
        line.append("{\"time\":\"")
        dates.append(record.started, to: &line)
        line.append("\"")
        appendMember("client", .client, of: entry, in: batch, to: &line)
        appendMember("method", .method, of: entry, in: batch, to: &line)
        appendMember("host", .host, of: entry, in: batch, to: &line)
        appendMember("target", .target, of: entry, in: batch, to: &line)
        line.append(",\"protocol\":\"")
        line.append(record.version.name)
        line.append("\",\"status\":")
        line.append(decimal: UInt64(record.status))
        line.append(",\"bytes\":")
        line.append(decimal: record.bodyBytesSent)
        line.append(",\"duration\":")
        line.append(microsecondSeconds: record.duration)
        if let firstByte = record.firstByte {
            line.append(",\"ttfb\":")
            line.append(microsecondSeconds: firstByte)
        }
        line.append(",\"verdict\":\"")
        line.append(record.verdict.name)
        line.append("\",\"role\":\"")
        line.append(record.role.name)
        line.append("\"")
        if record.operation != 0 {
            line.append(",\"operation\":")
            line.append(decimal: record.operation)
        }
        appendMember("upstream", .upstream, of: entry, in: batch, to: &line)
        if record.upstreamStatus != 0 {
            line.append(",\"upstream_status\":")
            line.append(decimal: UInt64(record.upstreamStatus))
        }
        if let upstreamDuration = record.upstreamDuration {
            line.append(",\"upstream_duration\":")
            line.append(microsecondSeconds: upstreamDuration)
        }
        appendMember("referer", .referer, of: entry, in: batch, to: &line)
        appendMember("user_agent", .userAgent, of: entry, in: batch, to: &line)
        if record.isAborted { line.append(",\"aborted\":true") }
        if entry.isClipped { line.append(",\"clipped\":true") }
        line.append("}")
    }

    /// A member whose text is empty is left out.
    private func appendMember(
        _ key: String, _ text: TransactionText, of entry: LogBatch.Entry, in batch: LogBatch, to line: inout [UInt8]
    ) {
        batch.withText(text, of: entry) { bytes in
            guard !bytes.isEmpty else { return }
            line.append(",\"")
            line.append(key)
            line.append("\":")
            line.append(jsonString: bytes)
        }
    }
}

extension [UInt8] {
    fileprivate mutating func append(secondsOrDash nanoseconds: UInt64?) {
        if let nanoseconds { append(microsecondSeconds: nanoseconds) } else { append("-") }
    }
}
