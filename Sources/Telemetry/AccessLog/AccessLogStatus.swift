import Synchronization

/// The result of one drain of the access log, or of several added up.
public struct AccessLogReport: Sendable, Equatable {
    /// Lines that reached the sink whole.
    public internal(set) var written = 0
    /// Records that the loops have dropped because their batch was full.
    public internal(set) var dropped: UInt64 = 0
    /// Lines that the sink did not accept.
    public internal(set) var lost = 0
    /// The last `errno` of the sink, from writing.
    public internal(set) var failure: Int32?
    /// The reason why the sink could not be opened again (`errno`).
    public internal(set) var reopenFailure: Int32?
}

/// Collects the lines that were not written. The first loss is reported in the diagnostics log at once, later losses
/// together, after an interval.
///
/// A disk stays full for hours, and the log is drained many times a second.
public struct AccessLogLosses: Sendable {
    /// The time between two notices.
    public static let interval = Duration.seconds(10)

    /// All losses since the last notice.
    private var gathered = AccessLogReport()
    private var told: ContinuousClock.Instant?

    /// Begins without losses.
    public init() {}

    /// Whether there are losses that `take` will return later.
    public var isSomethingUntold: Bool { gathered != AccessLogReport() }

    /// Adds the losses of one drain.
    public mutating func add(_ report: AccessLogReport) {
        gathered.lost += report.lost
        gathered.dropped += report.dropped
        gathered.failure = report.failure ?? gathered.failure
    }

    /// The losses to report now, if any.
    /// - Parameter isLast: there will be no later chance to report them.
    public mutating func take(at now: ContinuousClock.Instant, isLast: Bool = false) -> AccessLogReport? {
        guard isSomethingUntold, isLast || told.map({ now - $0 >= Self.interval }) ?? true else { return nil }
        defer { gathered = AccessLogReport() }
        told = now
        return gathered
    }
}

/// The part of the access log that other threads use: they request a reopening, and read the numbers of lines by fate.
public final class AccessLogStatus: Sendable {
    private let reopenRequested = Atomic<Bool>(false)
    private let written = Atomic<UInt64>(0)
    private let dropped = Atomic<UInt64>(0)
    private let lost = Atomic<UInt64>(0)
    private let failures = Atomic<UInt64>(0)

    public init() {}

    /// Makes the next drain reopen the file first, after log rotation. From any thread.
    public func requestReopen() { reopenRequested.store(true, ordering: .releasing) }

    func takeReopenRequest() -> Bool { reopenRequested.exchange(false, ordering: .acquiring) }

    func countFailure() { failures.wrappingAdd(1, ordering: .relaxed) }

    func add(_ report: AccessLogReport) {
        written.wrappingAdd(UInt64(report.written), ordering: .relaxed)
        dropped.wrappingAdd(report.dropped, ordering: .relaxed)
        lost.wrappingAdd(UInt64(report.lost), ordering: .relaxed)
    }

    /// For the metrics page. From any thread.
    public func families() -> [MetricFamily] {
        [
            .counter(
                "log_lines", "Access log lines, by fate.",
                [
                    MetricSample([("fate", "written")], .whole(written.load(ordering: .relaxed))),
                    MetricSample([("fate", "dropped")], .whole(dropped.load(ordering: .relaxed))),
                    MetricSample([("fate", "lost")], .whole(lost.load(ordering: .relaxed))),
                ]),
            .counter(
                "log_failures", "Failures to write or reopen the access log.", failures.load(ordering: .relaxed)),
        ]
    }
}
