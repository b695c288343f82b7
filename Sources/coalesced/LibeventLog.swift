internal import Bytes
internal import Libevent
internal import Logging
internal import Telemetry

/// libevent's own messages, in the diagnostics log; only so many per second. From any thread.
final class LibeventLog: Sendable {
    private enum Kind { case warning }

    /// Of all loops together.
    private static let mostPerSecond = 5
    private static let interval: UInt64 = 1_000_000_000

    private let log: Logger
    private let limit = Guarded(RateLimitedNotice<Kind>(limit: LibeventLog.mostPerSecond, interval: LibeventLog.interval))

    init(_ log: Logger) { self.log = log }

    func write(_ severity: LibeventMessages.Severity, _ text: String) {
        switch severity {
        case .fatal: log.critical("libevent: \(text)")
        case .warning:
            let now = UInt64(System.monotonicMicroseconds()) * 1000
            // Including that a name server is back, which matters to a reader who saw that it failed.
            if case .write(let suppressed) = limit.withLock({ $0.admit(.warning, at: now) }) {
                log.warning("libevent: \(text)\(suppressed > 0 ? " (\(suppressed) more suppressed)" : "")")
            }
        }
    }
}
