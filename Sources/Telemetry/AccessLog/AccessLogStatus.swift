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

extension AccessLogReport {
    /// Whether lines were not written.
    public var hasLosses: Bool { lost > 0 || dropped > 0 || failure != nil }

    /// Adds the lines that were not written in another drain.
    public mutating func addLosses(of other: AccessLogReport) {
        lost += other.lost
        dropped += other.dropped
        failure = other.failure ?? failure
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
