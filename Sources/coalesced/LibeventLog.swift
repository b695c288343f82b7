import Bytes
import Libevent
import Logging
import Telemetry

/// Writes libevent's own messages to the diagnostics log, with a limit per second. Any thread.
final class LibeventLog: Sendable {
    private enum Kind { case warning }

    /// The most messages per second, of all loops together.
    private static let mostPerSecond = 5
    private static let interval: UInt64 = 1_000_000_000

    private let log: Logger
    private let limit = Guarded(
        RateLimitedNotice<Kind>(limit: LibeventLog.mostPerSecond, interval: LibeventLog.interval))
    /// Reports suppressed messages later, in case no further message does.
    private let rest = OnceLater()

    init(_ log: Logger) { self.log = log }

    /// Lets `loop` report suppressed messages from now on. On the loop's thread.
    func reportSuppressed(on loop: EventLoop) { rest.attach(to: loop) }

    func write(_ severity: LibeventMessages.Severity, _ text: String) {
        switch severity {
        case .fatal: log.critical("libevent: \(text)")
        case .warning:
            switch limit.withLock({ $0.admit(.warning, at: Self.now) }) {
            case .write(let suppressed):
                log.warning("libevent: \(text)\(suppressed > 0 ? " (\(suppressed) more suppressed)" : "")")
            case .suppress: reportSuppressedLater()
            }
        }
    }

    private static var now: UInt64 { UInt64(System.monotonicMicroseconds()) * 1000 }

    private func reportSuppressedLater() {
        rest.schedule(after: Int64(Self.interval)) { [self] in
            for (_, count) in limit.withLock({ $0.takeSuppressed(at: Self.now) }) {
                log.warning("libevent: \(count) more messages suppressed")
            }
            if limit.withLock({ $0.hasSuppressed }) { reportSuppressedLater() }
        }
    }
}
