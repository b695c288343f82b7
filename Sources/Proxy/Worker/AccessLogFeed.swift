import Libevent
import Telemetry

/// One worker's feed of the access log. It hands records over to the writer in batches: when there are enough of them,
/// and otherwise after the flush time.
///
/// Confined to the worker's loop.
final class AccessLogFeed {
    let buffer: AccessLogBuffer
    private let loop: EventLoop
    /// The longest time that a record waits here, in nanoseconds.
    private let wait: Int64
    private let wakeWriter: @Sendable () -> Void
    /// Whether the flush timer is running.
    private var isDue = false
    private var hasEnded = false

    /// - Parameter wakeWriter: called when a batch has been handed over; may be called on any thread.
    init(_ queue: AccessLogQueue, flushWait: Duration, on loop: EventLoop, wakeWriter: @escaping @Sendable () -> Void) {
        buffer = AccessLogBuffer(queue)
        self.loop = loop
        wait = flushWait.nanoseconds
        self.wakeWriter = wakeWriter
    }

    /// Notes that a record was appended to `buffer`. Need not be called for `.kept`.
    func noteAppended(_ outcome: AccessLogBuffer.Outcome) {
        switch outcome {
        case .kept: break
        case .keptFirst: hasEnded ? handOver() : startWait()
        // Also if there was no room: the writer may have made some meanwhile.
        case .keptAtMark, .dropped: handOver()
        }
    }

    /// The loop ends: records appended from now on are handed over at once.
    func finish() {
        hasEnded = true
        handOver()
    }

    private func handOver() {
        guard !buffer.isEmpty else { return }
        if buffer.handOver(isLast: hasEnded) { wakeWriter() } else { startWait() }
    }

    /// Starts the flush timer. The timer of a batch that was handed over early serves the next batch.
    private func startWait() {
        guard !isDue, !hasEnded else { return }
        isDue = true
        loop.schedule(after: wait) { [self] in
            isDue = false
            handOver()
        }
    }
}
