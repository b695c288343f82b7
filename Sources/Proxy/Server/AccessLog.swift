import Bytes
import Coalescing
import CoalescingPlaces
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

    /// - Returns: `nil` if the settings want no log.
    static func open(_ settings: AccessLogSettings, workers: Int, log: Logger) throws(ProxyServer.StartError)
        -> AccessLog?
    {
        guard settings.target != .off else { return nil }
        do throws(SystemError) {
            return try AccessLog(settings, workers: workers, log: log)
        } catch {
            throw .accessLog(error, path: settings.path)
        }
    }

    private init(_ settings: AccessLogSettings, workers: Int, log: Logger) throws(SystemError) {
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
    /// The time between two notices of lines that were not written. A disk stays full for hours, and the log is drained
    /// many times a second.
    private static let noticeInterval = Duration.seconds(10)

    private let writer: Guarded<AccessLogWriter<LogFile>>
    /// Reports the first loss at once, later ones together. `nil` before `run`.
    private let losses = Guarded<CoalescingExecutor<AccessLogReport>?>(nil)
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
    func run(on loop: EventLoop) {
        let losses = CoalescingExecutor<AccessLogReport>(
            coalesceWait: Self.noticeInterval, maxWait: Self.noticeInterval, firstAtOnce: true,
            timers: LoopTimers(loop), on: InlineQueue.shared, combine: { $0.addLosses(of: $1) },
            act: { [weak self] in self?.tell($0) })
        self.losses.withLock { $0 = losses }
    }

    /// - Parameter isLast: there will be no later chance to report losses.
    func drain(isLast: Bool = false) {
        let report = writer.withLock { $0.drain(isLast: isLast) }
        if let code = report.reopenFailure {
            log.error(
                "access log: \(path) cannot be opened again: \(SystemError(.open, code: code).message); lines go on into the file that was open before"
            )
        }
        let losses = losses.withLock(\.self)
        if report.hasLosses { losses?.add(report) }
        if isLast { losses?.flush() }
    }

    private func tell(_ losses: AccessLogReport) {
        if let code = losses.failure {
            let error = SystemError(.write, code: code)
            let reason =
                error.isForNow
                ? "its reader does not keep up" : error.isWithoutReader ? "nobody reads the pipe" : error.message
            log.error("access log: \(path): \(reason); \(Self.lines(losses.lost)) lost")
        }
        if losses.dropped > 0 {
            log.warning("access log: \(Self.lines(losses.dropped)) dropped, \(taker) did not keep up")
        }
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
