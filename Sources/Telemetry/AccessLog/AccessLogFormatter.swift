import Bytes
import HTTPSemantics

/// Turns records into lines. Pure, except that it keeps the last second's date. Owned by the log writer.
struct AccessLogFormatter {
    let format: AccessLogFormat
    private var dates: AccessLogDates

    init(format: AccessLogFormat) {
        self.format = format
        dates = AccessLogDates(format: format)
    }

    /// Appends the line of one record of `batch`, newline included.
    mutating func append(_ batch: AccessLogBatch, at index: Int, to output: ByteBuffer) {
        let texts = batch.texts
        switch format {
        case .combined: appendCombined(batch.records[index], texts.span, to: output)
        case .json: appendJSON(batch.records[index], texts.span, to: output)
        }
        output.append(UInt8(ascii: "\n"))
    }

    // MARK: combined

    private mutating func appendCombined(_ record: AccessLogRecord, _ texts: Span<UInt8>, to line: ByteBuffer) {
        // In nearly all records no text needs escaping: one scan of the adjacent texts shows it.
        let words = Escaping(
            for: texts.extracting(record.range(from: .client, through: .detail)), printableFrom: Escaping.word)
        let quoted = Escaping(
            for: texts.extracting(record.range(from: .referer, through: .userAgent)), printableFrom: Escaping.quotable)
        line.append(texts.extracting(record.range(of: .client)), words)
        line.append(" - - ")
        dates.append(record.started, to: line)
        line.append(" \"")
        line.append(texts.extracting(record.range(of: .method)), words)
        line.append(" ")
        line.append(texts.extracting(record.range(of: .target)), words)
        line.append(" ")
        line.append(record.version?.name ?? "-")
        line.append("\" ")
        line.append(decimal: UInt64(record.status), width: 3)
        line.append(" ")
        line.append(decimal: record.bodyBytesSent)
        line.append(" \"")
        line.append(texts.extracting(record.range(of: .referer)), quoted)
        line.append("\" \"")
        line.append(texts.extracting(record.range(of: .userAgent)), quoted)
        line.append("\" host=\"")
        line.append(texts.extracting(record.range(of: .host)), words)
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
        if record.upstreamStatus == 0, record.upstreamDuration == nil, record.range(of: .upstream).isEmpty {
            // The case of every hit.
            line.append(" upstream=- upstream_status=- upstream_time=-")
        } else {
            appendUpstream(record, texts, words, to: line)
        }
        if !record.range(of: .detail).isEmpty {
            line.append(" detail=")
            line.append(texts.extracting(record.range(of: .detail)), words)
        }
        if !record.requestIDRange.isEmpty {
            // It needs no escaping (`FieldView.requestID`).
            line.append(" request_id=")
            line.append(texts.extracting(record.requestIDRange))
        }
        if !record.securityRange.isEmpty { appendSecurity(texts.extracting(record.securityRange), to: line) }
        if record.resumes > 0 {
            line.append(" resumed=")
            line.append(decimal: UInt64(record.resumes))
        }
        if record.isAborted { line.append(" aborted") }
        if record.isClipped { line.append(" clipped") }
    }

    private func appendUpstream(
        _ record: AccessLogRecord, _ texts: Span<UInt8>, _ words: Escaping, to line: ByteBuffer
    ) {
        line.append(" upstream=")
        line.append(texts.extracting(record.range(of: .upstream)), words)
        line.append(" upstream_status=")
        if record.upstreamStatus == 0 {
            line.append(UInt8(ascii: "-"))
        } else {
            line.append(decimal: UInt64(record.upstreamStatus))
        }
        line.append(" upstream_time=")
        line.append(secondsOrDash: record.upstreamDuration)
    }

    private func appendSecurity(_ security: Span<UInt8>, to line: ByteBuffer) {
        let parts = AccessLogSecurity.parts(of: security)
        line.append(" tls_version=")
        line.append(security.extracting(parts.version))
        line.append(" tls_cipher=")
        line.append(security.extracting(parts.cipher))
        line.append(" sni=")
        let name = security.extracting(parts.name)
        line.append(name, Escaping(for: name, printableFrom: Escaping.word))
    }

    // MARK: JSON

    private mutating func appendJSON(_ record: AccessLogRecord, _ texts: Span<UInt8>, to line: ByteBuffer) {
        line.append("{\"time\":\"")
        dates.append(record.started, to: line)
        line.append("\"")
        appendMember(",\"client\":", texts.extracting(record.range(of: .client)), to: line)
        appendMember(",\"method\":", texts.extracting(record.range(of: .method)), to: line)
        appendMember(",\"host\":", texts.extracting(record.range(of: .host)), to: line)
        appendMember(",\"target\":", texts.extracting(record.range(of: .target)), to: line)
        line.append(",\"protocol\":\"")
        line.append(record.version?.name ?? "-")
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
        appendMember(",\"detail\":", texts.extracting(record.range(of: .detail)), to: line)
        appendMember(",\"upstream\":", texts.extracting(record.range(of: .upstream)), to: line)
        if record.upstreamStatus != 0 {
            line.append(",\"upstream_status\":")
            line.append(decimal: UInt64(record.upstreamStatus))
        }
        if let upstreamDuration = record.upstreamDuration {
            line.append(",\"upstream_duration\":")
            line.append(microsecondSeconds: upstreamDuration)
        }
        appendMember(",\"referer\":", texts.extracting(record.range(of: .referer)), to: line)
        appendMember(",\"user_agent\":", texts.extracting(record.range(of: .userAgent)), to: line)
        appendMember(",\"request_id\":", texts.extracting(record.requestIDRange), to: line)
        if !record.securityRange.isEmpty {
            let security = texts.extracting(record.securityRange)
            let parts = AccessLogSecurity.parts(of: security)
            appendMember(",\"tls_version\":", security.extracting(parts.version), to: line)
            appendMember(",\"tls_cipher\":", security.extracting(parts.cipher), to: line)
            appendMember(",\"sni\":", security.extracting(parts.name), to: line)
        }
        if record.resumes > 0 {
            line.append(",\"resumed\":")
            line.append(decimal: UInt64(record.resumes))
        }
        if record.isAborted { line.append(",\"aborted\":true") }
        if record.isClipped { line.append(",\"clipped\":true") }
        line.append("}")
    }

    /// Appends a member, unless its text is empty.
    private func appendMember(_ key: StaticString, _ text: Span<UInt8>, to line: ByteBuffer) {
        guard !text.isEmpty else { return }
        line.append(key)
        line.append(jsonString: text)
    }
}

extension ByteBuffer {
    /// Nanoseconds as seconds, cut to microseconds. Nearly every hit takes 0, since the loop reads its clock once per
    /// iteration.
    fileprivate func append(microsecondSeconds nanoseconds: UInt64) {
        if nanoseconds < 1000 { append("0.000000") } else { appendSeconds(microseconds: nanoseconds / 1000) }
    }

    fileprivate func append(secondsOrDash nanoseconds: UInt64?) {
        if let nanoseconds { append(microsecondSeconds: nanoseconds) } else { append(UInt8(ascii: "-")) }
    }
}

/// Writes the dates of log lines. The text of each second is computed only once.
struct AccessLogDates {
    let format: AccessLogFormat
    private var second = Int64.min
    private let cached = ByteBuffer(capacity: 32)

    init(format: AccessLogFormat) { self.format = format }

    /// `[21/Nov/2026:05:16:44 +0000]`, or `2026-11-21T05:16:44.123Z` for JSON. `milliseconds` since 1970.
    mutating func append(_ milliseconds: Int64, to line: ByteBuffer) {
        let (second, millisecond) = Int(milliseconds).flooredQuotientAndRemainder(dividingBy: 1000)
        if second != self.second { cache(Int64(second)) }
        line.append(cached.span)
        guard format == .json else { return }
        line.append(UInt8(ascii: "."))
        line.append(decimal: UInt64(millisecond), width: 3)
        line.append(UInt8(ascii: "Z"))
    }

    private mutating func cache(_ second: Int64) {
        self.second = second
        cached.removeAll()
        let time = CivilTime(unixSeconds: second)
        let date = time.date
        switch format {
        case .combined:
            cached.append("[")
            append(date.day)
            cached.append(Self.months[date.month - 1])
            append(date.year, width: 4)
            cached.append(":")
        case .json:
            append(date.year, width: 4)
            cached.append("-")
            append(date.month)
            cached.append("-")
            append(date.day)
            cached.append("T")
        }
        append(time.hour)
        cached.append(":")
        append(time.minute)
        cached.append(":")
        append(time.second)
        if format == .combined { cached.append(" +0000]") }
    }

    private func append(_ number: Int, width: Int = 2) {
        cached.append(decimal: UInt64(clamping: number), width: width)
    }

    private static let months: [StaticString] = [
        "/Jan/", "/Feb/", "/Mar/", "/Apr/", "/May/", "/Jun/", "/Jul/", "/Aug/", "/Sep/", "/Oct/", "/Nov/", "/Dec/",
    ]
}
