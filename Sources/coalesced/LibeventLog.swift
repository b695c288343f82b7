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
    /// Where a timer tells what was suppressed last, and whether it is set.
    private let timing = Guarded<(loop: LoopBound<EventLoop>?, willTellRest: Bool)>((nil, false))

    init(_ log: Logger) { self.log = log }

    /// On the thread of `loop`, which from now on tells what was suppressed, should no more come.
    func tellsRest(on loop: EventLoop) { timing.withLock { $0.loop = LoopBound(loop, on: loop) } }

    func write(_ severity: LibeventMessages.Severity, _ text: String) {
        switch severity {
        case .fatal: log.critical("libevent: \(text)")
        case .warning:
            // Also that a name server is back: a reader who was told that it failed wants to know.
            switch limit.withLock({ $0.admit(.warning, at: Self.now) }) {
            case .write(let suppressed): log.warning("libevent: \(text)\(suppressed > 0 ? " (\(suppressed) more suppressed)" : "")")
            case .suppress: tellRestLater()
            }
        }
    }

    private static var now: UInt64 { UInt64(System.monotonicMicroseconds()) * 1000 }

    private func tellRestLater() {
        let loop = timing.withLock { timing in
            defer { timing.willTellRest = true }
            return timing.willTellRest ? nil : timing.loop
        }
        guard let loop else { return }
        loop.handle.post { [self] in
            loop.value.schedule(after: Int64(Self.interval)) { [self] in
                timing.withLock { $0.willTellRest = false }
                for (_, count) in limit.withLock({ $0.takeSuppressed(at: Self.now) }) { log.warning("libevent: \(count) more messages, not told one by one") }
                if limit.withLock({ $0.hasSuppressed }) { tellRestLater() }
            }
        }
    }
}
