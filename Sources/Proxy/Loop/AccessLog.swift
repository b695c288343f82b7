import Bytes
import Libevent
import Logging
import Telemetry

/// Writes the access log, on a thread of its own, in the batches that the workers hand over.
///
/// The workers only append records to their feeds (`AccessLogFeed`), so they never wait for the disk.
final class AccessLog: Sendable {
    let status: AccessLogStatus
    private let output: LogOutput
    private let thread: LoopThread
    /// One per worker.
    private let queues: [AccessLogQueue]
    private let flushWait: Duration

    init(_ settings: AccessLogSettings, workers: Int, log: Logger) throws(SystemError) {
        let queues = (0..<workers).map { _ in AccessLogQueue(capacity: settings.batchCapacity) }
        self.queues = queues
        flushWait = settings.flushWait
        let status = AccessLogStatus()
        self.status = status
        let file: AppendFile =
            switch settings.target {
            case .off, .standardOutput: try .standardOutput()
            case .file(let path): try AppendFile(path: path)
            }
        if !file.isOpen {
            log.warning("access log: nobody reads the pipe \(settings.path); lines are lost until somebody does")
        }
        let taker: StaticString = file.hasReader ? "its reader" : "the disk"
        let output = LogOutput(
            AccessLogWriter(queues: queues, format: settings.format, sink: LogFile(file: file), status: status),
            path: settings.path,
            taker: taker, log: log)
        self.output = output
        thread = try LoopThread(name: "access-log") { loop in
            output.run(on: loop)
            loop.run()
            output.drain(isLast: true)
        }
    }

    /// Makes a worker's feed of the log. Called on the worker's loop, once per worker.
    func feed(ofWorker index: Int, on loop: EventLoop) -> AccessLogFeed {
        AccessLogFeed(
            queues[index],
            startTimer: { [flushWait] whenDue in loop.schedule(after: flushWait.nanoseconds, whenDue) },
            wakeWriter: { [self] in drainSoon() })
    }

    /// Makes the log's thread write the batches handed over. May be called on any thread.
    private func drainSoon() {
        thread.handle.post { [output] in output.drain() }
    }

    /// Opens the file again after a rotation. May be called on any thread.
    func reopen() {
        status.requestReopen()
        drainSoon()
    }

    /// Writes the remaining batches and ends the thread.
    func finish() {
        thread.stop()
        thread.join()
    }
}

/// The writer of the log. Only the log's thread uses it, so no thread waits for the locks.
private final class LogOutput: Sendable {
    private let writer: Guarded<AccessLogWriter<LogFile>>
    private let losses = Guarded(AccessLogLosses())
    /// Reports losses that may not be reported yet, in case no more lines arrive, so that `drain` is not called.
    private let rest = OnceLater()
    private let path: String
    /// The receiver of the lines, as a notice names it.
    private let taker: StaticString
    private let log: Logger

    init(
        _ writer: consuming sending AccessLogWriter<LogFile>, path: String, taker: StaticString, log: Logger
    ) {
        self.writer = Guarded(writer)
        self.path = path
        self.taker = taker
        self.log = log
    }

    /// Called on the log's thread, before the first `drain`.
    func run(on loop: EventLoop) { rest.attach(to: loop) }

    func drain(isLast: Bool = false) {
        let report = writer.withLock { $0.drain(isLast: isLast) }
        if let code = report.reopenFailure {
            log.error(
                "access log: \(path) cannot be opened again: \(SystemError(.open, code: code).message); lines go on into the file that was open before"
            )
        }
        losses.withLock { $0.add(report) }
        tellLosses(isLast: isLast)
    }

    private func tellLosses(isLast: Bool = false) {
        let (due, isSomethingUntold) = losses.withLock { losses in
            (losses.take(at: .now, isLast: isLast), losses.isSomethingUntold)
        }
        if isSomethingUntold {
            rest.schedule(after: AccessLogLosses.interval.nanoseconds) { [weak self] in self?.tellLosses() }
        }
        guard let due else { return }
        if let code = due.failure {
            let error = SystemError(.write, code: code)
            let reason =
                error.isForNow
                ? "its reader does not keep up" : error.isWithoutReader ? "nobody reads the pipe" : error.message
            log.error("access log: \(path): \(reason); \(Self.lines(due.lost)) lost")
        }
        if due.dropped > 0 { log.warning("access log: \(Self.lines(due.dropped)) dropped, \(taker) did not keep up") }
    }

    private static func lines(_ count: some BinaryInteger) -> String { "\(count) \(count == 1 ? "line" : "lines")" }
}

/// The file, pipe or standard output to which the lines are written.
private struct LogFile: AccessLogSink, ~Copyable {
    var file: AppendFile
    var isEmpty: Bool { file.isEmpty }

    mutating func append(_ bytes: Span<UInt8>) -> (written: Int, failure: Int32?) {
        let (written, error) = file.write(bytes)
        return (written, error?.code)
    }

    mutating func openAgain() -> Int32? {
        do throws(SystemError) {
            try file.reopen()
            return nil
        } catch {
            return error.code
        }
    }
}
