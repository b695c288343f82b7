import Bytes
import HTTPSemantics
import Synchronization

@testable import Telemetry

func text(_ buffer: ByteBuffer) -> String { String(buffer.span) }

/// What a test logs: texts as strings, sensible defaults.
struct Example {
    var record = AccessLogRecord(started: 1_795_238_204_123, duration: 1_234_567, firstByte: 250_999)
    var client: [UInt8] = Array("192.0.2.1".utf8)
    var method: [UInt8] = Array("GET".utf8)
    var host: [UInt8] = Array("example.org".utf8)
    var target: [UInt8] = Array("/a?b=c".utf8)
    var referer: [UInt8] = []
    var userAgent: [UInt8] = []
    var upstream: [UInt8] = []
    var detail: [UInt8] = []
    var requestID: [UInt8] = []
    var security: [UInt8] = []

    init(_ change: (inout Example) -> Void = { _ in }) {
        record.status = 200
        record.bodyBytesSent = 1024
        record.version = .http11
        record.verdict = .hit
        change(&self)
    }

    /// - Returns: whether it fitted.
    @discardableResult
    func append(to loop: LogLoop) -> Bool {
        let isKept = loop.batch.append(
            record, client: client.span, method: method.span, host: host.span, target: target.span,
            upstream: upstream.span, detail: detail.span, referer: referer.span, userAgent: userAgent.span)
        if isKept, !requestID.isEmpty { loop.batch.identifyLast(by: requestID.span) }
        if isKept, !security.isEmpty { loop.batch.secureLast(by: security.span) }
        return isKept
    }

    func append(to feed: AccessLogFeed) {
        feed.append(
            record, client: client.span, method: method.span, host: host.span, target: target.span,
            upstream: upstream.span, detail: detail.span, referer: referer.span, userAgent: userAgent.span)
    }

    func line(_ format: AccessLogFormat) -> String {
        let loop = LogLoop(AccessLogQueue(capacity: 1 << 16))
        append(to: loop)
        var formatter = AccessLogFormatter(format: format)
        let output = ByteBuffer(capacity: 256)
        formatter.append(loop.batch, at: 0, to: output)
        return text(output)
    }
}

/// A loop that hands its batch over when the test says so.
final class LogLoop {
    private let queue: AccessLogQueue
    var batch: AccessLogBatch

    init(_ queue: AccessLogQueue) {
        self.queue = queue
        batch = AccessLogBatch(capacity: queue.capacity)
    }

    var isEmpty: Bool { batch.isEmpty }

    /// - Returns: whether the batch was taken.
    func handOver(isLast: Bool = false) -> Bool { queue.handOver(&batch, isLast: isLast) }
}

/// Remembers what it was given, and fails when told to.
final class MemorySink: AccessLogSink {
    private(set) var bytes: [UInt8] = []
    private(set) var reopenings = 0
    /// Taken from the front, one for each write: how many bytes to accept before failing with ENOSPC.
    var roomLeft: [Int] = []
    var reopenFailure: Int32?
    /// Called after each write.
    var whenWritten: () -> Void = {}

    func append(_ bytes: Span<UInt8>) -> (written: Int, failure: Int32?) {
        defer { whenWritten() }
        let room = roomLeft.isEmpty ? bytes.count : min(roomLeft.removeFirst(), bytes.count)
        for index in 0..<room { self.bytes.append(bytes[index]) }
        return (room, room == bytes.count ? nil : 28)
    }

    func openAgain() -> Int32? {
        reopenings += 1
        if isRotated { bytes = [] }
        return reopenFailure
    }

    /// Whether opening it again gives an empty file.
    var isRotated = false
    var isEmpty: Bool { bytes.isEmpty }

    var lines: [String] {
        String(decoding: bytes, as: UTF8.self).split(separator: "\n", omittingEmptySubsequences: false).dropLast().map(
            String.init)
    }
}
