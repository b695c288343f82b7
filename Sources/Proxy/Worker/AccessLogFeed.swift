import Libevent
import Telemetry

/// One worker's end of the access log: hands records over to the writer, as a batch when there are enough, and
/// otherwise after the flush time.
///
/// On the worker's loop.
final class AccessLogFeed {
    let buffer: AccessLogBuffer
    private let loop: EventLoop
    /// The longest that a record waits here, in nanoseconds.
    private let wait: Int64
    private let wakeWriter: @Sendable () -> Void
    /// Whether the flush time runs.
    private var isDue = false
    private var hasEnded = false

    /// - Parameter wakeWriter: called when a batch has been handed over. Any thread.
    init(_ queue: AccessLogQueue, flushWait: Duration, on loop: EventLoop, wakeWriter: @escaping @Sendable () -> Void) {
        buffer = AccessLogBuffer(queue)
        self.loop = loop
        wait = flushWait.nanoseconds
        self.wakeWriter = wakeWriter
    }

    /// A record was appended to `buffer`. Not called for `.kept`.
    func noteAppended(_ outcome: AccessLogBuffer.Outcome) {
        switch outcome {
        case .kept: break
        case .keptFirst: hasEnded ? handOver() : startWait()
        // Also where there was no room: the writer may have made some meanwhile.
        case .keptAtMark, .dropped: handOver()
        }
    }

    /// The loop ends: what comes from now on is handed over at once.
    func finish() {
        hasEnded = true
        handOver()
    }

    private func handOver() {
        guard !buffer.isEmpty else { return }
        if buffer.handOver(isLast: hasEnded) { wakeWriter() } else { startWait() }
    }

    /// The timer of a batch that was handed over early serves the next one.
    private func startWait() {
        guard !isDue, !hasEnded else { return }
        isDue = true
        loop.schedule(after: wait) { [self] in
            isDue = false
            handOver()
        }
    }
}
