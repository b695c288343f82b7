/// Keeps the diagnostics log readable under attack: at most `limit` notices of one kind per interval, and one number
/// for the rest. Reads no clock; belongs to one loop or thread.
///
/// `Kind` must be a closed enum without payloads from outside: there is one entry for each value that has ever
/// occurred.
public struct RateLimitedNotice<Kind: Hashable & Sendable>: Sendable {
    /// The decision about one notice.
    public enum Decision: Sendable, Equatable {
        /// Write it. If `suppressed` is not 0, first report that this many similar notices were not written.
        case write(suppressed: UInt64)
        case suppress
    }

    private struct Window {
        var began: UInt64
        var written = 0
        var suppressed: UInt64 = 0
    }

    private let limit: Int
    private let interval: UInt64
    private var windows: [Kind: Window] = [:]

    /// - Parameters:
    ///   - limit: notices of one kind written per interval.
    ///   - interval: nanoseconds.
    public init(limit: Int, interval: UInt64) {
        self.limit = limit
        self.interval = interval
    }

    /// Whether a notice of `kind` may be written at `now` (monotonic nanoseconds).
    public mutating func admit(_ kind: Kind, at now: UInt64) -> Decision {
        var window = windows[kind] ?? Window(began: now)
        defer { windows[kind] = window }
        var suppressedBefore: UInt64 = 0
        if isOver(window, at: now) {
            suppressedBefore = window.suppressed
            window = Window(began: now)
        }
        guard window.written < limit else {
            window.suppressed += 1
            return .suppress
        }
        window.written += 1
        return .write(suppressed: suppressedBefore)
    }

    /// Whether `takeSuppressed` will return any number, now or later.
    public var hasSuppressed: Bool { windows.values.contains { $0.suppressed > 0 } }

    /// Takes the numbers of notices suppressed in intervals that are over. For a timer, so that the numbers are
    /// reported even if the attack has ended.
    public mutating func takeSuppressed(at now: UInt64) -> [(kind: Kind, count: UInt64)] {
        let over = windows.filter { isOver($0.value, at: now) }
        for kind in over.keys { windows[kind] = nil }
        return over.compactMap { kind, window in window.suppressed > 0 ? (kind, window.suppressed) : nil }
    }

    private func isOver(_ window: Window, at now: UInt64) -> Bool {
        now >= window.began && now - window.began >= interval
    }
}
