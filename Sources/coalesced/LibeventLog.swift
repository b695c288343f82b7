internal import Libevent
internal import Logging
internal import Synchronization
internal import Telemetry

/// What libevent says by itself, in the diagnostics log; only so much of it a second. From any thread.
final class LibeventLog: Sendable {
    private enum Kind { case warning }

    /// Of all loops together.
    private static let mostPerSecond = 5
    private static let interval: UInt64 = 1_000_000_000

    private let log: Logger
    private let limit = Mutex(RateLimitedNotice<Kind>(limit: LibeventLog.mostPerSecond, interval: LibeventLog.interval))

    init(_ log: Logger) { self.log = log }

    func write(_ severity: LibeventMessages.Severity, _ text: String) {
        switch severity {
        case .fatal: log.critical("libevent: \(text)")
        case .warning:
            let now = UInt64(System.monotonicMicroseconds()) * 1000
            // Also that a name server is back: a reader who was told that it failed wants to know.
            if case .write(let suppressed) = limit.withLock({ $0.admit(.warning, at: now) }) {
                log.warning("libevent: \(text)\(suppressed > 0 ? " (\(suppressed) more were not told)" : "")")
            }
        }
    }
}
